#include "data/documents/input_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <chrono>
#include <filesystem>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>

#include "data/documents/content_kind.h"
#include "data/io/file.h"

namespace redspine {
namespace {

constexpr double kReportInterval = 0.2;  // seconds

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Whatever the case of its letters, and without the ending of a compression.
bool has_jsonl_name(const std::string& path) {
  std::string name = path;
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  for (const std::string_view compressed : {".gz", ".zst", ".xz", ".bz2"}) {
    if (!name.ends_with(compressed)) continue;
    name.resize(name.size() - compressed.size());
    break;
  }
  return name.ends_with(".jsonl") || name.ends_with(".ndjson") || name.ends_with(".json");
}

void add_all(ConfigProblems& problems, const ConfigError& error) {
  for (const ConfigProblem& problem : error.problems()) problems.add(problem.key, problem.text);
}

void check_files(const std::vector<std::string>& paths, ConfigProblems& problems) {
  std::array<std::byte, kNumKindBytes> first{};
  for (const std::string& path : paths) {
    std::error_code code;
    if (!std::filesystem::is_regular_file(path, code)) continue;  // can be read only once
    try {
      const File file = File::open(path, "");
      kind_of(path, std::span(first).first(file.read_up_to_end(0, first)));
    } catch (const ConfigError& error) {
      add_all(problems, error);
    }
  }
}

}  // namespace

void InputOptions::validate(ConfigProblems& problems) const {
  if (inputs.empty()) problems.add("--input", "names no file; legal: at least one");
  if (json_key.empty()) problems.add("--json-key", "is empty; legal: the key of the text");
  if (document_separator && document_separator->find('\n') != std::string::npos) {
    problems.add("--document-separator",
                 "has a line break; legal: what one whole line holds, empty for blank lines");
  }
}

void InputOptions::check_inputs(ConfigProblems& problems) const {
  try {
    check_files(find_inputs(inputs, own).files, problems);
  } catch (const ConfigError& error) {
    add_all(problems, error);
  }
}

void SkippedLines::add(const SkippedLines& later) {
  if (count == 0) first = later.first;
  count += later.count;
}

InputReader::InputReader(InputOptions options, CutPoint cut_point,
                         std::function<void(const InputProgress&)> report)
    : options_(std::move(options)),
      cut_point_(std::move(cut_point)),
      report_(std::move(report)),
      inputs_(find_inputs(options_.inputs, options_.own)),
      total_bytes_(total_size(inputs_.files)),
      start_(now()),
      last_report_(start_) {}

std::optional<DocumentBatch> InputReader::next() {
  while (reader_ || open_next()) {
    std::optional<DocumentBatch> batch = reader_->next();
    num_file_bytes_ = reader_->num_file_bytes();
    report_if_due();
    if (batch) return batch;
    reader_.reset();
  }
  return std::nullopt;
}

/// The next text, of the present file or the first of those that follow that has one.
bool InputReader::open_next() {
  for (;;) {
    if (file_ == nullptr) {
      if (num_opened_ == inputs_.files.size()) return false;
      file_ = InputFile::open(inputs_.files[num_opened_++]);
    }
    std::unique_ptr<ByteSource> text = file_->next();
    if (text != nullptr) {
      const bool is_jsonl = options_.format == TextFormat::automatic
                                ? has_jsonl_name(text->name())
                                : options_.format == TextFormat::jsonl;
      const DocumentFormat format{is_jsonl, options_.document_separator};
      reader_.emplace(std::move(text), format, cut_point_);
      return true;
    }
    file_.reset();
    num_bytes_ += std::exchange(num_file_bytes_, 0);
  }
}

void InputReader::report_if_due() {
  if (!report_ || now() - last_report_ < kReportInterval) return;
  last_report_ = now();
  report_({.num_bytes = num_bytes_ + num_file_bytes_,
           .total_bytes = total_bytes_,
           .seconds = last_report_ - start_});
}

DocumentBatch parse(DocumentBatch batch, const InputOptions& options, SkippedLines& skipped) {
  if (!batch.is_jsonl) return batch;
  DocumentBatch texts{.input = batch.input, .is_jsonl = false, .text = {}, .parts = {}};
  texts.text.reserve(batch.text.size());
  std::size_t begin = 0;
  for (DocumentPart part : batch.parts) {
    const std::string_view line = std::string_view(batch.text).substr(begin, part.end - begin);
    begin = part.end;
    try {
      const std::optional<std::string> text =
          text_of_json(line, options.json_key, fmt::format("{}:{}", batch.input, part.line_number));
      if (!text) continue;
      texts.text += *text;
    } catch (const ConfigError& error) {
      if (options.invalid_lines == InvalidLines::reject) throw;
      skipped.add({.count = 1, .first = error.what()});
      continue;
    }
    part.end = texts.text.size();
    texts.parts.push_back(part);
  }
  return texts;
}

}  // namespace redspine
