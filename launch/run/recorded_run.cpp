#include "launch/run/recorded_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "data/io/file.h"
#include "data/io/folders.h"
#include "launch/config/fields.h"
#include "tensor/printable.h"
#include "trainer/checkpoint/setting_changes.h"
#include "trainer/checkpoint/verify.h"

namespace redspine {
namespace {

constexpr const char* kConfigName = "/config.yaml";

struct RankCounts {
  std::int64_t data;
  std::int64_t tensor;

  bool operator==(const RankCounts&) const = default;
  std::string to_string() const { return fmt::format("{} data x {} tensor ranks", data, tensor); }
};

RankCounts layout_of(const TrainingRecord& record) {
  return {record.num_data_ranks, record.num_tensor_ranks};
}

std::optional<std::int64_t> newest_before(const std::vector<std::int64_t>& steps,
                                          std::int64_t step) {
  const auto end = std::lower_bound(steps.begin(), steps.end(), step);
  return end == steps.begin() ? std::nullopt : std::optional(*std::prev(end));
}

// Of the checkpoints after the start up to the first that has all the steps.
std::vector<TrainingRecord> records_of(const CheckpointStore& store,
                                       const std::vector<std::int64_t>& saved_steps,
                                       std::int64_t start, std::int64_t last) {
  std::vector<TrainingRecord> records;
  for (const std::int64_t step : saved_steps) {
    if (step <= start) continue;
    records.push_back(read_training_record(store.path_of(step)));
    if (step >= last) break;
  }
  return records;
}

void reject_changes(const std::vector<TrainingRecord>& records, bool is_exact) {
  ConfigProblems problems;
  for (std::size_t i = 1; i < records.size(); ++i) {
    const std::int64_t step = records[i - 1].progress.step;
    for (const SettingChange& change :
         changed_settings(records[i - 1].settings, records[i].settings)) {
      // Where a run ends and what it measures changes no step of it.
      if (change.key.starts_with("train.") || change.key == "data.validation") continue;
      if (change.is_of_layout && is_exact) continue;
      problems.add(change.key,
                   fmt::format("became {} after it was {} at step {}; audit the steps up to there "
                               "and those after it",
                               change.after, change.before, step));
    }
    if (layout_of(records[i - 1]) != layout_of(records[i]) && !is_exact) {
      problems.add("", fmt::format("the run went on with {} after step {}, which it had with {}; "
                                   "audit the steps up to there and those after it",
                                   layout_of(records[i]).to_string(), step,
                                   layout_of(records[i - 1]).to_string()));
    }
  }
  problems.throw_if_any();
}

// With nothing to compare, everything would be equal.
void reject_nothing_recorded(const RecordedRun& run, const std::vector<std::int64_t>& saved_steps,
                             const StepRange& replayed) {
  std::int64_t next = replayed.first;
  while (!run.metrics.has(next) &&
         !std::binary_search(saved_steps.begin(), saved_steps.end(), next)) {
    ++next;
  }
  if (next <= replayed.last) return;
  throw ConfigError(
      "--step",
      fmt::format("{} has recorded nothing of what is to be replayed, {}; its next line or "
                  "checkpoint is that of step {}",
                  run.directory, replayed.to_string(), next));
}

std::vector<std::string> recorded_words(const RecordedRun& run) {
  std::set<std::string> known;
  for (const Setting& setting : recorded_settings(Config{})) known.insert(setting.key);
  std::vector<std::string> words;
  if (run.records.empty()) return words;
  for (const Setting& setting : run.records.back().settings) {
    if (!setting.value.empty() && known.contains(setting.key)) {
      words.push_back(setting.key + "=" + setting.value);
    }
  }
  return words;
}

void reject_other_run(const Config& recorded, const Config& config) {
  ConfigProblems problems;
  for (const SettingChange& change :
       changed_settings(recorded_settings(recorded), recorded_settings(config))) {
    if (change.key == "data.train") continue;  // which may have moved; hashes tell what was read
    if (change.is_of_layout && config.run.exact) continue;
    problems.add(change.key,
                 fmt::format("is {}, and was {} in the run: {}", change.after, change.before,
                             change.is_of_layout ? "without run.exact that gives other bits"
                                                 : "an audit replays the run as it was"));
  }
  problems.throw_if_any();
}

void reject_other_layout(const RecordedRun& run, const Config& config, int world_size) {
  if (config.run.exact) return;
  if (run.records.empty()) {
    throw ConfigError(
        "--run", fmt::format("{} has no checkpoint that tells on how many ranks it was trained; "
                             "without run.exact it can be audited on that layout alone",
                             run.directory));
  }
  const RankCounts before = layout_of(run.records.back());
  const RankCounts now{config.num_data_ranks(world_size), config.parallel.tensor};
  if (before == now) return;
  throw ConfigError("", fmt::format("{} was trained on {} without run.exact, so that another "
                                    "layout gives other bits: audit it on {}, not on {}",
                                    run.directory, before.to_string(),
                                    counted(before.data * before.tensor, "rank"), now.to_string()));
}

}  // namespace

std::string StepRange::to_string() const {
  return first == last ? fmt::format("step {}", first) : fmt::format("steps {} to {}", first, last);
}

RecordedRun read_recorded_run(const std::string& directory,
                              const std::vector<std::int64_t>& saved_steps,
                              const StepRange& steps) {
  check_is_directory(directory);
  if (!exists(directory + kConfigName, "--run")) {
    throw ConfigError("--run",
                      fmt::format("{} is no run's directory: it has no config.yaml", directory));
  }
  RecordedRun run{.directory = directory,
                  .store = CheckpointStore(directory + "/checkpoints", ""),
                  .metrics = RecordedMetrics(directory + "/metrics.jsonl"),
                  .start = std::nullopt,
                  .records = {}};
  const std::int64_t last_step =
      std::max(run.metrics.last_step(), saved_steps.empty() ? 0 : saved_steps.back());
  if (steps.last > last_step) {
    throw ConfigError(
        steps.last == steps.first ? "--step" : "--to",
        fmt::format("is {}, but {} has had {}", steps.last, directory, counted(last_step, "step")));
  }
  if (const auto step = newest_before(saved_steps, steps.first)) {
    const std::string path = run.store.path_of(*step);
    run.start = {.directory = path, .record = read_training_record(path)};
  }
  const std::int64_t start = run.start ? run.start->record.progress.step : 0;
  run.records = records_of(run.store, saved_steps, start, steps.last);
  if (run.records.empty() && run.start) run.records.push_back(run.start->record);
  reject_nothing_recorded(run, saved_steps, {start + 1, steps.last});
  return run;
}

std::optional<ResumePoint> replay_start(const RecordedRun& run, const Config& config,
                                        std::int64_t first) {
  const std::string& resumed = config.checkpoint.resume;
  if (run.start || resumed == "auto" || resumed == "none") return run.start;
  ResumePoint point{.directory = resumed, .record = read_training_record(resumed)};
  if (point.record.progress.step >= first) return std::nullopt;
  return point;
}

EffectiveConfig replay_config(const RecordedRun& run, const std::vector<std::string>& settings,
                              int world_size) {
  const std::string path = run.directory + kConfigName;
  std::vector<std::string> words = recorded_words(run);
  // The replay may have one data rank, and is a check itself.
  words.emplace_back("run.spot_check_interval=0");
  const RankCounts layout =
      run.records.empty() ? RankCounts{world_size, 1} : layout_of(run.records.back());
  const Config recorded =
      load_config(path, words, static_cast<int>(layout.data * layout.tensor)).config;
  reject_changes(run.records, recorded.run.exact);
  words.insert(words.end(), settings.begin(), settings.end());
  EffectiveConfig effective = load_config(path, words, world_size);
  reject_other_run(recorded, effective.config);
  reject_other_layout(run, effective.config, world_size);
  effective.config.train.eval_interval = 0;
  return effective;
}

}  // namespace redspine
