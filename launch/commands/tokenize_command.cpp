// redspine tokenize: text to token files, with a tokenizer that it may train first; and a look into
// token files. data/ does the work.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <sstream>
#include <thread>

#include "data/io/output.h"
#include "data/tokenize.h"
#include "data/tokenizer/tokenizer.h"
#include "launch/commands/command.h"
#include "launch/commands/input_progress.h"
#include "launch/commands/token_file_report.h"
#include "launch/commands/train_tokenizer.h"
#include "tensor/printable.h"

namespace redspine {
namespace {

namespace po = boost::program_options;

po::options_description make_options() {
  po::options_description options("Options");
  options.add_options()  //
      ("input", po::value<std::vector<std::string>>()->multitoken()->composing(),
       "what is read, in this order: files, folders, globs, - for the standard input; gzip, "
       "zstd, "
       "xz and bzip2 are decompressed, tar and zip taken apart; the option's name may be left "
       "out")  //
      ("output", po::value<std::string>(),
       "PREFIX of the token files: PREFIX.bin and PREFIX.idx, or shards PREFIX_000000.bin and on")(
          "tokenizer", po::value<std::string>(),
          "tokenizer.json, a .tiktoken file, or a folder with tokenizer.json or vocab.json and "
          "merges.txt; without it, one token per byte")  //
      ("special-tokens", po::value<std::string>()->default_value("text"),
       "text | ids: what a name like <|endoftext|> in a document is")  //
      ("format", po::value<std::string>()->default_value("auto"),
       "auto | text | jsonl; auto: jsonl where the name ends in .jsonl, .ndjson or .json")  //
      ("json-key", po::value<std::string>()->default_value("text"),
       "jsonl: the key of a document's text")                                                   //
      ("skip-invalid", "jsonl: count lines without a document instead of ending at the first")  //
      ("document-separator", po::value<std::string>(),
       "text: a line equal to this ends a document (\"\" for blank lines); without it, a file is "
       "one document")  //
      ("validation-fraction", po::value<double>()->default_value(0.0, "0"),
       "share of the documents that becomes PREFIX_validation, the others PREFIX_train")  //
      ("output-format", po::value<std::string>()->default_value("megatron"),
       "megatron | llmc")  //
      ("shard-tokens", po::value<std::int64_t>()->default_value(100'000'000),
       "llmc: tokens per shard")                                                     //
      ("threads", po::value<int>(), "threads that encode; without it, one per CPU")  //
      ("train-bpe", "train a byte-pair encoding on the inputs first")                //
      ("vocab-size", po::value<std::int64_t>(),
       "with --train-bpe: ids of the tokenizer; with --verify: ids must be below it")  //
      ("save-tokenizer", po::value<std::string>(),
       "with --train-bpe: the tokenizer.json to write")  //
      ("inspect", po::value<std::string>(),
       "PATH of token files, as data.train names them: show header, counts and first tokens")  //
      ("verify", po::value<std::string>(),
       "PATH of token files: check all of their index and ids; exit code 1 if anything is wrong")(
          "token-format", po::value<std::string>()->default_value("auto"),
          fmt::format("with --inspect and --verify: {}", fmt::join(words_of<TokenFormat>(), " | "))
              .c_str())  //
      ("help", "this text");
  return options;
}

/// The value that the word of an option stands for.
template <typename T>
T choose(const po::variables_map& values, const std::string& option,
         const std::vector<std::pair<std::string, T>>& choices) {
  const auto& word = values[option].as<std::string>();
  std::string legal;
  for (const auto& [name, value] : choices) {
    if (name == word) return value;
    legal += (legal.empty() ? "" : ", ") + name;
  }
  throw ConfigError("--" + option, fmt::format("read \"{}\"; legal: {}", word, legal));
}

std::optional<std::string> text_of(const po::variables_map& values, const std::string& option) {
  if (!values.contains(option)) return std::nullopt;
  return values[option].as<std::string>();
}

InputOptions read_input_options(const po::variables_map& values) {
  InputOptions options;
  if (values.contains("input")) options.inputs = values["input"].as<std::vector<std::string>>();
  options.format = choose<TextFormat>(
      values, "format",
      {{"auto", TextFormat::automatic}, {"text", TextFormat::text}, {"jsonl", TextFormat::jsonl}});
  options.json_key = values["json-key"].as<std::string>();
  options.document_separator = text_of(values, "document-separator");
  if (values.contains("skip-invalid")) options.invalid_lines = InvalidLines::skip;
  return options;
}

int num_threads(const po::variables_map& values) {
  if (values.contains("threads")) return values["threads"].as<int>();
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

TokenizeOptions read_tokenize_options(const po::variables_map& values) {
  return {.input = read_input_options(values),
          .output_prefix = text_of(values, "output").value_or(""),
          .output_format = choose<OutputFormat>(
              values, "output-format",
              {{"megatron", OutputFormat::megatron}, {"llmc", OutputFormat::llmc}}),
          .shard_tokens = values["shard-tokens"].as<std::int64_t>(),
          .validation_fraction = values["validation-fraction"].as<double>(),
          .num_threads = num_threads(values)};
}

SpecialTokens read_special_tokens(const po::variables_map& values) {
  return choose<SpecialTokens>(values, "special-tokens",
                               {{"text", SpecialTokens::as_text}, {"ids", SpecialTokens::as_ids}});
}

/// Options that mean nothing beside one another, or miss each other.
void check_combination(const po::variables_map& values) {
  ConfigProblems problems;
  const bool looks = values.contains("inspect") || values.contains("verify");
  const bool trains = values.contains("train-bpe");
  if (values.contains("inspect") && values.contains("verify")) {
    problems.add("--verify", "is given with --inspect; legal: one of them");
  }
  for (const char* option : {"input", "output", "train-bpe"}) {
    if (looks && values.contains(option)) {
      problems.add(std::string("--") + option, "has no meaning with --inspect or --verify");
    }
  }
  if (trains && values.contains("tokenizer")) {
    problems.add("--tokenizer", "is given with --train-bpe, which makes one; legal: one of them");
  }
  if (trains && !values.contains("vocab-size")) {
    problems.add("--vocab-size", "is missing; --train-bpe needs it");
  }
  if (trains && !values.contains("save-tokenizer")) {
    problems.add("--save-tokenizer", "is missing; --train-bpe needs it");
  }
  if (!trains && values.contains("save-tokenizer")) {
    problems.add("--save-tokenizer", "has no meaning without --train-bpe");
  }
  if (!trains && !values.contains("verify") && values.contains("vocab-size")) {
    problems.add("--vocab-size", "has no meaning without --train-bpe or --verify");
  }
  if (values.contains("verify") && !values.contains("vocab-size") &&
      !values.contains("tokenizer")) {
    problems.add("--verify", "needs --vocab-size or --tokenizer to know which ids are legal");
  }
  problems.throw_if_any();
}

TokenFormat read_token_format(const po::variables_map& values) {
  std::vector<std::pair<std::string, TokenFormat>> choices;
  for (const auto& word : enum_words<TokenFormat>()) choices.emplace_back(word.text, word.value);
  return choose<TokenFormat>(values, "token-format", choices);
}

int look_into_files(const po::variables_map& values) {
  const std::string option = values.contains("verify") ? "verify" : "inspect";
  const TokenFileSet files{.path = values[option].as<std::string>(),
                           .format = read_token_format(values),
                           .option = "--" + option};
  std::unique_ptr<Tokenizer> tokenizer;
  if (values.contains("tokenizer")) {
    tokenizer = load_tokenizer(values["tokenizer"].as<std::string>(), "--tokenizer");
  }
  if (option == "inspect") {
    inspect_token_files(files, tokenizer.get());
    return kExitDone;
  }
  const std::int64_t vocab_size = values.contains("vocab-size")
                                      ? values["vocab-size"].as<std::int64_t>()
                                      : tokenizer->vocab_size();
  if (vocab_size < 1 || vocab_size > std::int64_t{1} << 31) {
    throw ConfigError("--vocab-size", fmt::format("is {}; legal: 1 to 2^31", vocab_size));
  }
  return verify_token_files(files, vocab_size) ? kExitDone : kExitFailed;
}

/// The files of the tokenizer that the values name, where it is read from or written to.
void add_tokenizer(const po::variables_map& values, OwnFiles& own) {
  for (const char* option : {"tokenizer", "save-tokenizer"}) {
    const std::string path = text_of(values, option).value_or("");
    if (path.empty() || path == "bytes") continue;
    own.add(path);
    for (const char* name : {"tokenizer.json", "vocab.json", "merges.txt"}) {
      own.add(path + "/" + name);
    }
  }
}

void train_first(const po::variables_map& values, const TokenizeOptions& tokenizing) {
  std::vector<std::string> reserved;
  if (values.contains("output")) {
    ConfigProblems problems;
    tokenizing.validate(problems);
    problems.throw_if_any();
    reserved = tokenizing.first_files();
  }
  const TokenizerTraining training{.input = tokenizing.input,
                                   .vocab_size = values["vocab-size"].as<std::int64_t>(),
                                   .path = values["save-tokenizer"].as<std::string>(),
                                   .num_threads = num_threads(values),
                                   .reserved = std::move(reserved)};
  if (values.contains("output") &&
      std::count(training.input.inputs.begin(), training.input.inputs.end(), "-") > 0) {
    throw ConfigError("--input",
                      "-: --train-bpe with --output reads the inputs twice, and the "
                      "standard input can be read only once");
  }
  train_tokenizer(training);
}

void print_summary(const TokenizeSummary& summary) {
  for (const TokenizeOutput& output : summary.outputs) {
    print_out("{}: {}, {}\n", output.prefix, counted(output.num_documents, "document"),
              counted(output.num_tokens, "token"));
  }
  const auto num_bytes = static_cast<double>(summary.num_bytes);
  print_out("{}, {}, {} of text, {:.4f} tokens/byte, {} skipped, {:.2f} s, {:.1f} MB/s\n",
            counted(summary.num_documents, "document"), counted(summary.num_tokens, "token"),
            counted(summary.num_bytes, "byte"),
            static_cast<double>(summary.num_tokens) / std::max(num_bytes, 1.0),
            counted(summary.skipped.count, "line"), summary.seconds,
            num_bytes / 1e6 / summary.seconds);
  if (summary.skipped.count > 0) {
    print_out("the first line skipped: {}\n", summary.skipped.first);
  }
  print_left_out(summary.left_out);
}

}  // namespace

int run_tokenize(Arguments arguments) {
  const po::options_description options = make_options();
  if (asks_for_help(arguments)) {
    std::ostringstream text;
    text << options;
    print_out(
        "redspine tokenize [--tokenizer FILE] --output PREFIX [--input] INPUT ...\n"
        "redspine tokenize --train-bpe --vocab-size N --save-tokenizer FILE [--output PREFIX] "
        "[--input] INPUT ...\n"
        "redspine tokenize --inspect PATH [--tokenizer FILE]\n"
        "redspine tokenize --verify PATH --vocab-size N\n\n{}",
        text.str());
    return kExitDone;
  }
  const po::variables_map values = parse_arguments(arguments, options, "input");
  check_combination(values);
  if (values.contains("inspect") || values.contains("verify")) return look_into_files(values);

  TokenizeOptions tokenizing = read_tokenize_options(values);
  add_tokenizer(values, tokenizing.input.own);
  if (values.contains("output")) tokenizing.add_outputs(tokenizing.input.own);
  const SpecialTokens special_tokens = read_special_tokens(values);
  std::string tokenizer_name = text_of(values, "tokenizer").value_or("");
  if (values.contains("train-bpe")) {
    train_first(values, tokenizing);
    if (!values.contains("output")) return kExitDone;
    tokenizer_name = values["save-tokenizer"].as<std::string>();
  }
  const auto tokenizer = load_tokenizer(tokenizer_name, "--tokenizer", special_tokens);
  TokenizeSummary summary;
  {
    ProgressLine line("tokenizing");
    tokenizing.report = [&line](const InputProgress& progress) { line.show(progress); };
    summary = tokenize(tokenizing, *tokenizer);
  }
  print_summary(summary);
  return kExitDone;
}

}  // namespace redspine
