// redspine plan: what a configuration takes on so many ranks, known without them: no MPI, no GPU,
// no data. Model and optimizer are made on a device that only counts, as --dry-run does.

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <utility>

#include "data/io/output.h"
#include "launch/commands/command.h"
#include "launch/commands/table.h"
#include "launch/config/machine_file.h"
#include "launch/run/planning.h"
#include "model/model_spec.h"
#include "tensor/printable.h"
#include "trainer/plan/memory_classes.h"
#include "trainer/plan/run_plan.h"
#include "trainer/plan/search.h"

namespace redspine {
namespace {

namespace po = boost::program_options;
using Json = nlohmann::ordered_json;

constexpr std::int64_t kMostRanks = 1 << 20;

po::options_description make_options() {
  po::options_description options("Options");
  add_config_options(options, "the run's configuration (YAML); its data is not looked at");
  options.add_options()                                               //
      ("ranks", po::value<std::int64_t>(), "how many there will be")  //
      ("machine", po::value<std::string>(),
       "what they compute on (YAML), like configs/machines/h100-8.yaml: for the time")  //
      ("search", "every layout on the machine: which fit, the fastest first")           //
      ("json", "one line of JSON")                                                      //
      ("help", "this text");
  return options;
}

struct Options {
  EffectiveConfig effective;
  int num_ranks;
  std::optional<Machine> machine;
  bool searches;
  bool writes_json;

  const Machine* machine_or_null() const { return machine ? &*machine : nullptr; }
};

int ranks_of(const po::variables_map& values) {
  if (!values.contains("ranks")) {
    throw ConfigError("", "--ranks N is missing; all options: redspine plan --help");
  }
  const auto ranks = values["ranks"].as<std::int64_t>();
  if (ranks < 1 || ranks > kMostRanks) {
    throw ConfigError("--ranks", fmt::format("is {}; legal: 1 to {}", ranks, kMostRanks));
  }
  return static_cast<int>(ranks);
}

Options read_options(Arguments arguments) {
  const po::variables_map values = parse_arguments(arguments, make_options());
  const int num_ranks = ranks_of(values);
  std::optional<Machine> machine;
  if (values.contains("machine")) machine = load_machine(values["machine"].as<std::string>());
  const bool searches = values.contains("search");
  if (searches && !machine) {
    throw ConfigError("--search", "needs --machine FILE, by which layouts are compared");
  }
  // A search checks each layout by itself, whether or not the configuration's own fits the ranks.
  const std::vector<std::string> any_layout = {"parallel.tensor=1", "batch.micro_batch_size=1"};
  return {.effective = searches ? read_config(values, "plan", 1, any_layout)
                                : read_config(values, "plan", num_ranks),
          .num_ranks = num_ranks,
          .machine = std::move(machine),
          .searches = searches,
          .writes_json = values.contains("json")};
}

const char* name_of(DeviceKind kind) { return kind == DeviceKind::cuda ? "cuda" : "cpu"; }

Json to_json(const RunTime& time) {
  const StepTime& step = time.step;
  return {{"step_seconds", step.seconds()},
          {"products_seconds", step.products},
          {"attention_seconds", step.attention},
          {"other_kernels_seconds", step.memory},
          {"update_seconds", step.update},
          {"tensor_wait_seconds", step.tensor_waits},
          {"data_wait_seconds", step.data_waits},
          {"host_seconds", step.host},
          {"tokens_per_second", time.tokens_per_second},
          {"tflops_per_rank", time.model_flops * 1e-12},
          {"mfu", time.mfu},
          {"save_seconds", time.save_seconds},
          {"run_seconds", time.run_seconds}};
}

Json to_json(const Options& options, DeviceKind kind, const RunPlan& plan) {
  const Config& config = options.effective.config;
  const MeshShape shape = config.parallel.mesh(options.num_ranks);
  Json line = {{"kind", "plan"},
               {"run", config.run.name},
               {"device", name_of(kind)},
               {"ranks", options.num_ranks},
               {"data", shape.size(Axis::data)},
               {"tensor", shape.size(Axis::tensor)},
               {"recompute", word_of(config.parallel.recompute)},
               {"precision", word_of(config.run.precision)},
               {"micro_batch_size", config.batch.micro_batch_size},
               {"parameters", num_parameters(config.model)}};
  const MemoryPlan& memory = plan.memory;
  Json& bytes = line["memory_bytes"];
  for (const MemoryClass& each : kMemoryClasses) bytes[each.key] = memory.*each.bytes;
  line["allocated_bytes"] = memory.total();
  line["device_bytes"] = memory.on_device(kind);
  for (std::size_t axis = 0; axis < kNumAxes; ++axis) {
    line["communication"][name_of(kAxes[axis])] = {{"calls", plan.traffic[axis].num_calls},
                                                   {"bytes", plan.traffic[axis].bytes}};
  }
  line["checkpoint_bytes"] = plan.checkpoint_bytes;
  line["checkpoints"] = plan.num_checkpoints;
  if (options.machine) {
    line["machine"] = options.machine->name;
    line["fits"] = memory_problem(memory, *options.machine).empty();
    line["predicted"] = to_json(*plan.time);
  }
  return line;
}

void show(const Options& options, DeviceKind kind, const RunPlan& plan) {
  const Config& config = options.effective.config;
  const MeshShape shape = config.parallel.mesh(options.num_ranks);
  print_out("plan: {} parameters on {} ({}) = {} data x {} tensor\n{}{}",
            num_parameters(config.model), counted(options.num_ranks, "rank"), name_of(kind),
            shape.size(Axis::data), shape.size(Axis::tensor),
            memory_table(plan.memory, kind, options.machine_or_null()), traffic_text(plan));
  if (options.machine) print_out("{}", time_text(*plan.time, config, *options.machine));
}

Json to_json(const Layout& layout, int num_ranks) {
  return {{"data", num_ranks / layout.tensor},
          {"tensor", layout.tensor},
          {"micro_batch_size", layout.micro_batch_size},
          {"precision", word_of(layout.precision)},
          {"recompute", word_of(layout.recompute)},
          {"optimizer", word_of(layout.optimizer)},
          {"sequence", layout.sequence}};
}

void print_json(const Options& options, DeviceKind kind, const LayoutSearch& search) {
  Json line = {{"kind", "layouts"},
               {"run", options.effective.config.run.name},
               {"machine", options.machine->name},
               {"ranks", options.num_ranks},
               {"layouts", Json::array()},
               {"rejected", Json::array()}};
  for (const PlannedLayout& each : search.ranked) {
    Json layout = to_json(each.layout, options.num_ranks);
    layout["device_bytes"] = each.memory.on_device(kind);
    layout["predicted"] = to_json(each.time);
    line["layouts"].push_back(std::move(layout));
  }
  for (const RejectedLayout& each : search.rejected) {
    Json layout = to_json(each.layout, options.num_ranks);
    layout["and_larger_micro_batches"] = each.and_larger_micro_batches;
    layout["reason"] = each.reason;
    line["rejected"].push_back(std::move(layout));
  }
  print_out("{}\n", line.dump());
}

std::vector<std::string> cells_of(const Layout& layout, int num_ranks) {
  return {fmt::format("{}", num_ranks / layout.tensor),
          fmt::format("{}", layout.tensor),
          fmt::format("{}", layout.micro_batch_size),
          std::string(word_of(layout.precision)),
          std::string(word_of(layout.recompute)),
          std::string(word_of(layout.optimizer)),
          layout.sequence ? "yes" : "no"};
}

void show(const Options& options, DeviceKind kind, const LayoutSearch& search) {
  const std::vector<std::string> names = {"data",      "tensor",    "micro-batch", "precision",
                                          "recompute", "optimizer", "sequence"};
  std::vector<std::vector<std::string>> rows = {names};
  for (const char* name : {"GiB", "s/step", "tokens/s", "MFU %"}) rows.front().emplace_back(name);
  for (const PlannedLayout& each : search.ranked) {
    constexpr double kGib = 1 << 30;
    std::vector<std::string>& row = rows.emplace_back(cells_of(each.layout, options.num_ranks));
    row.push_back(fmt::format("{:.1f}", static_cast<double>(each.memory.on_device(kind)) / kGib));
    row.push_back(fmt::format("{:.4f}", each.time.step.seconds()));
    row.push_back(fmt::format("{:.0f}", each.time.tokens_per_second));
    row.push_back(fmt::format("{:.1f}", 100.0 * each.time.mfu));
  }
  print_out("predicted on {} of {}: {} that fit, the fastest first\n{}",
            counted(options.num_ranks, "rank"), options.machine->name,
            counted(std::ssize(search.ranked), "layout"),
            format_table(std::vector<Align>(rows.front().size(), Align::right), rows));
  if (search.rejected.empty()) return;
  std::vector<std::vector<std::string>> reasons = {names};
  reasons.front().emplace_back("why not");
  for (const RejectedLayout& each : search.rejected) {
    std::vector<std::string>& row = reasons.emplace_back(cells_of(each.layout, options.num_ranks));
    if (each.and_larger_micro_batches) row[2] += "+";
    row.push_back(each.reason);
  }
  std::vector<Align> columns(names.size(), Align::right);
  columns.push_back(Align::left);
  print_out("\ndo not fit (micro-batches with a + stand for larger ones too):\n{}",
            format_table(columns, reasons));
}

}  // namespace

int run_plan(Arguments arguments) {
  if (asks_for_help(arguments)) {
    std::ostringstream text;
    text << make_options();
    print_out("redspine plan --config FILE --ranks N [--set KEY=VALUE ...] [OPTION ...]\n\n{}",
              text.str());
    return kExitDone;
  }
  const Options options = read_options(arguments);
  const Machine* machine = options.machine_or_null();
  const DeviceKind kind = planned_device(options.effective.config.run, machine);
  if (options.searches) {
    const LayoutSearch search =
        search_layouts(options.effective.config, options.num_ranks, *machine);
    options.writes_json ? print_json(options, kind, search) : show(options, kind, search);
    return kExitDone;
  }
  const RunPlan plan = plan_run(options.effective.config, options.num_ranks, kind, machine);
  if (options.writes_json) {
    print_out("{}\n", to_json(options, kind, plan).dump());
  } else {
    show(options, kind, plan);
  }
  return kExitDone;
}

}  // namespace redspine
