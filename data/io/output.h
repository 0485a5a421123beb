// The standard streams of a program. What cannot be written to standard output is an error with its
// cause, as for a file: a full disk, a reader that is gone. What cannot be written to standard
// error could be told nowhere, and is dropped. Local, from one thread at a time.
#pragma once

#include <fmt/format.h>

#include <string_view>
#include <utility>

namespace redspine {

/// To standard output, which may keep it until flush_out().
void write_out(std::string_view text);
/// Returns once everything written is out of the process.
void flush_out();
/// To standard error, at once.
void write_error(std::string_view text) noexcept;

template <class... Args>
void print_out(fmt::format_string<Args...> format, Args&&... args) {
  write_out(fmt::format(format, std::forward<Args>(args)...));
}

template <class... Args>
void print_error(fmt::format_string<Args...> format, Args&&... args) {
  write_error(fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace redspine
