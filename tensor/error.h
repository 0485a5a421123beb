// The kinds of error that the whole system knows.
//
// ConfigError  the user's problem: a key, a file, a layout. Exit code 2, nothing touched.
// Error        the system failed: a call, a device, a peer. Exit code 1, the whole job ends.
// assert       the programmer's problem.
// Expected events (a non-finite step, the end of the data) are return values, not exceptions.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

namespace redspine {

/// One thing that the user has to change. `key` is the full configuration key ("model.num_heads")
/// or empty where the problem has no key (a command line, a data file).
struct ConfigProblem {
  std::string key;
  std::string text;
};

/// The user's problems, all of those found in one go. what() lists them a line each.
class ConfigError : public std::runtime_error {
 public:
  explicit ConfigError(std::vector<ConfigProblem> problems);
  ConfigError(std::string key, std::string text);

  const std::vector<ConfigProblem>& problems() const { return problems_; }

 private:
  std::vector<ConfigProblem> problems_;
};

/// Collects problems so that a user sees all of them at once.
class ConfigProblems {
 public:
  void add(std::string key, std::string text) { all_.push_back({std::move(key), std::move(text)}); }
  bool empty() const { return all_.empty(); }
  const std::vector<ConfigProblem>& all() const { return all_; }
  /// Throws ConfigError with everything collected, if anything was.
  void throw_if_any() const;

 private:
  std::vector<ConfigProblem> all_;
};

/// A failure of the system. The message is followed by the place in the source.
class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& message, const char* file = __builtin_FILE(),
                 int line = __builtin_LINE());
};

}  // namespace redspine
