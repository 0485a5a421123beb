#include "launch/commands/train_tokenizer.h"

#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

#include "data/io/file.h"
#include "data/io/output.h"
#include "data/io/partial_file.h"
#include "data/ordered_work.h"
#include "data/tokenizer/bpe_file.h"
#include "data/tokenizer/bpe_trainer.h"
#include "launch/commands/input_progress.h"
#include "tensor/printable.h"

namespace redspine {
namespace {

struct Counted {
  std::int64_t num_bytes = 0;
  SkippedLines skipped;
};

Counted count(DocumentBatch lines, const InputOptions& options, BpeTrainer& trainer) {
  Counted counted;
  const DocumentBatch batch = parse(std::move(lines), options, counted.skipped);
  std::size_t begin = 0;
  for (const DocumentPart& part : batch.parts) {
    trainer.count(std::string_view(batch.text).substr(begin, part.end - begin));
    begin = part.end;
  }
  counted.num_bytes = static_cast<std::int64_t>(batch.text.size());
  return counted;
}

struct CountedAll {
  Counted total;
  std::vector<std::string> left_out;
};

CountedAll count_all(const TokenizerTraining& training, BpeTrainer& trainer) {
  ProgressLine line("counting pieces");
  InputReader reader(
      training.input, [&](std::string_view text) { return trainer.cut_point(text); },
      [&](const InputProgress& progress) { line.show(progress); });
  Counted total;
  OrderedWork<DocumentBatch, Counted>::run(
      training.num_threads,
      {.read = [&] { return reader.next(); },
       .work =
           [&](DocumentBatch batch) { return count(std::move(batch), training.input, trainer); },
       .write =
           [&](const Counted& counted) {
             total.num_bytes += counted.num_bytes;
             total.skipped.add(counted.skipped);
           }});
  return {total, reader.left_out()};
}

}  // namespace

void train_tokenizer(const TokenizerTraining& training) {
  const auto start = std::chrono::steady_clock::now();
  ConfigProblems problems;
  training.input.validate(problems);
  training.input.check_inputs(problems);
  if (training.vocab_size < 1 || training.vocab_size > std::numeric_limits<std::int32_t>::max()) {
    problems.add("--vocab-size", fmt::format("is {}; legal: 257 and above", training.vocab_size));
  }
  problems.throw_if_any();
  prepare_output(training.path, "--save-tokenizer");
  if (look_at(training.path, "--save-tokenizer") == PathKind::folder) {
    throw ConfigError("--save-tokenizer", training.path + ": is a folder; legal: a file");
  }
  PartialFile file(training.path, "--save-tokenizer");
  std::vector<PartialFile> reserved;
  for (const std::string& path : training.reserved) {
    prepare_output(path, "--output");
    reserved.emplace_back(path, "--output");
  }
  BpeTrainer trainer({.vocab_size = static_cast<std::int32_t>(training.vocab_size)});
  const auto [total, left_out] = count_all(training, trainer);
  const std::int64_t num_pieces = trainer.num_pieces();
  BpeModel model;
  {
    ProgressLine line("joining pairs");
    model = trainer.train([&](std::int64_t done, std::int64_t wanted) { line.show(done, wanted); });
  }
  save_tokenizer_json(model, file);
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  print_out("{}: {} ids, {}, from {} of text with {}, {} skipped, {:.2f} s\n", training.path,
            model.tokens.size(), counted(model.merges.size(), "merge"),
            counted(total.num_bytes, "byte"), counted(num_pieces, "piece"),
            counted(total.skipped.count, "line"), elapsed.count());
  print_left_out(left_out);
}

}  // namespace redspine
