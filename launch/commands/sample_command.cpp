// redspine sample: text from a checkpoint, by all ranks of the job together.

#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <numeric>
#include <sstream>

#include "data/io/output.h"
#include "data/tokenizer/tokenizer.h"
#include "launch/commands/command.h"
#include "launch/job/job.h"
#include "launch/run/before_use.h"
#include "launch/run/device_choice.h"
#include "launch/run/trained_model.h"
#include "trainer/checkpoint/loader.h"
#include "trainer/sampling.h"

namespace redspine {
namespace {

namespace po = boost::program_options;

po::options_description make_options() {
  const SamplingOptions defaults;
  po::options_description options("Options");
  options.add_options()  //
      ("checkpoint", po::value<std::string>(),
       "directory of a checkpoint, or of a GPT-2 or Llama of transformers")  //
      ("prompt", po::value<std::string>()->default_value(""),
       "text that is continued; without it, a new document")  //
      ("tokens", po::value<std::int64_t>()->default_value(200),
       "how many tokens at most; an end of text ends it before")  //
      ("temperature", po::value<double>()->default_value(defaults.temperature, "1"),
       "above 1 more surprising, below 1 less, 0 like --greedy")  //
      ("top-k", po::value<std::int64_t>()->default_value(defaults.top_k),
       "draw from the likeliest K tokens only; 0 = from all")             //
      ("greedy", "always the likeliest token")                            //
      ("seed", po::value<std::uint64_t>()->default_value(defaults.seed),  //
       "the same seed draws the same text, on any number of ranks")       //
      ("tokenizer", po::value<std::string>()->default_value(""),
       "\"bytes\", or a tokenizer's file or folder; without it, what the checkpoint says")  //
      ("help", "this text");
  add_verify_option(options);
  add_device_options(options);
  return options;
}

struct Options {
  TrainedModel model;
  std::unique_ptr<Tokenizer> tokenizer;
  std::vector<std::int32_t> prompt;  // one token at least
  std::int64_t num_tokens;
  SamplingOptions sampling;
  UseCheck use_check;
  RunConfig run;  // the device
};

std::vector<std::int32_t> encode(const Tokenizer& tokenizer, const std::string& text,
                                 const ModelConfig& config) {
  std::vector<std::int32_t> tokens;
  tokenizer.encode(text, tokens);
  // What follows an end of text is the beginning of a document.
  if (tokens.empty()) tokens.push_back(tokenizer.end_of_text());
  for (const std::int32_t token : tokens) {
    if (token < config.vocab_size) continue;
    throw ConfigError("--prompt", fmt::format("has the token {}; legal for this model: below {}",
                                              token, config.vocab_size));
  }
  return tokens;
}

void check(const Options& options) {
  ConfigProblems problems;
  const SamplingOptions& sampling = options.sampling;
  if (options.num_tokens < 0) {
    problems.add("--tokens", fmt::format("is {}; legal: 0 and more", options.num_tokens));
  }
  if (!(sampling.temperature >= 0.0) || !std::isfinite(sampling.temperature)) {
    problems.add("--temperature", fmt::format("is {}; legal: 0 and more", sampling.temperature));
  }
  if (sampling.top_k < 0) {
    problems.add("--top-k", fmt::format("is {}; legal: 0 and more", sampling.top_k));
  }
  problems.throw_if_any();
}

Options read_options(Arguments arguments) {
  const po::variables_map values = parse_arguments(arguments, make_options());
  if (!values.contains("checkpoint")) {
    throw ConfigError("", "--checkpoint DIR is missing; all options: redspine sample --help");
  }
  TrainedModel model = read_trained_model(values["checkpoint"].as<std::string>());
  std::unique_ptr<Tokenizer> tokenizer =
      load_tokenizer(tokenizer_name(model, values["tokenizer"].as<std::string>()), "--tokenizer");
  std::vector<std::int32_t> prompt =
      encode(*tokenizer, values["prompt"].as<std::string>(), model.config);
  const bool is_greedy = values.contains("greedy");
  Options options{.model = model,
                  .tokenizer = std::move(tokenizer),
                  .prompt = std::move(prompt),
                  .num_tokens = values["tokens"].as<std::int64_t>(),
                  .sampling = {.temperature = is_greedy ? 0.0 : values["temperature"].as<double>(),
                               .top_k = values["top-k"].as<std::int64_t>(),
                               .seed = values["seed"].as<std::uint64_t>()},
                  .use_check = read_use_check(values),
                  .run = read_device_options(values)};
  check(options);
  return options;
}

/// As many ranks as can share one model, and its leaves where it has some. The others hold copies
/// and say the same.
int tensor_degree(const ModelConfig& config, int num_leaves, int world_size) {
  int degree = std::gcd(world_size, static_cast<int>(config.num_heads));
  while (config.num_heads % degree != 0 || !MeshShape::fits(world_size, degree) ||
         degree > config.ffn_size || degree > config.vocab_size || num_leaves % degree != 0) {
    --degree;
  }
  return degree;
}

void show(const std::string& text) {
  write_out(text);
  flush_out();
}

void write_text(const Options& options, const ProcessGroup& world, NextToken& next) {
  const bool shows = world.rank() == 0;
  std::vector<std::int32_t> tokens = options.prompt;
  const Tokenizer& tokenizer = *options.tokenizer;
  if (shows && tokens.front() != tokenizer.end_of_text()) show(tokenizer.decode(tokens));
  for (std::int64_t i = 0; i < options.num_tokens; ++i) {
    const std::vector<float> logits = next.logits(tokens);
    for (const float logit : logits) {
      if (!std::isfinite(logit)) {
        throw CollectiveError(
            fmt::format("{}: what follows token {} is not finite: the weights "
                        "are damaged",
                        options.model.directory, tokens.size()));
      }
    }
    // A model may have more ids than its tokenizer has tokens.
    const std::size_t num_known =
        std::min(logits.size(), static_cast<std::size_t>(tokenizer.vocab_size()));
    const std::int32_t token =
        choose_token(std::span(logits).first(num_known), static_cast<std::int64_t>(tokens.size()),
                     options.sampling);
    if (token == tokenizer.end_of_text()) break;
    tokens.push_back(token);
    if (shows) show(tokenizer.decode(std::span(tokens).last(1)));
  }
  if (shows) show("\n");
}

int sample(const MpiSession& session, Arguments arguments) {
  const ProcessGroup& world = session.world();
  const Options options = agree(world, [&] { return read_options(arguments); });
  check_before_use(options.use_check, options.model.directory, world);
  const JobThreads threads = agree_on_threads(world);
  const ModelConfig& config = options.model.config;
  const auto device = agree_on_device(session, options.run, threads);
  const int num_leaves = options.model.num_leaves(*device, options.run.precision);
  const ProcessMesh mesh(
      world, MeshShape::of(world.size(), tensor_degree(config, num_leaves, world.size())), *device,
      options.run.collectives);
  const auto most = static_cast<std::int64_t>(options.prompt.size()) + options.num_tokens;
  NextToken next(config, std::min(most, config.max_sequence_length),
                 {*device, mesh, dtype_of(options.run.precision), num_leaves});
  return run_or_abort(session, [&] {
    agree(world, [&] {
      load_weights(options.model.directory, config,
                   {.store = next.model().parameters(), .device = *device});
      return true;
    });
    log_warnings(world, threads);
    write_text(options, world, next);
    return kExitDone;
  });
}

}  // namespace

int run_sample(Arguments arguments) {
  if (asks_for_help(arguments)) {
    std::ostringstream text;
    text << make_options();
    print_out("redspine sample --checkpoint DIR [--prompt TEXT] [OPTION ...]\n\n{}", text.str());
    return kExitDone;
  }
  return run_job([&](const MpiSession& session) { return sample(session, arguments); });
}

}  // namespace redspine
