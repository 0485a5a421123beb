#include "data/input_reader.h"

#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <string_view>
#include <utility>

#include "data/inputs.h"

namespace redspine {
namespace {

constexpr double kReportInterval = 0.2;  // seconds

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

bool has_jsonl_name(const std::string& path) {
  std::filesystem::path name = path;
  for (const char* compressed : {".gz", ".zst"}) {
    if (name.extension() == compressed) name.replace_extension();
  }
  return name.extension() == ".jsonl" || name.extension() == ".ndjson";
}

}  // namespace

void InputOptions::validate(Mistakes& mistakes) const {
  if (inputs.empty()) mistakes.add("--input", "names no file; legal: at least one");
  if (json_key.empty()) mistakes.add("--json-key", "is empty; legal: the key of the text");
  if (document_separator && document_separator->find('\n') != std::string::npos) {
    mistakes.add("--document-separator",
                 "has a line break; legal: what one whole line holds, empty for blank lines");
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
      paths_(find_inputs(options_.inputs)),
      total_bytes_(total_size(paths_)),
      start_(now()),
      last_report_(start_) {}

std::optional<DocumentBatch> InputReader::next() {
  for (;;) {
    if (!reader_) {
      if (num_opened_ == paths_.size()) return std::nullopt;
      const std::string& path = paths_[num_opened_++];
      const bool is_jsonl = options_.format == TextFormat::automatic
                                ? has_jsonl_name(path)
                                : options_.format == TextFormat::jsonl;
      reader_.emplace(path, DocumentFormat{is_jsonl, options_.document_separator}, cut_point_);
    }
    std::optional<DocumentBatch> batch = reader_->next();
    report_if_due();
    if (batch) return batch;
    num_bytes_ += reader_->num_file_bytes();
    reader_.reset();
  }
}

void InputReader::report_if_due() {
  if (!report_ || now() - last_report_ < kReportInterval) return;
  last_report_ = now();
  report_({.num_bytes = num_bytes_ + reader_->num_file_bytes(),
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
      if (options.invalid_lines == InvalidLines::refuse) throw;
      skipped.add({.count = 1, .first = error.what()});
      continue;
    }
    part.end = texts.text.size();
    texts.parts.push_back(part);
  }
  return texts;
}

}  // namespace redspine
