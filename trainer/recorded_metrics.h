// What a run wrote to metrics.jsonl about its training steps, to be compared with the same steps
// once more. Local; reads only.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "trainer/report.h"

namespace redspine {

class RecordedMetrics {
 public:
  /// ConfigError where the file cannot be read. Lines that are no JSON, as a crash leaves one, are
  /// passed over.
  explicit RecordedMetrics(const std::string& path);

  bool has(std::int64_t step) const { return lines_.contains(step); }
  /// 0 where there is no line of any.
  std::int64_t last_step() const { return lines_.empty() ? 0 : lines_.rbegin()->first; }

  /// In what the line of a step, which is there, differs from `replayed`, apart from times: each
  /// key with both values. Empty where in nothing; what earlier versions did not write is not
  /// compared.
  std::string differences(const StepReport& replayed) const;
  /// The same of the weights alone.
  std::string differences(std::int64_t step, const Digest& weights) const;

 private:
  std::map<std::int64_t, std::string> lines_;  // by step
};

}  // namespace redspine
