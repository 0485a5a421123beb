// redspine bench: how fast a run would train on these ranks, and what it is made of: its products,
// memory, the ranks' collectives, and whole steps against the least that these allow. Keeps
// nothing.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <sstream>

#include "data/io/output.h"
#include "launch/bench/step.h"
#include "launch/commands/command.h"
#include "launch/commands/table.h"
#include "launch/commands/write_machine.h"
#include "launch/job/job.h"
#include "launch/run/device_choice.h"
#include "model/model_spec.h"
#include "parallel/mesh/choose_communicator.h"
#include "tensor/blas_library.h"

namespace redspine {
namespace {

namespace po = boost::program_options;
using Json = nlohmann::ordered_json;

po::options_description make_options() {
  po::options_description options("Options");
  add_config_options(
      options, "the run's configuration (YAML); any tokens of its vocabulary do as data.train");
  options.add_options()  //
      ("steps", po::value<std::int64_t>()->default_value(10),
       "how many are measured, after two others")  //
      ("matrix", po::value<std::int64_t>(),
       "rows of the square matrices whose product gives the peak; without it, 8192 on a GPU, 1536 "
       "on a CPU")  //
      ("largest", po::value<std::int64_t>()->default_value(kMostCollectiveBytes),
       "bytes of the largest message of the collectives")  //
      ("part", po::value<std::vector<std::string>>()->multitoken()->default_value({"step"}, "step"),
       "gemm, memory, collectives or step; step needs the first two for its floor on a CPU")  //
      ("json", "one line of JSON")                                                            //
      ("write-machine", po::value<std::string>()->default_value("", ""),
       "measures this machine for plans instead, minutes long, and writes what it found (YAML)")  //
      ("memory-gib", po::value<double>(),
       "of a rank's device, for --write-machine; needed on a GPU")  //
      ("help", "this text");
  return options;
}

constexpr const char* kParts[] = {"gemm", "memory", "collectives", "step"};

struct Options {
  EffectiveConfig effective;
  std::int64_t num_steps;
  std::optional<std::int64_t> matrix_size;
  std::int64_t most_bytes;  // of a collective's message
  std::vector<std::string> parts;
  bool writes_json;
  std::string machine_path;  // empty: none is to be written
  std::optional<double> memory_gib;

  bool has(const std::string& part) const {
    return std::find(parts.begin(), parts.end(), part) != parts.end();
  }
};

Options read_options(Arguments arguments, int world_size) {
  const po::variables_map values = parse_arguments(arguments, make_options());
  const std::pair<const char*, std::int64_t> least_values[] = {
      {"steps", 1}, {"matrix", 1}, {"largest", kLeastCollectiveBytes}};
  for (const auto& [name, least] : least_values) {
    if (!values.contains(name) || values[name].as<std::int64_t>() >= least) continue;
    throw ConfigError(std::string("--") + name,
                      fmt::format("is {}; legal: from {}", values[name].as<std::int64_t>(), least));
  }
  std::optional<std::int64_t> matrix_size;
  if (values.contains("matrix")) matrix_size = values["matrix"].as<std::int64_t>();
  std::optional<double> memory_gib;
  if (values.contains("memory-gib")) {
    memory_gib = values["memory-gib"].as<double>();
    if (!(*memory_gib > 0.0)) throw ConfigError("--memory-gib", "legal: above 0");
  }
  const auto parts = values["part"].as<std::vector<std::string>>();
  for (const std::string& part : parts) {
    if (std::find(std::begin(kParts), std::end(kParts), part) == std::end(kParts)) {
      throw ConfigError("--part", fmt::format("is {}; legal: {}", part, fmt::join(kParts, ", ")));
    }
  }
  return {.effective = read_config(values, "bench", world_size),
          .num_steps = values["steps"].as<std::int64_t>(),
          .matrix_size = matrix_size,
          .most_bytes = values["largest"].as<std::int64_t>(),
          .parts = parts,
          .writes_json = values.contains("json"),
          .machine_path = values["write-machine"].as<std::string>(),
          .memory_gib = memory_gib};
}

// What was asked for, of this rank.
struct Results {
  std::vector<ProductRate> products;
  double matrix_flops = 0.0;  // per second: the square product
  std::optional<StreamRates> streams;
  CollectiveBackend carrier = CollectiveBackend::automatic;  // of the collectives: what was chosen
  std::vector<CollectiveTime> collectives;
  std::optional<StepResult> step;
  std::optional<StepFloor> floor;
};

Results measure_parts(const Options& options, RunData& data, const ProcessGroup& world,
                      Device& device) {
  const Config& config = options.effective.config;
  const MeshShape shape = config.parallel.mesh(world.size());
  const bool has_floor = options.has("step") && device.kind() == DeviceKind::cpu;
  Results results;
  if (options.has("gemm") || options.has("step")) {
    const Product square = square_product(options.matrix_size.value_or(square_size(device)));
    results.products = {measure(square, device, dtype_of(config.run.precision))};
    results.matrix_flops = results.products.front().flops_per_second;
  }
  if (options.has("gemm") || has_floor) {
    for (const Product& product : products_of(config, device, tensor_rank_of(config, world))) {
      results.products.push_back(measure(product, device, dtype_of(config.run.precision)));
    }
  }
  if (options.has("memory") || has_floor) results.streams = measure_streams(device);
  if (options.has("collectives")) {
    results.carrier = choose_collective_backend(world, device, config.run.collectives);
    const ProcessMesh mesh(world, shape, device, results.carrier);
    results.collectives = measure_collectives(mesh, device, options.most_bytes);
  }
  if (options.has("step")) {
    results.step = measure_steps({.config = config, .data = data, .num_steps = options.num_steps},
                                 world, device);
  }
  if (has_floor) {
    results.floor = step_floor(config, world, results.products, *results.streams);
  }
  return results;
}

void add_step(Json& line, const Options& options, const Results& results) {
  const StepResult& step = *results.step;
  line.update({{"steps", options.num_steps},
               {"loss", step.loss},
               {"seconds", step.median_seconds()},
               {"all_seconds", step.seconds},
               {"cpu_seconds", step.cpu_seconds},
               {"tokens_per_second", step.tokens_per_second},
               {"matrix_tflops", results.matrix_flops * 1e-12},
               {"tflops_per_rank", step.model_flops * 1e-12},
               {"mfu", step.model_flops / results.matrix_flops},
               {"forward_seconds", step.forward_seconds},
               {"gradients_seconds", step.phases.gradients},
               {"norm_seconds", step.phases.norm},
               {"update_seconds", step.phases.update},
               {"planned_bytes", step.plan.total()},
               {"used_bytes", step.used_bytes}});
  if (step.times) {
    Json& phases = line["phases_seconds"];
    for (std::size_t i = 0; i < kNumPhases; ++i) {
      phases[name_of(static_cast<Phase>(i))] = step.times->seconds[i];
    }
  }
  if (results.floor) {
    line["floor_seconds"] = results.floor->sum();
    line["step_over_floor"] = step.median_seconds() / results.floor->sum();
  }
}

// What a CPU's products are compared with, or why with nothing.
std::optional<std::string> library_beside(const Results& results, const Device& device) {
  if (results.products.empty() || device.kind() != DeviceKind::cpu) return std::nullopt;
  return blas_description();
}

Json to_json(const Options& options, const Results& results, const Device& device, int world_size) {
  const Config& config = options.effective.config;
  Json line = {{"kind", "bench"},
               {"run", config.run.name},
               {"device", device.description()},
               {"ranks", world_size},
               {"tensor", config.parallel.tensor},
               {"precision", word_of(config.run.precision)},
               {"parameters", num_parameters(config.model)},
               {"sequence_length", config.batch.sequence_length},
               {"micro_batch_size", config.batch.micro_batch_size},
               {"global_batch_size", config.batch.global_batch_size}};
  if (const auto library = library_beside(results, device)) line["library"] = *library;
  for (const ProductRate& rate : results.products) {
    line["products"].push_back({{"name", rate.product.name},
                                {"rows", rate.product.rows},
                                {"in", rate.product.in_features},
                                {"out", rate.product.out_features},
                                {"count", rate.product.count},
                                {"gflops", rate.flops_per_second * 1e-9},
                                {"library_gflops", rate.library_flops_per_second * 1e-9}});
  }
  if (results.streams) {
    line["copy_gigabytes_per_second"] = results.streams->copy * 1e-9;
    line["adamw_gigabytes_per_second"] = results.streams->adamw * 1e-9;
  }
  if (options.has("collectives")) line["carrier"] = word_of(results.carrier);
  for (const CollectiveTime& time : results.collectives) {
    line["collectives"].push_back({{"axis", name_of(time.axis)},
                                   {"bytes", time.bytes},
                                   {"seconds", time.seconds},
                                   {"copy_seconds", time.copy_seconds}});
    if (time.exchange_seconds) {
      line["collectives"].back()["exchange_seconds"] = *time.exchange_seconds;
    }
  }
  if (results.step) add_step(line, options, results);
  return line;
}

void show_products(const Results& results) {
  std::vector<std::vector<std::string>> rows = {
      {"product", "rows", "in", "out", "GFLOP/s", "BLAS", "x"}};
  for (const ProductRate& rate : results.products) {
    const double library = rate.library_flops_per_second;
    rows.push_back({rate.product.name, fmt::format("{}", rate.product.rows),
                    fmt::format("{}", rate.product.in_features),
                    fmt::format("{}", rate.product.out_features),
                    fmt::format("{:.1f}", rate.flops_per_second * 1e-9),
                    library > 0.0 ? fmt::format("{:.1f}", library * 1e-9) : "",
                    library > 0.0 ? fmt::format("{:.2f}", rate.flops_per_second / library) : ""});
  }
  std::vector<Align> columns(rows.front().size(), Align::right);
  columns.front() = Align::left;
  print_out("{}\n", format_table(columns, rows));
}

void show_collectives(const Results& results) {
  std::vector<std::vector<std::string>> rows = {
      {std::string(word_of(results.carrier)), "bytes", "ms", "GB/s", "x copy", "x exchange"}};
  for (const CollectiveTime& time : results.collectives) {
    rows.push_back({name_of(time.axis), fmt::format("{}", time.bytes),
                    fmt::format("{:.3f}", time.seconds * 1e3),
                    fmt::format("{:.2f}", static_cast<double>(time.bytes) / time.seconds * 1e-9),
                    fmt::format("{:.2f}", time.seconds / time.copy_seconds),
                    time.exchange_seconds
                        ? fmt::format("{:.2f}", time.seconds / *time.exchange_seconds)
                        : ""});
  }
  std::vector<Align> columns(rows.front().size(), Align::right);
  columns.front() = Align::left;
  print_out("{}\n", format_table(columns, rows));
}

void show_step(const Results& results) {
  const StepResult& step = *results.step;
  constexpr double kMib = 1 << 20;
  print_out(
      "matrix product  {:.3f} TFLOP/s, a large square one\n"
      "training        {:.3f} TFLOP/s per rank, {:.1f}% of it\n"
      "tokens          {:.0f} per second\n"
      "step            {:.4f} s (median; {:.4f} to {:.4f}) = gradients {:.4f} (forward passes "
      "{:.4f}) + norm {:.4f} + update {:.4f} + rest\n"
      "memory          {:.1f} MiB used, {:.1f} planned\n",
      results.matrix_flops * 1e-12, step.model_flops * 1e-12,
      100.0 * step.model_flops / results.matrix_flops, step.tokens_per_second,
      step.median_seconds(), step.seconds.front(), step.seconds.back(), step.phases.gradients,
      step.forward_seconds, step.phases.norm, step.phases.update,
      static_cast<double>(step.used_bytes) / kMib, static_cast<double>(step.plan.total()) / kMib);
  if (!step.times) return;
  const double mean = std::accumulate(step.seconds.begin(), step.seconds.end(), 0.0) /
                      static_cast<double>(step.seconds.size());
  std::vector<std::vector<std::string>> rows;
  const auto add_row = [&](const std::string& name, double seconds) {
    rows.push_back({"  " + name, fmt::format("{:.4f} s", seconds),
                    fmt::format("{:.1f}%", 100.0 * seconds / mean)});
  };
  for (std::size_t i = 0; i < kNumPhases; ++i) {
    add_row(name_of(static_cast<Phase>(i)), step.times->seconds[i]);
  }
  add_row("rest", mean - step.times->sum());
  print_out("{}", format_table({Align::left, Align::right, Align::right}, rows));
}

void show(const Results& results, const Device& device) {
  print_out("device          {}\n", device.description());
  if (const auto library = library_beside(results, device)) {
    print_out("BLAS            {}\n", *library);
  }
  if (!results.products.empty()) show_products(results);
  if (results.streams) {
    print_out("memory          copy {:.1f} GB/s, AdamW {:.1f} GB/s\n", results.streams->copy * 1e-9,
              results.streams->adamw * 1e-9);
  }
  if (!results.collectives.empty()) show_collectives(results);
  if (results.step) show_step(results);
  if (results.floor) {
    const StepFloor& floor = *results.floor;
    print_out(
        "floor           {:.4f} s = products {:.4f} + attention {:.4f} + optimizer {:.4f} + logits "
        "{:.4f}\nstep / floor    {:.3f}\n",
        floor.sum(), floor.products, floor.attention, floor.optimizer, floor.logits,
        results.step->median_seconds() / floor.sum());
  }
}

int bench(const MpiSession& session, Arguments arguments) {
  const ProcessGroup& world = session.world();
  const Options options = agree(world, [&] { return read_options(arguments, world.size()); });
  const JobThreads threads = agree_on_threads(world);
  RunData data = agree_with_places(world, options.effective,
                                   [&] { return RunData(options.effective.config); });
  const auto device = agree_on_device(session, options.effective, threads);
  return run_or_abort(session, [&] {
    log_warnings(world, threads);
    if (!options.machine_path.empty()) {
      return write_machine({.config = options.effective.config,
                            .path = options.machine_path,
                            .square_size = options.matrix_size,
                            .num_steps = options.num_steps,
                            .most_bytes = options.most_bytes,
                            .memory_gib = options.memory_gib},
                           data, world, *device);
    }
    const Results results = measure_parts(options, data, world, *device);
    if (world.rank() != 0) return kExitDone;
    if (options.writes_json) {
      print_out("{}\n", to_json(options, results, *device, world.size()).dump());
    } else {
      show(results, *device);
    }
    return kExitDone;
  });
}

}  // namespace

int run_bench(Arguments arguments) {
  if (asks_for_help(arguments)) {
    std::ostringstream text;
    text << make_options();
    print_out("redspine bench --config FILE [--set KEY=VALUE ...] [OPTION ...]\n\n{}", text.str());
    return kExitDone;
  }
  return run_job([&](const MpiSession& session) { return bench(session, arguments); });
}

}  // namespace redspine
