// The report of a save: the values that metrics.jsonl and the console show.
#pragma once

#include <cstdint>
#include <string>

namespace redspine {

/// Of a checkpoint that has its name and is durable.
struct SaveReport {
  std::int64_t step;
  std::string path;
  std::int64_t bytes;          // of the tensors
  double stall_seconds = 0.0;  // how long training stood still
  double seconds = 0.0;        // from the call until the checkpoint was there
};

}  // namespace redspine
