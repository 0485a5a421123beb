// The commands of `redspine`: each takes the words after its name and returns the exit code of the
// process: 0 done, 2 a mistake of the user's and nothing touched, 75 stopped on request with a
// checkpoint saved, 1 anything else.
#pragma once

#include <boost/program_options.hpp>
#include <span>
#include <string>
#include <vector>

namespace redspine {

using Words = std::span<const std::string>;

inline constexpr int kExitDone = 0;
inline constexpr int kExitFailed = 1;
inline constexpr int kExitMistake = 2;
inline constexpr int kExitStopped = 75;

enum class Processes {
  one,   // several are refused before anything is done
  many,  // as many ranks as there are
};

struct Command {
  std::string name;
  std::string summary;  // one line, for `redspine --help`
  int (*run)(Words words);
  Processes processes;
};

int run_train(Words words);
int run_tokenize(Words words);
int run_sample(Words words);
int run_evaluate(Words words);
int run_checkpoint(Words words);
int run_trace(Words words);
int run_bench(Words words);

/// Runs it and gives its exit code. `full_name` is what a user types.
int start_command(const Command& command, const std::string& full_name, Words words);

/// Whether --help is among the words.
bool asks_for_help(Words words);

/// Reads `words` strictly: whole names of options only. Words without an option go to the one that
/// `positional` names, or are mistakes where it is empty. Throws ConfigError.
boost::program_options::variables_map parse_words(
    Words words, const boost::program_options::options_description& options,
    const std::string& positional = "");

/// The KEY=VALUE words of --set, none where it is not among the words that were read.
std::vector<std::string> settings_of(const boost::program_options::variables_map& values);

}  // namespace redspine
