// redspine trace: which documents were in the batch of a training step, and their text. The answer
// follows from the configuration and the token files alone; no run is needed, nor its ranks.

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <sstream>

#include "data/dataset.h"
#include "data/files/document_index.h"
#include "data/io/output.h"
#include "data/tokenizer/tokenizer.h"
#include "launch/commands/command.h"
#include "tensor/printable.h"

namespace redspine {
namespace {

namespace po = boost::program_options;

po::options_description make_options() {
  po::options_description options("Options");
  add_config_options(options, "the run's configuration, like its config.yaml");
  options.add_options()                                                                 //
      ("step", po::value<std::int64_t>(), "of the run, counted from 1")                 //
      ("preview", po::value<std::int64_t>(), "show at most this many bytes of a text")  //
      ("help", "this text");
  return options;
}

struct Options {
  EffectiveConfig effective;
  std::int64_t step;
  std::size_t preview;  // bytes
};

Options read_options(Arguments arguments) {
  const po::variables_map values = parse_arguments(arguments, make_options());
  // Samples do not depend on the layout, so any that a single process may have will do.
  EffectiveConfig effective = read_config(values, "trace", 1, {"parallel.tensor=1"});
  if (!values.contains("step")) {
    throw ConfigError("", "--step is missing; all options: redspine trace --help");
  }
  Options options{.effective = std::move(effective),
                  .step = values["step"].as<std::int64_t>(),
                  .preview = std::string::npos};
  if (options.step < 1 || options.step > options.effective.config.train.steps) {
    throw ConfigError("--step", fmt::format("is {}; legal: 1 to train.steps, {}", options.step,
                                            options.effective.config.train.steps));
  }
  if (values.contains("preview")) {
    const auto preview = values["preview"].as<std::int64_t>();
    if (preview < 0)
      throw ConfigError("--preview", fmt::format("is {}; legal: 0 and above", preview));
    options.preview = static_cast<std::size_t>(preview);
  }
  return options;
}

/// Prints samples with their documents and texts.
class Tracer {
 public:
  Tracer(const Tokenizer& tokenizer, std::size_t preview)
      : tokenizer_(tokenizer), preview_(preview) {}

  void print(std::int64_t sample, const SampleOrigin& origin,
             std::span<const std::int32_t> tokens) {
    const TokenFile& file = origin.file;
    const std::int64_t end = origin.token + static_cast<std::int64_t>(tokens.size());
    print_out("sample {}: {}, tokens {} to {}\n", sample, file.path(), origin.token, end - 1);
    for (std::int64_t token = origin.token; token < end;) {
      std::int64_t part_end = end;
      if (file.format() == TokenFormat::megatron) {
        const DocumentIndex::Document document = index_of(file).document_at(token);
        part_end = std::min(end, document.end);
        print_out("  document {}, its tokens {} to {} of {}: ", document.number,
                  token - document.begin, part_end - 1 - document.begin,
                  document.end - document.begin);
      } else {
        print_out("  ");
      }
      print_text(tokens.subspan(static_cast<std::size_t>(token - origin.token),
                                static_cast<std::size_t>(part_end - token)));
      token = part_end;
    }
  }

 private:
  const DocumentIndex& index_of(const TokenFile& file) {
    auto found = indices_.find(&file);
    if (found == indices_.end()) {
      const std::string prefix = file.path().substr(0, file.path().size() - 4);  // ".bin"
      found = indices_.emplace(&file, DocumentIndex::open(prefix, file.key())).first;
    }
    return found->second;
  }

  void print_text(std::span<const std::int32_t> tokens) const {
    const std::string text = tokenizer_.decode(tokens);
    print_out("{}{}\n", printable(std::string_view(text).substr(0, preview_)),
              text.size() > preview_ ? " ..." : "");
  }

  const Tokenizer& tokenizer_;
  std::size_t preview_;
  std::map<const TokenFile*, DocumentIndex> indices_;
};

void trace(const Options& options) {
  const Config& config = options.effective.config;
  const std::int64_t batch_size = config.batch.global_batch_size;
  const auto tokenizer = load_tokenizer(config.data.tokenizer, "data.tokenizer");
  TrainingData data(config.data, {.sequence_length = config.batch.sequence_length,
                                  .vocab_size = config.model.vocab_size,
                                  .global_batch_size = batch_size,
                                  .seed = config.run.seed});
  const std::int64_t begin = (options.step - 1) * batch_size;
  print_out("step {}: samples {} to {}, of {} tokens each\n", options.step, begin,
            begin + batch_size - 1, data.sequence_length() + 1);
  Tracer tracer(*tokenizer, options.preview);
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(data.sequence_length() + 1));
  std::uint64_t batch_hash = 0;
  for (std::int64_t sample = begin; sample < begin + batch_size; ++sample) {
    const SampleOrigin origin = data.origin_of(sample);
    origin.file.read(origin.token, tokens, config.model.vocab_size);
    batch_hash += sample_hash(tokens);
    tracer.print(sample, origin, tokens);
  }
  print_out("batch_hash {:016x}, to be compared with the step's in metrics.jsonl\n", batch_hash);
}

}  // namespace

int run_trace(Arguments arguments) {
  if (asks_for_help(arguments)) {
    std::ostringstream text;
    text << make_options();
    print_out("redspine trace --config FILE --step N [--set KEY=VALUE ...]\n\n{}", text.str());
    return kExitDone;
  }
  const Options options = read_options(arguments);
  try {
    trace(options);
  } catch (const ConfigError& error) {
    throw with_places(error, options.effective);
  }
  return kExitDone;
}

}  // namespace redspine
