// The loss on the validation data: every token counted once, and their sum divided once by their
// number. Collective. Changes nothing that training depends on.
#pragma once

#include <functional>
#include <optional>

#include "data/dataset.h"
#include "model/gpt.h"
#include "trainer/batch_feed.h"
#include "trainer/report.h"

namespace redspine {

class Evaluator {
 public:
  /// All borrowed. `max_windows`: the first so many sequences; 0 = all of them.
  Evaluator(const ValidationData& data, Gpt& model, BatchFeed& feed, ExecutionContext execution,
            std::int64_t max_windows);

  /// Nothing where `poll`, if it is one, reports on any rank that the run has to stop.
  std::optional<ValidationReport> evaluate(std::int64_t step,
                                           const std::function<Requests()>& poll);

 private:
  const ValidationData& data_;
  Gpt& model_;
  BatchFeed& feed_;
  ExecutionContext execution_;
  std::int64_t num_windows_;
};

}  // namespace redspine
