#include "data/tokenize.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <span>
#include <string_view>
#include <system_error>

#include "data/document_reader.h"
#include "data/megatron_writer.h"
#include "data/tokenizer.h"

namespace redspine {
namespace {

constexpr std::size_t kBlockSize = std::size_t{1} << 16;  // bytes of text encoded at once

DocumentFormat format_of(const std::string& path, const TokenizeOptions& options) {
  const bool is_jsonl = options.format == TextFormat::automatic
                            ? std::filesystem::path(path).extension() == ".jsonl"
                            : options.format == TextFormat::jsonl;
  return {is_jsonl, options.json_key, options.document_separator};
}

void check_inputs(const TokenizeOptions& options) {
  Mistakes mistakes;
  options.validate(mistakes);
  for (const std::string& path : options.inputs) {
    std::error_code code;
    const std::filesystem::file_status status = std::filesystem::status(path, code);
    if (!std::filesystem::exists(status)) mistakes.add("", path + ": does not exist");
    if (std::filesystem::is_directory(status)) {
      mistakes.add("", path + ": is a folder; legal: a file");
    }
  }
  mistakes.throw_if_any();
}

void make_folder_of(const std::string& prefix) {
  const std::filesystem::path folder = std::filesystem::path(prefix).parent_path();
  if (folder.empty()) return;
  std::error_code code;
  std::filesystem::create_directories(folder, code);
  if (code) throw Error(fmt::format("{}: making it failed: {}", folder.string(), code.message()));
}

/// A number in [0, 1) that is the document's own.
double place_of(std::string_view document) {
  const std::uint64_t hash = XXH3_64bits(document.data(), document.size());
  return static_cast<double>(hash >> 11) * 0x1p-53;
}

void write_document(std::string_view text, MegatronWriter& writer) {
  const ByteTokenizer tokenizer;
  std::vector<std::int32_t> tokens;
  while (!text.empty()) {
    const std::string_view block = text.substr(0, kBlockSize);
    tokens.clear();
    tokenizer.encode(block, tokens);
    writer.append(tokens);
    text.remove_prefix(block.size());
  }
  const std::int32_t end = ByteTokenizer::kEndOfText;
  writer.append({&end, 1});
  writer.end_document();
}

}  // namespace

void TokenizeOptions::validate(Mistakes& mistakes) const {
  if (inputs.empty()) mistakes.add("--input", "names no file; legal: at least one");
  if (output_prefix.empty() || output_prefix.back() == '/') {
    mistakes.add("--output", fmt::format("is \"{}\"; legal: a path that .bin and .idx are added to",
                                         output_prefix));
  }
  if (json_key.empty()) mistakes.add("--json-key", "is empty; legal: the key of the text");
  if (!(validation_fraction >= 0.0 && validation_fraction < 1.0)) {
    mistakes.add("--validation-fraction",
                 fmt::format("is {}; legal: 0 to below 1", validation_fraction));
  }
  if (document_separator && document_separator->find('\n') != std::string::npos) {
    mistakes.add("--document-separator",
                 "has a line break; legal: what one whole line holds, empty for a blank line");
  }
}

TokenizeSummary tokenize(const TokenizeOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  check_inputs(options);
  make_folder_of(options.output_prefix);

  const bool is_split = options.validation_fraction > 0.0;
  std::vector<std::string> prefixes = {options.output_prefix};
  if (is_split) {
    prefixes = {options.output_prefix + "_train", options.output_prefix + "_validation"};
  }
  std::vector<std::unique_ptr<MegatronWriter>> writers;
  writers.reserve(prefixes.size());
  for (const std::string& prefix : prefixes) {
    writers.push_back(std::make_unique<MegatronWriter>(prefix, ByteTokenizer::kVocabSize));
  }

  TokenizeSummary summary = {};
  for (const std::string& path : options.inputs) {
    DocumentReader reader(path, format_of(path, options));
    while (const std::optional<std::string> document = reader.next()) {
      const bool is_validation = is_split && place_of(*document) < options.validation_fraction;
      write_document(*document, *writers[is_validation ? 1 : 0]);
      summary.num_bytes += static_cast<std::int64_t>(document->size());
      ++summary.num_documents;
    }
  }

  for (std::size_t i = 0; i < writers.size(); ++i) {
    if (writers[i]->num_documents() > 0) continue;
    throw ConfigError("", fmt::format("{}: would get none of the {} documents that are not empty{}",
                                      prefixes[i], summary.num_documents,
                                      is_split ? "; a document separator makes more of them" : ""));
  }
  for (std::size_t i = 0; i < writers.size(); ++i) {
    writers[i]->finish();
    summary.outputs.push_back({prefixes[i], writers[i]->num_documents(), writers[i]->num_tokens()});
    summary.num_tokens += writers[i]->num_tokens();
  }
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  summary.seconds = elapsed.count();
  return summary;
}

}  // namespace redspine
