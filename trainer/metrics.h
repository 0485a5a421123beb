// RUN/metrics.jsonl: what a run measured, one JSON object a line, written by rank 0 and flushed a
// line at a time. Numbers print as the shortest text that reads back to the same bits; numbers that
// are not finite print as strings ("nan", "inf", "-inf").
#pragma once

#include <cstdint>
#include <fstream>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "trainer/config.h"
#include "trainer/report.h"

namespace redspine {

class MetricsLog {
 public:
  /// Starts a new file, or goes on with the one that is there, as an uninterrupted run would have
  /// written it: without what it says of steps after `resumed_step`, without lines that are there
  /// only because the run was to end at that step, and without lines that a crash cut short.
  /// Throws Error where it cannot be written.
  MetricsLog(const std::string& path, const TrainConfig& config,
             std::optional<std::int64_t> resumed_step);

  void write(const StepReport& report);
  void write(const ValidationReport& report);
  void write(const SaveReport& report);
  /// {"kind":"event","event":name,"step":step} and the fields of `more`, an object.
  void write_event(const std::string& name, std::int64_t step, const nlohmann::ordered_json& more);

 private:
  void write_line(const nlohmann::ordered_json& object);

  std::string path_;
  std::ofstream file_;
};

}  // namespace redspine
