// The documents of one text or JSONL file, one after another.
#pragma once

#include <cstdint>
#include <fstream>
#include <optional>
#include <string>

namespace redspine {

struct DocumentFormat {
  bool is_jsonl;
  std::string json_key;                           // jsonl
  std::optional<std::string> document_separator;  // text
};

class DocumentReader {
 public:
  /// ConfigError if the file cannot be read.
  DocumentReader(const std::string& path, const DocumentFormat& format);

  /// The next document that is not empty; nothing after the last one. ConfigError with file and
  /// line for a line of JSONL that does not hold one.
  std::optional<std::string> next();

 private:
  std::optional<std::string> next_json();
  std::optional<std::string> next_text();
  std::optional<std::string> rest_of_file();
  std::string parse(const std::string& line) const;
  bool get_line(std::string& line);

  std::string path_;
  DocumentFormat format_;
  std::ifstream stream_;
  std::int64_t line_number_ = 0;  // of the last line read, counted from 1
};

}  // namespace redspine
