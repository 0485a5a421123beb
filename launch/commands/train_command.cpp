// redspine train: from the command line to a Trainer that runs, on every rank of the job.

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <sstream>
#include <utility>

#include "data/io/output.h"
#include "launch/commands/command.h"
#include "launch/config/fields.h"
#include "launch/config/machine_file.h"
#include "launch/job/agree.h"
#include "launch/job/job.h"
#include "launch/run/device_choice.h"
#include "launch/run/layout.h"
#include "launch/run/plan_report.h"
#include "launch/run/run_data.h"
#include "launch/run/run_needs.h"
#include "launch/run/run_start.h"
#include "parallel/group/failure.h"
#include "tensor/device.h"
#include "trainer/checkpoint/loader.h"
#include "trainer/checkpoint/saver.h"
#include "trainer/console.h"
#include "trainer/optimizer/schedule.h"
#include "trainer/plan/memory_plan.h"
#include "trainer/requests.h"
#include "trainer/training_run.h"

namespace redspine {
namespace {

namespace po = boost::program_options;

po::options_description make_options() {
  po::options_description options("Options");
  add_config_options(options, "the run's configuration (YAML)");
  options.add_options()  //
      ("machine", po::value<std::string>(),
       "what the ranks are (YAML, configs/machines/): predicts the time, and compares it at the "
       "end")                                                                                    //
      ("dry-run", "check everything, show the effective configuration and the layout, and end")  //
      ("help", "this text");
  return options;
}

struct Options {
  EffectiveConfig effective;
  std::optional<Machine> machine;
  bool is_dry_run;
};

Options read_options(Arguments arguments, int world_size) {
  const po::variables_map values = parse_arguments(arguments, make_options());
  std::optional<Machine> machine;
  if (values.contains("machine")) machine = load_machine(values["machine"].as<std::string>());
  return {.effective = read_config(values, "train", world_size),
          .machine = std::move(machine),
          .is_dry_run = values.contains("dry-run")};
}

void log_warnings(const ProcessGroup& world, const JobThreads& threads,
                  const EffectiveConfig& effective) {
  log_warnings(world, threads);
  if (world.rank() != 0) return;
  const ConfigError warnings = with_places(
      ConfigError(schedule_warnings(effective.config.optimizer, effective.config.schedule,
                                    effective.config.train.steps)),
      effective);
  for (const ConfigProblem& warning : warnings.problems()) {
    log_from_rank(world, "warning: " + warning.text);
  }
}

/// Weights and moments of the place where the run goes on; nothing to load at a fresh start.
void load(const Config& config, const RunStart& start, const TrainingTensors& tensors,
          const LoadTarget& target) {
  if (start.resumed) {
    load_state(start.resumed->directory, config.model, tensors, target);
  } else if (!config.checkpoint.initialize_from.empty()) {
    load_weights(config.checkpoint.initialize_from, config.model, target);
  }
}

/// Whether what was loaded is what was saved, and the same on all ranks that hold the same.
void check_loaded(const RunStart& start, Trainer& trainer) {
  const Digest digest = trainer.weights_digest();
  if (!start.resumed || !start.resumed->record.digests) return;
  const Digest& recorded = start.resumed->record.digests->weights;
  if (digest == recorded) return;
  throw CollectiveError(
      fmt::format("{}: the weights as they were loaded have the digest {}; training.json says {}",
                  start.resumed->directory, digest.text(), recorded.text()));
}

/// A run that was stopped before it could train: all that it has is on the disk already.
int end_at_start(const ProcessGroup& world, const Requests& requests, RequestWatch& watch) {
  if (world.rank() == 0) {
    print_console("stopped while starting on request ({}): no step was run, so nothing is saved\n",
                  requests.stop_cause());
  }
  watch.done(Request::stop_file);
  return kExitStopped;
}

int run(const EffectiveConfig& effective, const DataFingerprint& fingerprint, const RunStart& start,
        RequestWatch& watch, Trainer& trainer, Device& device, PlanReport& planned) {
  const ProcessGroup& world = trainer.mesh().world();
  const Config& config = effective.config;
  const bool has_to_load = start.resumed || !config.checkpoint.initialize_from.empty();
  if (has_to_load) {
    agree_with_places(world, effective, [&] {
      load(config, start, trainer.tensors(),
           {.store = trainer.model().parameters(), .device = device, .keep_going = [&watch] {
              return !watch.is_stop_asked();
            }});
      return true;
    });
    const Requests requests = agree_on(watch.poll(), world);
    if (requests.stops()) return end_at_start(world, requests, watch);
    check_loaded(start, trainer);
  }
  take_over_directory(world, effective, start);
  std::optional<std::string> resumed_from;
  if (start.resumed) resumed_from = start.resumed->directory;
  // A run that saves at its end alone has no training to go on with meanwhile, and needs no memory
  // for a snapshot.
  const bool saves_in_background = config.checkpoint.async && config.checkpoint.interval > 0;
  CheckpointSaver saver(
      {.model = config.model,
       .mode = saves_in_background ? SaveMode::asynchronous : SaveMode::synchronous,
       .retention = {.keep = config.checkpoint.keep,
                     .keep_every = config.checkpoint.keep_every,
                     .resumed_from = resumed_from},
       .check_replicas = config.run.check_replicas},
      start.store, trainer.mesh(), trainer.model().parameters(), device);
  const RunEnd end =
      run_training(trainer, config,
                   {.run_id = start.store.run_id(),
                    .settings = recorded_settings(config),
                    .data = fingerprint,
                    .resumed = start.resumed},
                   {.saver = saver,
                    .store = start.store,
                    .watch = watch,
                    .on_step = [&planned](const StepReport& report) { planned.add(report); }});
  if (world.rank() == 0) write_console(planned.comparison(device));
  return end == RunEnd::stopped ? kExitStopped : kExitDone;
}

/// A bit that is to flip, for tests of what notices it.
std::optional<BitFlip> read_fault(int num_ranks) {
  constexpr const char* kVariable = "REDSPINE_FLIP_BIT";
  const char* text = std::getenv(kVariable);
  if (text == nullptr) return std::nullopt;
  BitFlip fault = BitFlip::parse(text, kVariable);
  if (fault.rank >= num_ranks) {
    throw ConfigError(kVariable, fmt::format("names rank {} of {}", fault.rank, num_ranks));
  }
  return fault;
}

int train(const MpiSession& session, const StopSignals& signals, Arguments arguments) {
  const ProcessGroup& world = session.world();
  const Options options = agree(world, [&] { return read_options(arguments, world.size()); });
  const Config& config = options.effective.config;
  reject_unequal(world, "configuration", to_yaml(config));
  const std::optional<BitFlip> fault = agree(world, [&] { return read_fault(world.size()); });

  const JobThreads threads = agree_on_threads(world);
  RunData data = agree_with_places(world, options.effective, [&] { return RunData(config); });
  const DataFingerprint fingerprint = agree_on_data(world, data);
  agree_with_places(world, options.effective, [&] {
    if (world.rank() == 0) check_tokenizer(config);
    return true;
  });
  const auto device = agree_on_device(session, options.effective, threads);
  const MemoryPlan memory = plan_memory(config, world, device->kind());
  PlanReport planned = agree_with_places(world, options.effective, [&] {
    return PlanReport(config, world.size(), device->kind(), memory, options.machine);
  });
  const std::string plan = describe_devices(world, *device) + to_string(memory) + '\n' +
                           planned.prediction() +
                           describe_schedule(config.optimizer, config.schedule);
  if (options.is_dry_run) {
    const auto resumed = look_at_start(world, options.effective);
    log_warnings(world, threads, options.effective);
    if (resumed) log_data_changes(world, resumed->record.data, fingerprint);
    if (world.rank() == 0) {
      print_out("{}\n{}{}", to_yaml_with_origins(options.effective),
                describe_layout(config, threads.hosts, threads.plan.num_threads),
                plan + describe_unused_tokens(data.training));
      flush_out();  // what a run's console cannot show is no error, but this was asked for
      log_start(resumed, config, world);
    }
    return kExitDone;
  }
  RequestWatch watch(run_directory(config.run), world.rank(), signals);
  const RunStart start = start_run(world, options.effective, watch);
  if (start.requests.stops()) return end_at_start(world, start.requests, watch);
  log_warnings(world, threads, options.effective);
  if (start.resumed) log_data_changes(world, start.resumed->record.data, fingerprint);
  if (world.rank() == 0) {
    if (!watch.warning().empty()) log_from_rank(world, "warning: " + watch.warning());
    write_console(plan + describe_unused_tokens(data.training));
  }
  const TrainingProgress progress =
      start.resumed ? start.resumed->record.progress : TrainingProgress{};
  Trainer trainer(config, data, world, *device, progress);
  if (fault) trainer.inject(*fault);
  return run_or_abort(session, [&] {
    return run(options.effective, fingerprint, start, watch, trainer, *device, planned);
  });
}

}  // namespace

int run_train(Arguments arguments) {
  if (asks_for_help(arguments)) {
    std::ostringstream text;
    text << make_options();
    print_out(
        "redspine train --config FILE [--set KEY=VALUE ...] [--dry-run] [--machine FILE]\n\n{}",
        text.str());
    return kExitDone;
  }
  const StopSignals signals;
  return run_job([&](const MpiSession& session) { return train(session, signals, arguments); });
}

}  // namespace redspine
