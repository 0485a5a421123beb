// What a run reports while it goes: metrics.jsonl and the console, both of rank 0. On other ranks
// it does nothing, so that nobody has to ask.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "trainer/checkpoint/save_report.h"
#include "trainer/config.h"
#include "trainer/console.h"
#include "trainer/metrics.h"
#include "trainer/report.h"

namespace redspine {

class RunLog {
 public:
  /// `config` outlives it. Goes on after `resumed_step`, or starts anew.
  RunLog(const Config& config, std::optional<std::int64_t> resumed_step, int rank);

  /// A line where one is due; its times are those of all steps since the line before.
  void record(const StepReport& report);
  void record(const ValidationReport& report);
  void record(const SaveReport& report);
  void record_resume(std::int64_t step, const std::string& directory);
  void record_stop(std::int64_t step, const std::string& cause);
  /// On the console alone.
  void say(const std::string& text);
  /// Returns once metrics.jsonl is on the medium.
  void sync();
  /// Whether metrics.jsonl or its folder was deleted, or is another file by now.
  bool is_lost() const;
  /// Writes a metrics.jsonl that was deleted again, as it was. Throws Error where there is another.
  void restore();

 private:
  struct Outputs {
    Outputs(const Config& config, std::optional<std::int64_t> resumed_step);

    MetricsLog metrics;
    Console console;
  };

  const Config& config_;
  std::optional<Outputs> outputs_;
  std::optional<StepReport> untold_;  // of the steps since the last line
};

}  // namespace redspine
