#include "data/tokenize.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <chrono>
#include <limits>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "data/files/llmc_writer.h"
#include "data/files/megatron_writer.h"
#include "data/io/file.h"
#include "data/ordered_work.h"

namespace redspine {
namespace {

/// A document's tokens, or those of a part of it.
struct EncodedPart {
  std::size_t end;  // in the batch's tokens
  double place;     // place_of the document, where the part begins it
  bool begins_document;
  bool ends_document;
};

struct EncodedBatch {
  std::vector<std::int32_t> tokens;
  std::vector<EncodedPart> parts;
  std::int64_t num_bytes = 0;  // of text
  SkippedLines skipped;
};

/// A number in [0, 1) that is the document's own. Its beginning is enough: a reader gives long
/// documents in parts, and the first one already has to be written somewhere.
double place_of(std::string_view first_part) {
  const std::string_view hashed = first_part.substr(0, DocumentReader::kMinFirstPart);
  return static_cast<double>(XXH3_64bits(hashed.data(), hashed.size()) >> 11) * 0x1p-53;
}

EncodedBatch encode(DocumentBatch lines, const InputOptions& options, const Tokenizer& tokenizer) {
  EncodedBatch encoded;
  const DocumentBatch batch = parse(std::move(lines), options, encoded.skipped);
  encoded.num_bytes = static_cast<std::int64_t>(batch.text.size());
  std::size_t begin = 0;
  for (const DocumentPart& part : batch.parts) {
    const std::string_view text = std::string_view(batch.text).substr(begin, part.end - begin);
    begin = part.end;
    tokenizer.encode(text, encoded.tokens);
    if (part.ends_document) encoded.tokens.push_back(tokenizer.end_of_text());
    encoded.parts.push_back({.end = encoded.tokens.size(),
                             .place = part.begins_document ? place_of(text) : 0.0,
                             .begins_document = part.begins_document,
                             .ends_document = part.ends_document});
  }
  return encoded;
}

/// The one or two sets of token files that documents are shared out to.
class Outputs {
 public:
  Outputs(const TokenizeOptions& options, std::int64_t vocab_size)
      : validation_fraction_(options.validation_fraction) {
    for (const std::string& prefix : options.prefixes()) add(options, prefix, vocab_size);
    present_ = writers_.front().get();
  }

  void write(const EncodedBatch& batch) {
    std::size_t begin = 0;
    for (const EncodedPart& part : batch.parts) {
      if (part.begins_document) {
        present_ = writers_[part.place < validation_fraction_ ? 1 : 0].get();
      }
      present_->append(std::span(batch.tokens).subspan(begin, part.end - begin));
      if (part.ends_document) present_->end_document();
      begin = part.end;
    }
  }

  std::vector<TokenizeOutput> finish() {
    std::vector<TokenizeOutput> outputs;
    std::int64_t num_documents = 0;
    for (const auto& writer : writers_) num_documents += writer->num_documents();
    for (std::size_t i = 0; i < writers_.size(); ++i) {
      if (writers_[i]->num_documents() == 0) {
        throw ConfigError(
            "", fmt::format("{}: would get none of the {} documents{}", prefixes_[i], num_documents,
                            num_documents > 0 ? "; a document separator makes more of them" : ""));
      }
      outputs.push_back({prefixes_[i], writers_[i]->num_documents(), writers_[i]->num_tokens()});
    }
    for (const auto& writer : writers_) writer->prepare();
    for (const auto& writer : writers_) writer->retract();
    for (const auto& writer : writers_) writer->publish();
    return outputs;
  }

 private:
  void add(const TokenizeOptions& options, const std::string& prefix, std::int64_t vocab_size) {
    prefixes_.push_back(prefix);
    const bool is_pair = options.output_format == OutputFormat::megatron;
    prepare_output(prefix + (is_pair ? ".bin" : "_000000.bin"), "--output");
    if (is_pair) {
      writers_.push_back(std::make_unique<MegatronWriter>(prefix, vocab_size));
    } else {
      writers_.push_back(std::make_unique<LlmcWriter>(
          LlmcWriter::Options{prefix, vocab_size, options.shard_tokens}));
    }
  }

  double validation_fraction_;
  std::vector<std::string> prefixes_;
  std::vector<std::unique_ptr<TokenWriter>> writers_;  // [prefix]
  TokenWriter* present_;                               // has the present document
};

}  // namespace

void TokenizeOptions::validate(ConfigProblems& problems) const {
  input.validate(problems);
  if (output_prefix.empty() || output_prefix.back() == '/') {
    problems.add("--output", fmt::format("is \"{}\"; legal: a path that .bin and .idx are added to",
                                         output_prefix));
  }
  if (shard_tokens < 1 || shard_tokens > std::numeric_limits<std::int32_t>::max()) {
    problems.add("--shard-tokens", fmt::format("is {}; legal: 1 to {}", shard_tokens,
                                               std::numeric_limits<std::int32_t>::max()));
  }
  if (!(validation_fraction >= 0.0 && validation_fraction < 1.0)) {
    problems.add("--validation-fraction",
                 fmt::format("is {}; legal: 0 to below 1", validation_fraction));
  }
  if (num_threads < 1) {
    problems.add("--threads", fmt::format("is {}; legal: 1 and above", num_threads));
  }
}

std::vector<std::string> TokenizeOptions::prefixes() const {
  if (validation_fraction == 0.0) return {output_prefix};
  return {output_prefix + "_train", output_prefix + "_validation"};
}

std::vector<std::string> TokenizeOptions::first_files() const {
  std::vector<std::string> paths = prefixes();
  for (std::string& path : paths) {
    if (output_format == OutputFormat::megatron) {
      path += ".bin";
    } else {
      path = LlmcWriter::shard_path(path, 0);
    }
  }
  return paths;
}

void TokenizeOptions::add_outputs(OwnFiles& own) const {
  for (const std::string& prefix : prefixes()) {
    if (output_format == OutputFormat::megatron) {
      own.add(prefix + ".bin");
      own.add(prefix + ".idx");
    } else {
      own.add_shards(prefix);
    }
  }
}

TokenizeSummary tokenize(TokenizeOptions options, const Tokenizer& tokenizer) {
  const auto start = std::chrono::steady_clock::now();
  options.add_outputs(options.input.own);
  ConfigProblems problems;  // of all kinds, to be told in one go
  options.validate(problems);
  options.input.check_inputs(problems);
  problems.throw_if_any();
  const auto cut_point = [&](std::string_view text) { return tokenizer.cut_point(text); };
  InputReader reader(options.input, cut_point, options.report);
  Outputs outputs(options, tokenizer.vocab_size());

  TokenizeSummary summary;
  OrderedWork<DocumentBatch, EncodedBatch>::run(
      options.num_threads,
      {.read = [&] { return reader.next(); },
       .work =
           [&](DocumentBatch batch) { return encode(std::move(batch), options.input, tokenizer); },
       .write =
           [&](const EncodedBatch& batch) {
             outputs.write(batch);
             summary.num_bytes += batch.num_bytes;
             summary.skipped.add(batch.skipped);
           }});

  summary.outputs = outputs.finish();
  summary.left_out = reader.left_out();
  for (const TokenizeOutput& output : summary.outputs) {
    summary.num_documents += output.num_documents;
    summary.num_tokens += output.num_tokens;
  }
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  summary.seconds = elapsed.count();
  return summary;
}

}  // namespace redspine
