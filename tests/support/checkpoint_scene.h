// The scene of a small run that has everything that a resume could lose: dropout, accumulation,
// a blend whose files and epochs end within a few steps, and evaluations on the steps of saves.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/scene.h"

namespace redspine::testing {

/// train.steps of a run that is ended before: however fast the machine, it has not had them by
/// then.
inline constexpr std::int64_t kEndless = 10'000'000;

/// How a job is started.
struct Start {
  int num_ranks = 1;           // 1: without mpirun
  std::string settings = "";   // KEY=VALUE ...
  std::string variables = "";  // NAME=VALUE ... of the environment of each rank
  std::string run = "run";
};

class CheckpointScene : public Scene {
 public:
  CheckpointScene();

  std::filesystem::path run_folder(std::string_view run = "run") const;
  std::filesystem::path checkpoints(std::string_view run = "run") const;
  std::filesystem::path checkpoint(std::int64_t step, std::string_view run = "run") const;

  static std::string binary();  // redspine
  /// A shell's command that trains.
  static std::string command(const Start& start);
  Ended train(const Start& start) const;
  /// The process of a rank of the job that was started last and has begun to train.
  pid_t process(int rank = 0) const;

  /// Lines of metrics.jsonl about training and validation, without the times.
  std::vector<std::string> trained(std::string_view run = "run") const;
  /// Whole lines of metrics.jsonl about events.
  std::vector<std::string> events(std::string_view run = "run") const;
  /// Steps of the folders that are named as checkpoints, ascending.
  std::vector<std::int64_t> steps(std::string_view run = "run") const;
  std::int64_t newest_step(std::string_view run = "run") const;  // 0: none
  /// Names of everything in the checkpoints' folder, sorted.
  std::vector<std::string> names(std::string_view run = "run") const;
  /// Hash by name of every tensor of a checkpoint, as its manifest has them.
  std::map<std::string, std::string> hashes(std::int64_t step, std::string_view run = "run") const;
};

std::string step_name(std::int64_t step);  // "step_00000500"

/// `lines` are the first of `all`.
void expect_prefix(const std::vector<std::string>& lines, const std::vector<std::string>& all);

}  // namespace redspine::testing
