// The kinds of error that the whole system knows.
//
// ConfigError  the user's mistake: a key, a file, a layout. Exit code 2, nothing touched.
// Error        the system failed: a call, a device, a peer. Exit code 1, the whole job ends.
// assert       the programmer's mistake.
// Expected events (a non-finite step, the end of the data) are return values, not exceptions.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

namespace redspine {

/// One thing that the user has to change. `key` is the full configuration key ("model.num_heads")
/// or empty where the mistake has no key (a command line, a data file).
struct Mistake {
  std::string key;
  std::string text;
};

/// The user's mistakes, all of those found in one go. what() lists them a line each.
class ConfigError : public std::runtime_error {
 public:
  explicit ConfigError(std::vector<Mistake> mistakes);
  ConfigError(std::string key, std::string text);

  const std::vector<Mistake>& mistakes() const { return mistakes_; }

 private:
  std::vector<Mistake> mistakes_;
};

/// Collects mistakes so that a user sees all of them at once.
class Mistakes {
 public:
  void add(std::string key, std::string text) { all_.push_back({std::move(key), std::move(text)}); }
  bool empty() const { return all_.empty(); }
  const std::vector<Mistake>& all() const { return all_; }
  /// Throws ConfigError with everything collected, if anything was.
  void throw_if_any() const;

 private:
  std::vector<Mistake> all_;
};

/// A failure of the system. The message is followed by the place in the source.
class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& message, const char* file = __builtin_FILE(),
                 int line = __builtin_LINE());
};

}  // namespace redspine
