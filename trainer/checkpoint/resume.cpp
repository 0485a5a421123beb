#include "trainer/checkpoint/resume.h"

#include <fmt/format.h>

#include "tensor/error.h"
#include "trainer/checkpoint/sight.h"

namespace redspine {
namespace {

// What is wrong with a checkpoint, or nothing and its record. Collective.
std::vector<std::string> open_checkpoint(const std::string& directory, const ResumeOptions& options,
                                         const ProcessGroup& world, ResumePoint& point) {
  std::vector<std::string> problems =
      verify_checkpoint(directory, options.verification, world, options.keep_going);
  if (!problems.empty()) return problems;
  std::string failure;
  try {
    point = {.directory = directory, .record = read_training_record(directory)};
  } catch (const std::exception& error) {
    failure = error.what();
  }
  for (const std::string& text : world.all_gather(failure)) {
    if (!text.empty()) return {text};
  }
  return {};
}

}  // namespace

std::optional<ResumePoint> find_resume_point(const ResumeOptions& options,
                                             const CheckpointStore& store,
                                             const ProcessGroup& world,
                                             const std::function<void(const std::string&)>& warn) {
  if (options.resume == "none") return std::nullopt;
  ResumePoint point;
  if (options.resume != "auto") {
    check_same_directory(options.resume, "checkpoint.resume", world);
    ConfigProblems problems;
    for (const std::string& problem : open_checkpoint(options.resume, options, world, point)) {
      problems.add("checkpoint.resume", problem);
    }
    problems.throw_if_any();
    return point;
  }
  const std::vector<std::int64_t> steps = agreed_steps(store, world);
  const auto skip = [&](const std::string& directory, const std::string& cause) {
    if (world.rank() == 0) warn(fmt::format("skipped the checkpoint {}: {}", directory, cause));
  };
  std::optional<ResumePoint> doubtful;
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    const std::string directory = store.path_of(*step);
    check_same_directory(directory, "checkpoint.resume", world);
    const std::vector<std::string> problems = open_checkpoint(directory, options, world, point);
    if (!problems.empty()) {
      const std::size_t num_more = problems.size() - 1;
      skip(directory, num_more == 0 ? problems.front()
                                    : fmt::format("{} (and {} more)", problems.front(), num_more));
      continue;
    }
    if (point.record.progress.num_skipped_in_a_row == 0) return point;
    skip(directory, fmt::format("it was saved after {} steps whose gradient was not finite",
                                point.record.progress.num_skipped_in_a_row));
    if (!doubtful) doubtful = point;
  }
  if (doubtful || steps.empty()) return doubtful;
  throw ConfigError("checkpoint.resume",
                    fmt::format("none of the {} checkpoints in {} can be used, and nothing was "
                                "changed; checkpoint.resume=none starts anew and sets them aside",
                                steps.size(), store.folder()));
}

}  // namespace redspine
