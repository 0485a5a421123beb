// What a command reports about its inputs. How far it is, on standard error where that is a
// terminal: one line, updated in place; elsewhere nothing is shown.
#pragma once

#include <string>
#include <vector>

#include "data/documents/input_reader.h"

namespace redspine {

class ProgressLine {
 public:
  /// `action` begins the line.
  explicit ProgressLine(std::string action);
  /// Clears it away.
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void show(const InputProgress& progress);
  /// For what is counted, not read.
  void show(std::int64_t done, std::int64_t wanted);

 private:
  void write(const std::string& text);

  std::string action_;
  bool is_terminal_;
  bool is_shown_ = false;
};

/// A line on the files that folders and globs hold, but that are the command's own.
void print_left_out(const std::vector<std::string>& files);

/// "12.3 MB".
std::string format_bytes(double num_bytes);

}  // namespace redspine
