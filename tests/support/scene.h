// Where a job of these tests takes place: a folder of its own with a small corpus and config.yaml,
// which trains at once on 1, 2 or 4 ranks. Paths in the configuration are relative to the folder.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/job.h"
#include "tests/support/scratch.h"

namespace redspine::testing {

/// `text` with its only `part` replaced; throws where there is none or more than one.
std::string replaced(std::string text, std::string_view part, std::string_view by);

class Scene {
 public:
  Scene();

  std::filesystem::path folder() const { return scratch_.folder(); }
  std::filesystem::path path(std::string_view name) const { return scratch_ / name; }

  std::string read(std::string_view name) const;
  void write(std::string_view name, std::string_view bytes) const;
  /// Ids 0 .. 255 without an order.
  void write_tokens(std::string_view name, std::int64_t num_tokens) const;
  /// Replaces a part of config.yaml.
  void edit(std::string_view part, std::string_view by) const;

  /// "REDSPINE WORDS".
  static std::string redspine(const std::string& words);
  /// "REDSPINE train --config config.yaml WORDS".
  static std::string train(const std::string& words = "");
  /// `command` as the ranks of a job; more of them may follow after " : -n 1 ".
  static std::string on_ranks(int num_ranks, const std::string& command);

  /// Runs to the end.
  Ended run(const std::string& command, double limit_seconds = kPatienceSeconds) const;

  /// The lines of RUN/metrics.jsonl, without the times.
  std::vector<std::string> metrics(std::string_view run) const;

 private:
  Scratch scratch_;
};

/// What a job's ranks wrote to standard error, without what mpirun adds.
std::vector<std::string> told(const Ended& ended);

/// Waits until `condition` holds, or throws after `limit_seconds`.
void wait_until(const std::function<bool()>& condition, double limit_seconds = kPatienceSeconds);

/// `value` in memory, little-endian as all formats of token files are.
template <class T>
std::string bytes_of(T value) {
  return {reinterpret_cast<const char*>(&value), sizeof(T)};
}

}  // namespace redspine::testing
