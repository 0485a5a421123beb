// redspine tokenize: text to token files; data/tokenize.h does the work.

#include <fmt/format.h>

#include <cstdio>
#include <map>

#include "data/tokenize.h"
#include "launch/command.h"

namespace redspine {
namespace {

namespace po = boost::program_options;

po::options_description make_options() {
  po::options_description options("Options");
  options.add_options()                                                                       //
      ("input", po::value<std::vector<std::string>>()->multitoken()->composing(),             //
       "text files, read in this order; the option's name may be left out")                   //
      ("output", po::value<std::string>(), "prefix of the token files: PREFIX.bin and .idx")  //
      ("format", po::value<std::string>()->default_value("auto"),
       "auto | text | jsonl; auto: jsonl where the name ends in .jsonl")  //
      ("json-key", po::value<std::string>()->default_value("text"),
       "jsonl: the key of a document's text")  //
      ("document-separator", po::value<std::string>(),
       "text: a line equal to this ends a document (\"\" for blank lines); without it, a file is "
       "one document")  //
      ("validation-fraction", po::value<double>()->default_value(0.0, "0"),
       "share of the documents that becomes PREFIX_validation, the others PREFIX_train")  //
      ("help", "this text");
  return options;
}

TextFormat read_format(const std::string& word) {
  static const std::map<std::string, TextFormat> kFormats = {
      {"auto", TextFormat::automatic}, {"text", TextFormat::text}, {"jsonl", TextFormat::jsonl}};
  const auto found = kFormats.find(word);
  if (found == kFormats.end()) {
    throw ConfigError("--format", fmt::format("read \"{}\"; legal: auto, text, jsonl", word));
  }
  return found->second;
}

TokenizeOptions read_options(const po::variables_map& values) {
  TokenizeOptions options;
  if (values.contains("input")) options.inputs = values["input"].as<std::vector<std::string>>();
  if (values.contains("output")) options.output_prefix = values["output"].as<std::string>();
  options.format = read_format(values["format"].as<std::string>());
  options.json_key = values["json-key"].as<std::string>();
  if (values.contains("document-separator")) {
    options.document_separator = values["document-separator"].as<std::string>();
  }
  options.validation_fraction = values["validation-fraction"].as<double>();
  return options;
}

}  // namespace

int run_tokenize(Words words) {
  const po::options_description options = make_options();
  if (asks_for_help(words)) {
    fmt::print("redspine tokenize --output PREFIX [--input] FILE ...\n\n");
    std::ostringstream text;
    text << options;
    fmt::print("{}", text.str());
    return kExitDone;
  }
  const TokenizeSummary summary = tokenize(read_options(parse_words(words, options, "input")));
  for (const TokenizeOutput& output : summary.outputs) {
    fmt::print("{}: {} documents, {} tokens\n", output.prefix, output.num_documents,
               output.num_tokens);
  }
  fmt::print("{} bytes of text in {:.2f} s\n", summary.num_bytes, summary.seconds);
  return kExitDone;
}

}  // namespace redspine
