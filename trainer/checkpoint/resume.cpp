#include "trainer/checkpoint/resume.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <sstream>

#include "parallel/failure.h"

namespace redspine {
namespace {

// As rank 0 sees the folder: file systems may show another rank something older.
std::vector<std::int64_t> agreed_steps(const CheckpointStore& store, const RankGroup& world) {
  std::vector<std::int64_t> steps;
  run_together(world, [&] {
    if (world.rank() == 0) steps = store.steps();
  });
  const std::vector<std::string> texts = world.all_gather(fmt::format("{}", fmt::join(steps, " ")));
  std::istringstream text(texts.front());
  steps.clear();
  for (std::int64_t step = 0; text >> step;) steps.push_back(step);
  return steps;
}

// What is wrong with a checkpoint, or nothing and its record. Collective.
std::vector<std::string> open_checkpoint(const std::string& directory, const ResumeOptions& options,
                                         const RankGroup& world, ResumePoint& point) {
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
                                             const CheckpointStore& store, const RankGroup& world,
                                             const std::function<void(const std::string&)>& warn) {
  if (options.resume == "none") return std::nullopt;
  ResumePoint point;
  if (options.resume != "auto") {
    const std::vector<std::string> problems =
        open_checkpoint(options.resume, options, world, point);
    Mistakes mistakes;
    for (const std::string& problem : problems) mistakes.add("checkpoint.resume", problem);
    mistakes.throw_if_any();
    return point;
  }
  const std::vector<std::int64_t> steps = agreed_steps(store, world);
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    const std::string directory = store.path_of(*step);
    const std::vector<std::string> problems = open_checkpoint(directory, options, world, point);
    if (problems.empty()) return point;
    if (world.rank() != 0) continue;
    const std::size_t num_more = problems.size() - 1;
    warn(fmt::format("skipped the checkpoint {}: {}{}", directory, problems.front(),
                     num_more == 0 ? "" : fmt::format(" (and {} more)", num_more)));
  }
  return std::nullopt;
}

}  // namespace redspine
