// redspine audit: replays steps of a run and says whether they are what the run has recorded.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sstream>

#include "data/io/folders.h"
#include "data/io/output.h"
#include "launch/commands/command.h"
#include "launch/job/job.h"
#include "launch/run/device_choice.h"
#include "launch/run/recorded_run.h"
#include "launch/run/run_data.h"
#include "tensor/printable.h"
#include "trainer/audit.h"
#include "trainer/checkpoint/loader.h"
#include "trainer/checkpoint/sight.h"

namespace redspine {
namespace {

namespace po = boost::program_options;

po::options_description make_options() {
  po::options_description options("Options");
  options.add_options()                                                               //
      ("run", po::value<std::string>(), "the run's directory")                        //
      ("step", po::value<std::int64_t>(), "the first step to audit, counted from 1")  //
      ("to", po::value<std::int64_t>(), "the last one; if not given, the same")       //
      ("help", "this text");
  add_set_option(options,
                 "KEY=VALUE ...: another layout, where the run is exact, like parallel.tensor=2");
  return options;
}

struct Options {
  std::string run;
  StepRange steps;
  std::vector<std::string> settings;
};

Options read_options(Arguments arguments) {
  const po::variables_map values = parse_arguments(arguments, make_options());
  for (const char* option : {"run", "step"}) {
    if (values.contains(option)) continue;
    throw ConfigError("",
                      fmt::format("--{} is missing; all options: redspine audit --help", option));
  }
  Options options{
      .run = values["run"].as<std::string>(), .steps = {}, .settings = set_arguments(values)};
  while (options.run.size() > 1 && options.run.ends_with('/')) options.run.pop_back();
  options.steps.first = values["step"].as<std::int64_t>();
  options.steps.last =
      values.contains("to") ? values["to"].as<std::int64_t>() : options.steps.first;
  if (options.steps.first < 1) {
    throw ConfigError("--step", fmt::format("is {}; legal: from 1 on", options.steps.first));
  }
  if (options.steps.last < options.steps.first) {
    throw ConfigError("--to", fmt::format("is {}; legal: from --step {} on", options.steps.last,
                                          options.steps.first));
  }
  return options;
}

/// Looks for what is wrong with the checkpoint before any step is made of it.
std::vector<std::string> problems_of_start(const std::optional<ResumePoint>& start,
                                           const ProcessGroup& world) {
  if (!start) return {};
  return verify_checkpoint(start->directory, Verification::full, world);
}

void load(const Config& config, const std::optional<ResumePoint>& start,
          const TrainingTensors& tensors, const LoadTarget& target) {
  if (start) {
    load_state(start->directory, config.model, tensors, target);
  } else if (!config.checkpoint.initialize_from.empty()) {
    load_weights(config.checkpoint.initialize_from, config.model, target);
  }
}

std::string describe_replay(const Options& options, const std::optional<ResumePoint>& start,
                            const ProcessMesh& mesh) {
  const std::int64_t first = start ? start->record.progress.step + 1 : 1;
  return fmt::format("{}: {}, replayed from {} on {} data x {} tensor ranks\n", options.run,
                     StepRange{first, options.steps.last}.to_string(),
                     start ? start->directory : "the beginning", mesh.group(Axis::data).size(),
                     mesh.group(Axis::tensor).size());
}

int report(const AuditResult& result) {
  for (const std::string& difference : result.differences) {
    print_out("different: {}\n", difference);
  }
  if (!result.differences.empty()) return kExitFailed;
  std::string compared = counted(result.num_lines, "line") + " of metrics.jsonl";
  if (!result.checkpoints.empty()) {
    compared += fmt::format(", and the tensors of {}", fmt::join(result.checkpoints, ", "));
  }
  print_out("equal: {}\n", compared);
  return kExitDone;
}

int audit(const MpiSession& session, Arguments arguments) {
  const ProcessGroup& world = session.world();
  const Options options = agree(world, [&] { return read_options(arguments); });
  const std::vector<std::int64_t> saved_steps = agree(world, [&] {
    return agreed_steps(CheckpointStore(options.run + "/checkpoints", ""), world);
  });
  const RecordedRun run =
      agree(world, [&] { return read_recorded_run(options.run, saved_steps, options.steps); });
  const EffectiveConfig effective =
      agree(world, [&] { return replay_config(run, options.settings, world.size()); });
  const Config& config = effective.config;
  reject_unequal(world, "configuration", to_yaml(config));
  const auto start = agree(world, [&] { return replay_start(run, config, options.steps.first); });

  const JobThreads threads = agree_on_threads(world);
  RunData data = agree_with_places(world, effective, [&] { return RunData(config); });
  const DataFingerprint fingerprint = agree_on_data(world, data);
  const auto device = agree_on_device(session, effective, threads);
  log_warnings(world, threads);
  if (!run.records.empty()) log_data_changes(world, run.records.back().data, fingerprint);
  AuditResult damage;
  damage.differences = problems_of_start(start, world);
  if (!damage.differences.empty()) {
    if (world.rank() == 0) report(damage);
    return kExitFailed;
  }
  Trainer trainer(config, data, world, *device,
                  start ? start->record.progress : TrainingProgress{});
  return run_or_abort(session, [&] {
    agree_with_places(world, effective, [&] {
      load(config, start, trainer.tensors(),
           {.store = trainer.model().parameters(), .device = *device});
      return true;
    });
    if (world.rank() == 0) write_out(describe_replay(options, start, trainer.mesh()));
    const AuditResult result = audit(
        trainer, *device,
        {.config = config, .metrics = run.metrics, .store = run.store, .saved_steps = saved_steps},
        options.steps.last);
    if (world.rank() == 0) report(result);
    return result.differences.empty() ? kExitDone : kExitFailed;
  });
}

}  // namespace

int run_audit(Arguments arguments) {
  if (asks_for_help(arguments)) {
    std::ostringstream text;
    text << make_options();
    print_out(
        "redspine audit --run DIR --step A [--to B] [--set KEY=VALUE ...]\n"
        "Replays the steps from the newest checkpoint before A on, under mpirun on as many ranks "
        "as\n"
        "the run had, and compares them with its metrics.jsonl and its checkpoints, which stay as\n"
        "they are. Exit code 0 for equal ones, 1 for different ones\n\n{}",
        text.str());
    return kExitDone;
  }
  return run_job([&](const MpiSession& session) { return audit(session, arguments); });
}

}  // namespace redspine
