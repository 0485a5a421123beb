#include "parallel/config.h"

#include <fmt/format.h>

namespace redspine {

void ParallelConfig::validate(Mistakes& mistakes) const {
  if (tensor < 1) {
    mistakes.add("parallel.tensor", fmt::format("is {}; legal: 1 or more", tensor));
  }
  if (sequence) {
    mistakes.add("parallel.sequence",
                 "is true, but sequence parallelism is not in this version; legal here: false");
  }
  if (optimizer != OptimizerPlacement::replicated) {
    mistakes.add("parallel.optimizer",
                 "is sharded, which is not in this version; legal here: replicated");
  }
  if (recompute != Recompute::none) {
    mistakes.add("parallel.recompute",
                 fmt::format("is {}, but recomputation is not in this version; legal here: none",
                             recompute == Recompute::block ? "block" : "attention"));
  }
}

}  // namespace redspine
