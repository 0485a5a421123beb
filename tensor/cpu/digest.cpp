#include "tensor/digest.h"

#include "tensor/cpu/digest_run.h"

namespace redspine {

Digest digest_of(std::span<const float> values, const DigestKey& key, std::int64_t first,
                 std::int64_t step) {
  DigestRun run(key, first, step);
  run.add(values.data(), static_cast<std::int64_t>(values.size()));
  return run.sum();
}

Digest digest_of(std::span<const float> values, const DigestPlace& place) {
  Digest digest;
  for_each_run(place, 0, static_cast<std::int64_t>(values.size()),
               [&](std::int64_t begin, std::int64_t end, std::int64_t index) {
                 DigestRun run(place.key, index);
                 run.add(values.data() + begin, end - begin);
                 digest += run.sum();
               });
  return digest;
}

}  // namespace redspine
