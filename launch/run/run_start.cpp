#include "launch/run/run_start.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>

#include "data/io/folders.h"
#include "launch/config/fields.h"
#include "launch/job/agree.h"
#include "launch/job/version.h"
#include "launch/run/run_needs.h"
#include "tensor/printable.h"
#include "trainer/checkpoint/setting_changes.h"
#include "trainer/checkpoint/sight.h"
#include "trainer/console.h"
#include "trainer/training_run.h"

namespace redspine {
namespace {

/// On rank 0 alone, but a problem that it finds is one of all ranks.
template <class Action>
void on_rank_0(const ProcessGroup& world, const EffectiveConfig& effective, const Action& action) {
  agree_with_places(world, effective, [&] {
    if (world.rank() == 0) action();
    return true;
  });
}

/// With nothing in it that was not there before where it cannot be used: what a run writes late is
/// tried first.
void make_run_directory(const RunConfig& config) {
  const std::string directory = run_directory(config);
  const std::string checkpoints = directory + "/checkpoints";
  std::error_code failure;
  std::filesystem::create_directories(directory, failure);
  if (failure) reject_output(config_path(config), failure.value());
  std::filesystem::create_directories(checkpoints, failure);
  if (failure) reject_output(checkpoints, failure.value());
  if (::access(checkpoints.c_str(), R_OK | W_OK | X_OK) != 0) reject_output(checkpoints, errno);
  for (const std::string& path : {metrics_path(config), config_path(config)}) {
    if (!std::ofstream(path, std::ios::app)) reject_output(path, errno);
  }
}

/// Also where there is no such folder.
bool is_empty(const CheckpointStore& store) {
  std::error_code failure;
  const std::filesystem::directory_iterator folder(store.folder(), failure);
  if (failure && failure != std::errc::no_such_file_or_directory &&
      failure != std::errc::not_a_directory) {
    reject_output(store.folder(), failure.value());
  }
  return store.steps().empty();
}

void write_config(const Config& config) {
  replace_text(config_path(config.run),
               fmt::format("# The effective configuration of this run, by redspine {}.\n{}",
                           version_number(), to_yaml(config)));
}

std::string run_id_of(const RunConfig& config) {
  constexpr std::size_t kDigits = 16;
  const std::string path = run_id_path(config);
  std::error_code failure;
  if (std::filesystem::exists(path, failure)) {
    std::string id = read_text(path);
    if (!id.empty() && id.back() == '\n') id.pop_back();
    if (id.size() == kDigits && id.find_first_not_of("0123456789abcdef") == std::string::npos) {
      return id;
    }
  }
  std::random_device device;
  std::string id = fmt::format("{:08x}{:08x}", device(), device());
  replace_text(path, id + "\n");
  return id;
}

/// Checkpoints that a run leaves behind when it starts elsewhere must not be taken for its own. Nor
/// those that could not be read: what is wrong with them may pass.
void set_aside_after(const CheckpointStore& store, std::int64_t last_step) {
  for (const std::int64_t step : store.steps()) {
    if (step <= last_step) continue;
    const std::string path = store.path_of(step);
    print_console("{}: set aside as {}\n", path, store.set_aside(step));
  }
}

void log_changes(const ResumePoint& resumed, const Config& config, const ProcessGroup& world) {
  const TrainingRecord& record = resumed.record;
  const int num_data_ranks = static_cast<int>(config.num_data_ranks(world.size()));
  const int num_tensor_ranks = static_cast<int>(config.parallel.tensor);
  if (num_data_ranks != record.num_data_ranks || num_tensor_ranks != record.num_tensor_ranks) {
    print_console("layout: {} data x {} tensor -> {} data x {} tensor (losses by rounding alone)\n",
                  record.num_data_ranks, record.num_tensor_ranks, num_data_ranks, num_tensor_ranks);
  }
  for (const SettingChange& change : changed_settings(record.settings, recorded_settings(config))) {
    print_console("{}: {} -> {} ({})\n", change.key, change.before, change.after, change.effect);
  }
}

void reject_incompatible(const ResumePoint& resumed, const Config& config) {
  ConfigProblems problems;
  for (const SettingChange& change :
       changed_settings(resumed.record.settings, recorded_settings(config))) {
    if (change.is_compatible) continue;
    problems.add(change.key, fmt::format("is {}, but {} was saved with {}: {}", change.after,
                                         resumed.directory, change.before, change.effect));
  }
  problems.throw_if_any();
}

/// A run that had checkpoints and has none is more likely to lack a file system than to be wanted
/// anew.
void reject_lost_checkpoints(const Config& config, const CheckpointStore& store) {
  if (!std::filesystem::is_regular_file(metrics_path(config.run))) return;
  std::ifstream metrics(metrics_path(config.run));
  for (std::string line; std::getline(metrics, line);) {
    if (!line.starts_with(R"({"kind":"checkpoint",)")) continue;
    throw ConfigError("checkpoint.resume",
                      fmt::format("{} lists checkpoints, but {} has none, and nothing was changed; "
                                  "checkpoint.resume=none starts anew",
                                  metrics_path(config.run), store.folder()));
  }
}

/// Collective, and the same on every rank: where the run goes on, if anywhere.
std::optional<ResumePoint> find_start(const ProcessGroup& world, const EffectiveConfig& effective,
                                      const CheckpointStore& store, const KeepGoing& keep_going) {
  const Config& config = effective.config;
  const ResumeOptions options{
      .resume = config.checkpoint.resume,
      .verification = config.checkpoint.verify ? Verification::full : Verification::sizes,
      .keep_going = keep_going};
  return agree_with_places(world, effective, [&] {
    auto resumed = find_resume_point(options, store, world, [&](const std::string& text) {
      log_from_rank(world, "warning: " + text);
    });
    if (resumed) reject_incompatible(*resumed, config);
    if (!resumed && options.resume == "auto" && world.rank() == 0) {
      reject_lost_checkpoints(config, store);
    }
    return resumed;
  });
}

/// Whether there is nothing to resume from, which shows without a look into any checkpoint.
bool is_sure_to_begin(const ProcessGroup& world, const EffectiveConfig& effective,
                      const CheckpointStore& store) {
  const std::string& resume = effective.config.checkpoint.resume;
  double is_sure = resume == "none" ? 1.0 : 0.0;
  on_rank_0(world, effective, [&] {
    if (resume == "auto" && is_empty(store)) is_sure = 1.0;
  });
  return world.all_reduce(is_sure, ReduceOp::max) > 0.0;
}

/// The checkpoints of a run whose directory nobody has taken.
CheckpointStore unowned_store(const Config& config) {
  return {run_directory(config.run) + "/checkpoints", ""};
}

}  // namespace

void log_start(const std::optional<ResumePoint>& resumed, const Config& config,
               const ProcessGroup& world) {
  if (resumed) {
    const TrainingProgress& progress = resumed->record.progress;
    print_console("resuming from {} after step {} ({}){}\n", resumed->directory, progress.step,
                  counted(progress.samples_consumed, "sample"),
                  config.checkpoint.verify ? "" : kUnverified);
    log_changes(*resumed, config, world);
    if (progress.step >= config.train.steps) {
      print_console("the run has had its {}: there is nothing to do\n",
                    counted(config.train.steps, "step"));
    }
  } else if (!config.checkpoint.initialize_from.empty()) {
    write_console(describe_initial_weights(config));
  } else {
    print_console("starting at step 0 with new weights\n");
  }
}

std::optional<ResumePoint> look_at_start(const ProcessGroup& world,
                                         const EffectiveConfig& effective) {
  const Config& config = effective.config;
  const CheckpointStore store = unowned_store(config);
  on_rank_0(world, effective, [&] {
    check_run_directory(config.run);
    RunLock::check_free(run_directory(config.run));
    is_empty(store);
  });
  std::optional<ResumePoint> resumed = find_start(world, effective, store, {});
  if (!resumed) check_initial_weights(world, effective, {});
  return resumed;
}

RunStart start_run(const ProcessGroup& world, const EffectiveConfig& effective,
                   RequestWatch& watch) {
  const Config& config = effective.config;
  const std::string directory = run_directory(config.run);
  const KeepGoing keep_going = [&watch] { return !watch.is_stop_asked(); };
  // What can be rejected without the run's directory is, before anything is made. What is in the
  // directory is looked at under its lock.
  const CheckpointStore unowned = unowned_store(config);
  on_rank_0(world, effective, [&] { check_run_directory(config.run); });
  const bool is_automatic = config.checkpoint.resume == "auto";
  std::optional<ResumePoint> resumed;
  if (!is_automatic) resumed = find_start(world, effective, unowned, keep_going);
  if (is_sure_to_begin(world, effective, unowned)) {
    check_initial_weights(world, effective, keep_going);
  }
  std::unique_ptr<RunLock> lock;
  std::string run_id;
  on_rank_0(world, effective, [&] {
    make_run_directory(config.run);
    lock = std::make_unique<RunLock>(directory);
    if (!lock->takeover().empty()) log_from_rank(world, lock->takeover());
    run_id = run_id_of(config.run);
  });
  CheckpointStore store(directory + "/checkpoints", world.all_gather(run_id).front());
  if (is_automatic) resumed = find_start(world, effective, store, keep_going);
  // With nothing to read there is nothing that takes long.
  const bool has_read = resumed || !config.checkpoint.initialize_from.empty();
  const Requests requests = has_read ? agree_on(watch.poll(), world) : Requests{};
  if (!requests.stops()) {
    agree_with_places(world, effective, [&] {
      check_shared_folder(store, world);
      return true;
    });
    if (world.rank() == 0) log_start(resumed, config, world);
  }
  return {.lock = std::move(lock),
          .store = std::move(store),
          .resumed = std::move(resumed),
          .requests = requests};
}

void take_over_directory(const ProcessGroup& world, const EffectiveConfig& effective,
                         const RunStart& start) {
  on_rank_0(world, effective, [&] {
    write_config(effective.config);
    for (const std::string& path : start.store.remove_stale_partials()) {
      print_console("{}: removed, an unfinished save\n", path);
    }
    set_aside_after(start.store, start.resumed ? start.resumed->record.progress.step : -1);
  });
}

}  // namespace redspine
