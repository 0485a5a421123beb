// redspine sample: text from a checkpoint, by all ranks of the job together.

#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <numeric>
#include <sstream>

#include "data/output.h"
#include "data/tokenizer.h"
#include "launch/before_use.h"
#include "launch/device_choice.h"
#include "launch/job.h"
#include "launch/trained_model.h"
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

struct Order {
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

void check(const Order& order) {
  Mistakes mistakes;
  const SamplingOptions& sampling = order.sampling;
  if (order.num_tokens < 0) {
    mistakes.add("--tokens", fmt::format("is {}; legal: 0 and more", order.num_tokens));
  }
  if (!(sampling.temperature >= 0.0) || !std::isfinite(sampling.temperature)) {
    mistakes.add("--temperature", fmt::format("is {}; legal: 0 and more", sampling.temperature));
  }
  if (sampling.top_k < 0) {
    mistakes.add("--top-k", fmt::format("is {}; legal: 0 and more", sampling.top_k));
  }
  mistakes.throw_if_any();
}

Order read_order(Words words) {
  const po::variables_map values = parse_words(words, make_options());
  if (!values.contains("checkpoint")) {
    throw ConfigError("", "--checkpoint DIR is missing; all options: redspine sample --help");
  }
  TrainedModel model = read_trained_model(values["checkpoint"].as<std::string>());
  std::unique_ptr<Tokenizer> tokenizer =
      load_tokenizer(tokenizer_name(model, values["tokenizer"].as<std::string>()), "--tokenizer");
  std::vector<std::int32_t> prompt =
      encode(*tokenizer, values["prompt"].as<std::string>(), model.config);
  const bool is_greedy = values.contains("greedy");
  Order order{.model = model,
              .tokenizer = std::move(tokenizer),
              .prompt = std::move(prompt),
              .num_tokens = values["tokens"].as<std::int64_t>(),
              .sampling = {.temperature = is_greedy ? 0.0 : values["temperature"].as<double>(),
                           .top_k = values["top-k"].as<std::int64_t>(),
                           .seed = values["seed"].as<std::uint64_t>()},
              .use_check = read_use_check(values),
              .run = read_device_options(values)};
  check(order);
  return order;
}

/// As many ranks as can share one model. The others hold copies and say the same.
int tensor_degree(const ModelConfig& config, int world_size) {
  int degree = std::gcd(world_size, static_cast<int>(config.num_heads));
  while (config.num_heads % degree != 0 || world_size % degree != 0 || degree > config.ffn_size ||
         degree > config.vocab_size) {
    --degree;
  }
  return degree;
}

void show(const std::string& text) {
  write_out(text);
  flush_out();
}

void write_text(const Order& order, const RankGroup& world, NextToken& next) {
  const bool shows = world.rank() == 0;
  std::vector<std::int32_t> tokens = order.prompt;
  const Tokenizer& tokenizer = *order.tokenizer;
  if (shows && tokens.front() != tokenizer.end_of_text()) show(tokenizer.decode(tokens));
  for (std::int64_t i = 0; i < order.num_tokens; ++i) {
    const std::vector<float> logits = next.logits(tokens);
    for (const float logit : logits) {
      if (!std::isfinite(logit)) {
        throw CollectiveError(
            fmt::format("{}: what follows token {} is not finite: the weights "
                        "are damaged",
                        order.model.directory, tokens.size()));
      }
    }
    // A model may have more ids than its tokenizer has tokens.
    const std::size_t num_known =
        std::min(logits.size(), static_cast<std::size_t>(tokenizer.vocab_size()));
    const std::int32_t token =
        choose_token(std::span(logits).first(num_known), static_cast<std::int64_t>(tokens.size()),
                     order.sampling);
    if (token == tokenizer.end_of_text()) break;
    tokens.push_back(token);
    if (shows) show(tokenizer.decode(std::span(tokens).last(1)));
  }
  if (shows) show("\n");
}

int sample(const MpiSession& session, Words words) {
  const RankGroup& world = session.world();
  const Order order = agree(world, [&] { return read_order(words); });
  check_before_use(order.use_check, order.model.directory, world);
  const JobThreads threads = agree_on_threads(world);
  const ModelConfig& config = order.model.config;
  const auto device = agree_on_device(session, order.run, threads);
  const ProcessMesh mesh(world, tensor_degree(config, world.size()), *device,
                         order.run.collectives);
  const auto most = static_cast<std::int64_t>(order.prompt.size()) + order.num_tokens;
  NextToken next(config, std::min(most, config.max_sequence_length),
                 {*device, mesh, dtype_of(order.run.precision)});
  return run_or_abort(session, [&] {
    agree(world, [&] {
      load_weights(order.model.directory, config,
                   {.store = next.model().parameters(), .device = *device});
      return true;
    });
    tell_warnings(world, threads);
    write_text(order, world, next);
    return kExitDone;
  });
}

}  // namespace

int run_sample(Words words) {
  if (asks_for_help(words)) {
    std::ostringstream text;
    text << make_options();
    print_out("redspine sample --checkpoint DIR [--prompt TEXT] [OPTION ...]\n\n{}", text.str());
    return kExitDone;
  }
  return run_job([&](const MpiSession& session) { return sample(session, words); });
}

}  // namespace redspine
