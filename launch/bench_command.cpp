// redspine bench: how fast a run would train on these ranks, against the rate of their matrix
// products, and how much memory it takes against what was planned. Trains, and keeps nothing.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "launch/config_file.h"
#include "launch/device_choice.h"
#include "launch/job.h"
#include "model/flops.h"
#include "tensor/ops.h"
#include "trainer/memory_plan.h"
#include "trainer/trainer.h"

namespace redspine {
namespace {

namespace po = boost::program_options;
using Json = nlohmann::ordered_json;

// The first steps choose algorithms and make what libraries keep.
constexpr std::int64_t kNumWarmUpSteps = 2;

po::options_description make_options() {
  po::options_description options("Options");
  options.add_options()                                                       //
      ("config", po::value<std::string>(), "the run's configuration (YAML)")  //
      ("set", po::value<std::vector<std::string>>()->multitoken()->composing(),
       "KEY=VALUE ...: above the file, like batch.micro_batch_size=16")  //
      ("steps", po::value<std::int64_t>()->default_value(10),
       "how many are measured, after two others")  //
      ("matrix", po::value<std::int64_t>(),
       "rows of the square matrices whose product gives the peak; without it, 8192 on a GPU, 1024 "
       "on a CPU")                  //
      ("json", "one line of JSON")  //
      ("help", "this text");
  return options;
}

struct Order {
  EffectiveConfig effective;
  std::int64_t num_steps;
  std::optional<std::int64_t> matrix_size;
  bool writes_json;
};

Order read_order(Words words, int world_size) {
  const po::variables_map values = parse_words(words, make_options());
  if (!values.contains("config")) {
    throw ConfigError("", "--config FILE is missing; all options: redspine bench --help");
  }
  for (const char* name : {"steps", "matrix"}) {
    if (!values.contains(name) || values[name].as<std::int64_t>() >= 1) continue;
    throw ConfigError(std::string("--") + name,
                      fmt::format("is {}; legal: from 1", values[name].as<std::int64_t>()));
  }
  std::optional<std::int64_t> matrix_size;
  if (values.contains("matrix")) matrix_size = values["matrix"].as<std::int64_t>();
  std::vector<std::string> settings;
  if (values.contains("set")) settings = values["set"].as<std::vector<std::string>>();
  return {.effective = load_config(values["config"].as<std::string>(), settings, world_size),
          .num_steps = values["steps"].as<std::int64_t>(),
          .matrix_size = matrix_size,
          .writes_json = values.contains("json")};
}

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Of square products of `dtype`, the best round of some: what utilisation is measured against.
double matrix_flops_per_second(Device& device, DType dtype, std::int64_t size) {
  constexpr int kNumRounds = 5;
  constexpr int kNumProducts = 4;
  const Tensor a(device, dtype, {size, size});
  const Tensor b(device, dtype, {size, size});
  const Tensor out(device, dtype, {size, size});
  double best_seconds = 0.0;
  for (int round = 0; round <= kNumRounds; ++round) {
    const auto start = Clock::now();
    for (int i = 0; i < kNumProducts; ++i) {
      ops::run(device, Matmul{.out = out, .a = a, .b = b, .transpose_b = Transpose::yes});
    }
    device.synchronize(Stream::compute);
    const double seconds = seconds_since(start) / kNumProducts;
    // The first round chooses an algorithm.
    if (round == 1 || (round > 1 && seconds < best_seconds)) best_seconds = seconds;
  }
  const auto n = static_cast<double>(size);
  return 2.0 * n * n * n / best_seconds;
}

struct Result {
  double matrix_flops;       // a second, of this rank
  double tokens_per_second;  // over all ranks
  double model_flops;        // a second and rank
  double seconds;            // a step
  double forward_seconds;    // a step, of the forward passes alone
  PhaseSeconds phases;
  std::int64_t used_bytes;  // by this rank, beyond what the device takes by itself
  MemoryPlan plan;
  double loss;  // of the last step
};

double forward_seconds(Trainer& trainer, const Config& config, int world_size, Device& device) {
  const MicroBatchShape shape{.num_sequences = config.batch.micro_batch_size,
                              .sequence_length = config.batch.sequence_length};
  BatchFeed feed(device, shape);
  const std::vector<std::int32_t> tokens(
      static_cast<std::size_t>(shape.num_sequences * shape.sequence_length), 1);
  const MicroBatch batch = feed.windows(tokens, tokens);
  double seconds = 0.0;
  for (int round = 0; round < 2; ++round) {  // the second counts
    const auto start = Clock::now();
    trainer.model().evaluate(batch);
    device.synchronize(Stream::compute);
    seconds = seconds_since(start);
  }
  trainer.model().take_loss_sum();
  return seconds * static_cast<double>(config.num_accumulation_steps(world_size));
}

Result measure(const Order& order, RunData& data, const RankGroup& world, Device& device) {
  const Config& config = order.effective.config;
  Result result{};
  result.plan = plan_memory(config, world);
  const std::int64_t fit_size = device.kind() == DeviceKind::cuda ? 8192 : 1024;
  result.matrix_flops = matrix_flops_per_second(device, dtype_of(config.run.precision),
                                                order.matrix_size.value_or(fit_size));
  const std::int64_t used_before = device.used_bytes();
  Trainer trainer(config, data, world, device);
  for (std::int64_t step = 0; step < kNumWarmUpSteps; ++step) trainer.train_step();
  const auto share = 1.0 / static_cast<double>(order.num_steps);
  for (std::int64_t step = 0; step < order.num_steps; ++step) {
    const StepReport report = trainer.train_step();
    result.seconds += share * report.seconds;
    result.phases.gradients += share * report.phases.gradients;
    result.phases.norm += share * report.phases.norm;
    result.phases.update += share * report.phases.update;
    result.loss = report.loss;
  }
  result.used_bytes = device.used_bytes() - used_before;
  const auto num_tokens =
      static_cast<double>(config.batch.global_batch_size * config.batch.sequence_length);
  result.tokens_per_second = num_tokens / result.seconds;
  result.model_flops = result.tokens_per_second *
                       training_flops_per_token(config.model, config.batch.sequence_length) /
                       world.size();
  result.forward_seconds = forward_seconds(trainer, config, world.size(), device);
  return result;
}

void show(const Order& order, const Result& result, const Device& device, int world_size) {
  const Config& config = order.effective.config;
  const double utilisation = result.model_flops / result.matrix_flops;
  if (order.writes_json) {
    const Json line = {{"kind", "bench"},
                       {"run", config.run.name},
                       {"device", device.description()},
                       {"ranks", world_size},
                       {"tensor", config.parallel.tensor},
                       {"precision", config.run.precision == Precision::bf16 ? "bf16" : "fp32"},
                       {"parameters", config.model.num_parameters()},
                       {"sequence_length", config.batch.sequence_length},
                       {"micro_batch_size", config.batch.micro_batch_size},
                       {"global_batch_size", config.batch.global_batch_size},
                       {"steps", order.num_steps},
                       {"loss", result.loss},
                       {"seconds", result.seconds},
                       {"tokens_per_second", result.tokens_per_second},
                       {"matrix_tflops", result.matrix_flops * 1e-12},
                       {"tflops_per_rank", result.model_flops * 1e-12},
                       {"mfu", utilisation},
                       {"forward_seconds", result.forward_seconds},
                       {"gradients_seconds", result.phases.gradients},
                       {"norm_seconds", result.phases.norm},
                       {"update_seconds", result.phases.update},
                       {"planned_bytes", result.plan.total()},
                       {"used_bytes", result.used_bytes}};
    fmt::print("{}\n", line.dump());
    return;
  }
  constexpr double kMib = 1 << 20;
  fmt::print(
      "device          {}\n"
      "matrix product  {:.3f} TFLOP/s, the most of a rank\n"
      "training        {:.3f} TFLOP/s a rank, {:.1f}% of it\n"
      "tokens          {:.0f} a second\n"
      "a step          {:.4f} s = gradients {:.4f} (forward passes {:.4f}) + norm {:.4f} + update "
      "{:.4f} + rest\n"
      "memory          {:.1f} MiB used, {:.1f} planned\n",
      device.description(), result.matrix_flops * 1e-12, result.model_flops * 1e-12,
      100.0 * utilisation, result.tokens_per_second, result.seconds, result.phases.gradients,
      result.forward_seconds, result.phases.norm, result.phases.update,
      static_cast<double>(result.used_bytes) / kMib,
      static_cast<double>(result.plan.total()) / kMib);
}

int bench(const MpiSession& session, Words words) {
  const RankGroup& world = session.world();
  const Order order = agree(world, [&] { return read_order(words, world.size()); });
  const JobThreads threads = agree_on_threads(world);
  RunData data =
      agree_with_places(world, order.effective, [&] { return RunData(order.effective.config); });
  const auto device = agree_on_device(session, order.effective, threads);
  return run_or_abort(session, [&] {
    tell_warnings(world, threads);
    const Result result = measure(order, data, world, *device);
    if (world.rank() == 0) show(order, result, *device, world.size());
    return kExitDone;
  });
}

}  // namespace

int run_bench(Words words) {
  if (asks_for_help(words)) {
    std::ostringstream text;
    text << make_options();
    fmt::print("redspine bench --config FILE [--set KEY=VALUE ...] [OPTION ...]\n\n{}", text.str());
    return kExitDone;
  }
  return run_job([&](const MpiSession& session) { return bench(session, words); });
}

}  // namespace redspine
