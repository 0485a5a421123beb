// redspine evaluate: how well a checkpoint predicts a text, by all ranks of the job together.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>

#include "data/io/output.h"
#include "data/tokenizer/tokenizer.h"
#include "launch/commands/command.h"
#include "launch/config/fields.h"
#include "launch/config/scalars.h"
#include "launch/job/job.h"
#include "launch/run/before_use.h"
#include "launch/run/device_choice.h"
#include "launch/run/run_data.h"
#include "launch/run/trained_model.h"
#include "tensor/printable.h"
#include "trainer/checkpoint/loader.h"
#include "trainer/evaluator.h"

namespace redspine {
namespace {

namespace po = boost::program_options;

// Enough rows for an efficient product.
constexpr std::int64_t kTokensAtOnce = 4096;

po::options_description make_options() {
  po::options_description options("Options");
  options.add_options()  //
      ("checkpoint", po::value<std::string>(),
       "directory of a checkpoint, or of a GPT-2 or Llama of transformers")  //
      ("data", po::value<std::string>(),
       "token file, Megatron prefix, or a glob of them in quotes")  //
      ("format", po::value<std::string>()->default_value("auto"),
       fmt::format("{}", fmt::join(words_of<TokenFormat>(), " | ")).c_str())  //
      ("sequence-length", po::value<std::int64_t>(),
       "tokens that are predicted from one another; without it, as in training")  //
      ("batch-size", po::value<std::int64_t>(),
       "sequences that a rank computes at once")  //
      ("tensor", po::value<std::int64_t>()->default_value(1),
       "ranks that share one model; the others share the data")  //
      ("tokenizer", po::value<std::string>()->default_value(""),
       "\"bytes\", or a tokenizer's file or folder; without it, what the checkpoint says")  //
      ("json", "one line of JSON")                                                          //
      ("help", "this text");
  add_verify_option(options);
  add_device_options(options);
  return options;
}

/// What says how many bytes a token stands for, or why that is not known.
struct KnownTokenizer {
  std::unique_ptr<Tokenizer> tokenizer;
  std::string refusal;
};

struct Options {
  TrainedModel model;
  std::string data_path;
  ValidationData data;
  MicroBatchShape shape;
  int num_tensor_ranks;
  KnownTokenizer tokenizer;
  bool writes_json;
  UseCheck use_check;
  RunConfig run;  // the device
};

TokenFormat read_format(const std::string& word) {
  Config config;
  for (const Field& field : fields_of(config)) {
    if (field.key != "data.format") continue;
    const std::optional<std::string> problem = store({.text = word}, field.value);
    if (problem) throw ConfigError("--format", *problem);
  }
  return config.data.format;
}

/// `value` of an option where it is given, checked against its range.
std::int64_t integer_or(const po::variables_map& values, const std::string& name,
                        std::int64_t otherwise, std::int64_t most) {
  const std::int64_t value = values.contains(name) ? values[name].as<std::int64_t>() : otherwise;
  if (value < 1 || value > most) {
    throw ConfigError("--" + name, fmt::format("is {}; legal: 1 to {}", value, most));
  }
  return value;
}

int read_tensor_degree(const po::variables_map& values, const ModelConfig& config, int world_size) {
  const std::int64_t degree = values["tensor"].as<std::int64_t>();
  std::vector<int> legal;
  for (int i = 1; i <= world_size; ++i) {
    if (MeshShape::fits(world_size, i) && config.num_heads % i == 0 && i <= config.ffn_size) {
      legal.push_back(i);
    }
  }
  if (std::find(legal.begin(), legal.end(), degree) == legal.end()) {
    throw ConfigError(
        "--tensor",
        fmt::format("is {}; legal for {} and {}: {}", degree, counted(world_size, "rank"),
                    counted(config.num_heads, "head"), fmt::join(legal, ", ")));
  }
  return static_cast<int>(degree);
}

ValidationData open_data(const std::string& path, TokenFormat format, std::int64_t length,
                         std::int64_t vocab_size) {
  try {
    return {DataConfig{.validation = {{.path = path}}, .format = format}, length, vocab_size};
  } catch (const ConfigError& error) {
    ConfigProblems problems;  // their keys are those of a run's configuration
    for (const ConfigProblem& problem : error.problems()) problems.add("--data", problem.text);
    throw ConfigError(problems.all());
  }
}

/// A tokenizer that was asked for must be there.
KnownTokenizer find_tokenizer(const TrainedModel& model, const std::string& choice) {
  if (!choice.empty()) return {load_tokenizer(choice, "--tokenizer"), ""};
  try {
    return {load_tokenizer(tokenizer_name(model, choice), "--tokenizer"), ""};
  } catch (const ConfigError& error) {
    return {nullptr, error.what()};
  }
}

Options read_options(Arguments arguments, int world_size) {
  const po::variables_map values = parse_arguments(arguments, make_options());
  for (const char* name : {"checkpoint", "data"}) {
    if (values.contains(name)) continue;
    throw ConfigError("",
                      fmt::format("--{} is missing; all options: redspine evaluate --help", name));
  }
  const TrainedModel model = read_trained_model(values["checkpoint"].as<std::string>());
  const int num_tensor_ranks = read_tensor_degree(values, model.config, world_size);
  const std::int64_t length = integer_or(values, "sequence-length", model.sequence_length(),
                                         model.config.max_sequence_length);
  const auto path = values["data"].as<std::string>();
  ValidationData data = open_data(path, read_format(values["format"].as<std::string>()), length,
                                  model.config.vocab_size);
  const std::int64_t num_data_ranks = MeshShape::of(world_size, num_tensor_ranks).size(Axis::data);
  const std::int64_t share = (data.num_windows() + num_data_ranks - 1) / num_data_ranks;
  const std::int64_t at_once = std::clamp<std::int64_t>(kTokensAtOnce / length, 1, share);
  return {
      .model = model,
      .data_path = path,
      .data = std::move(data),
      .shape = {.num_sequences = integer_or(values, "batch-size", at_once, std::int64_t{1} << 20),
                .sequence_length = length},
      .num_tensor_ranks = num_tensor_ranks,
      .tokenizer = find_tokenizer(model, values["tokenizer"].as<std::string>()),
      .writes_json = values.contains("json"),
      .use_check = read_use_check(values),
      .run = read_device_options(values)};
}

/// The bytes of text that the targets stand for: an end of text stands for none. ConfigError where
/// a target is no token of the tokenizer.
std::int64_t count_bytes(const ValidationData& data, const Tokenizer& tokenizer) {
  std::vector<std::int64_t> bytes_of(static_cast<std::size_t>(tokenizer.vocab_size()), -1);
  const auto length = static_cast<std::size_t>(data.sequence_length());
  std::vector<std::int32_t> tokens(length);
  std::vector<std::int32_t> targets(length);
  std::int64_t count = 0;
  for (std::int64_t window = 0; window < data.num_windows(); ++window) {
    data.fill(window, 1, tokens, targets);
    for (const std::int32_t target : targets) {
      if (target < 0 || target == tokenizer.end_of_text()) continue;
      if (target >= tokenizer.vocab_size()) {
        throw ConfigError("--tokenizer",
                          fmt::format("the data has the token {}; the tokenizer's are below {}",
                                      target, tokenizer.vocab_size()));
      }
      std::int64_t& bytes = bytes_of[static_cast<std::size_t>(target)];
      if (bytes < 0) {
        bytes = static_cast<std::int64_t>(tokenizer.decode(std::span(&target, 1)).size());
      }
      count += bytes;
    }
  }
  return count;
}

struct Result {
  double loss;  // nats per token
  std::int64_t num_tokens;
  std::optional<std::int64_t> num_bytes;  // of text; nothing where that is not known
  std::string no_bytes_cause;
  bool is_verified;  // the model is as it was written
  double seconds;

  double perplexity() const { return std::exp(loss); }
  /// Bits that encode the text and the ends of its documents, divided by the bytes of the text.
  std::optional<double> bits_per_byte() const {
    if (!num_bytes || *num_bytes == 0) return std::nullopt;
    return loss * static_cast<double>(num_tokens) / std::log(2.0) / static_cast<double>(*num_bytes);
  }
};

// JSON has no word for numbers that are not finite.
nlohmann::ordered_json number(const std::optional<double>& value) {
  if (!value) return nullptr;
  if (std::isfinite(*value)) return *value;
  return fmt::format("{}", *value);
}

void show(const Options& options, const Result& result) {
  const std::optional<double> bits = result.bits_per_byte();
  if (options.writes_json) {
    nlohmann::ordered_json line = {{"kind", "evaluation"},
                                   {"checkpoint", options.model.directory},
                                   {"data", options.data_path},
                                   {"sequence_length", options.shape.sequence_length},
                                   {"tokens", result.num_tokens},
                                   {"loss", number(result.loss)},
                                   {"perplexity", number(result.perplexity())},
                                   {"bytes", nullptr},
                                   {"bits_per_byte", number(bits)},
                                   {"verified", result.is_verified},
                                   {"seconds", result.seconds}};
    if (result.num_bytes) line["bytes"] = *result.num_bytes;
    print_out("{}\n", line.dump());
    return;
  }
  print_out(
      "tokens         {}, each once, {} at most from one another\n"
      "loss           {:.6f} nats per token\n"
      "perplexity     {:.4f}\n",
      result.num_tokens, options.shape.sequence_length, result.loss, result.perplexity());
  if (bits) {
    print_out("bits per byte  {:.6f}  ({} bytes)\n", *bits, *result.num_bytes);
  } else {
    print_out("bits per byte  not known: {}\n", result.no_bytes_cause);
  }
  print_out("seconds        {:.2f}\n", result.seconds);
}

void add_bytes(const Options& options, Result& result) {
  if (!options.tokenizer.tokenizer) return;
  try {
    result.num_bytes = count_bytes(options.data, *options.tokenizer.tokenizer);
    if (*result.num_bytes == 0) result.no_bytes_cause = "the tokens stand for no text";
  } catch (const std::exception& error) {  // the loss is known all the same
    result.no_bytes_cause = error.what();
  }
}

int evaluate(const MpiSession& session, Arguments arguments) {
  const ProcessGroup& world = session.world();
  const Options options = agree(world, [&] { return read_options(arguments, world.size()); });
  agree_on_files(world, options.data.files());
  const bool is_verified = check_before_use(options.use_check, options.model.directory, world);
  const JobThreads threads = agree_on_threads(world);
  const auto device = agree_on_device(session, options.run, threads);
  const ProcessMesh mesh(world, MeshShape::of(world.size(), options.num_tensor_ranks), *device,
                         options.run.collectives);
  const int num_leaves = options.model.num_leaves(*device, options.run.precision);
  if (num_leaves % options.num_tensor_ranks != 0) {
    throw ConfigError("--tensor",
                      fmt::format("is {}, which does not divide the {} leaves of this run's exact "
                                  "sums (run.exact_leaves)",
                                  options.num_tensor_ranks, num_leaves));
  }
  // No backward pass reads what a block leaves: one set of that serves all.
  const ExecutionContext execution{.device = *device,
                                   .mesh = mesh,
                                   .dtype = dtype_of(options.run.precision),
                                   .num_leaves = num_leaves,
                                   .recompute = Recompute::block};
  Gpt model(options.model.config, options.shape, 0, execution, InitialWeights::zero);
  BatchFeed feed(*device, options.shape);
  return run_or_abort(session, [&] {
    agree(world, [&] {
      load_weights(options.model.directory, options.model.config,
                   {.store = model.parameters(), .device = *device});
      return true;
    });
    log_warnings(world, threads);
    const auto start = std::chrono::steady_clock::now();
    const std::optional<ValidationReport> report =
        Evaluator(options.data, model, feed, execution, 0).evaluate(0, {});
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    if (world.rank() == 0) {
      Result result{.loss = report->loss,
                    .num_tokens = report->tokens,
                    .num_bytes = std::nullopt,
                    .no_bytes_cause = options.tokenizer.refusal,
                    .is_verified = is_verified,
                    .seconds = seconds.count()};
      add_bytes(options, result);
      if (options.writes_json && !result.bits_per_byte()) {
        log_from_rank(world, "warning: bits per byte are not known: " + result.no_bytes_cause);
      }
      show(options, result);
    }
    return kExitDone;
  });
}

}  // namespace

int run_evaluate(Arguments arguments) {
  if (asks_for_help(arguments)) {
    std::ostringstream text;
    text << make_options();
    print_out("redspine evaluate --checkpoint DIR --data PATH [OPTION ...]\n\n{}", text.str());
    return kExitDone;
  }
  return run_job([&](const MpiSession& session) { return evaluate(session, arguments); });
}

}  // namespace redspine
