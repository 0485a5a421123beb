// The commands of `redspine`: each takes the arguments after its name and returns the exit code of
// the process: 0 done, 2 a problem of the user's and nothing touched, 75 stopped on request with a
// checkpoint saved, 1 anything else.
#pragma once

#include <boost/program_options.hpp>
#include <span>
#include <string>
#include <vector>

#include "launch/config/config_file.h"
#include "launch/job/exit_code.h"

namespace redspine {

using Arguments = std::span<const std::string>;

enum class Processes {
  one,   // several are rejected before anything is done
  many,  // as many ranks as there are
};

struct Command {
  std::string name;
  std::string summary;  // one line, for `redspine --help`
  int (*run)(Arguments arguments);
  Processes processes;
};

int run_train(Arguments arguments);
int run_tokenize(Arguments arguments);
int run_sample(Arguments arguments);
int run_evaluate(Arguments arguments);
int run_checkpoint(Arguments arguments);
int run_trace(Arguments arguments);
int run_bench(Arguments arguments);
int run_plan(Arguments arguments);
int run_audit(Arguments arguments);

/// Runs it and gives its exit code. `full_name` is what a user types.
int start_command(const Command& command, const std::string& full_name, Arguments arguments);

/// Whether --help is among the arguments.
bool asks_for_help(Arguments arguments);

/// Reads `arguments` strictly: whole names of options only. Arguments without an option go to the
/// one that `positional` names, or are problems where it is empty. Throws ConfigError.
boost::program_options::variables_map parse_arguments(
    Arguments arguments, const boost::program_options::options_description& options,
    const std::string& positional = "");

/// --set, told by `text`, and the KEY=VALUE arguments that it was given, none where it was not.
void add_set_option(boost::program_options::options_description& options, const std::string& text);
std::vector<std::string> set_arguments(const boost::program_options::variables_map& values);

/// --config and --set, which give a command its configuration. `file` says what the file is.
void add_config_options(boost::program_options::options_description& options,
                        const std::string& file);

/// What they say on so many ranks, with `more` settings above them. Throws ConfigError, which names
/// the command where it was given no file.
EffectiveConfig read_config(const boost::program_options::variables_map& values,
                            const std::string& command, int world_size,
                            const std::vector<std::string>& more = {});

}  // namespace redspine
