// The `redspine` command line: finds the command and leaves the rest to it.

#include <fmt/format.h>

#include <array>
#include <exception>

#include "data/io/output.h"
#include "launch/commands/command.h"
#include "launch/config/nearest.h"
#include "launch/job/process.h"
#include "launch/job/version.h"
#include "tensor/error.h"
#include "tensor/printable.h"

namespace redspine {
namespace {

const std::array<Command, 9>& commands() {
  static const std::array<Command, 9> kAll = {{
      {"train", "train a model; under mpirun or srun, on many ranks", run_train, Processes::many},
      {"tokenize", "turn text into token files", run_tokenize, Processes::one},
      {"trace", "show which documents a training step read", run_trace, Processes::one},
      {"audit", "are the steps of a run what it has recorded? replays them", run_audit,
       Processes::many},
      {"sample", "text from a checkpoint", run_sample, Processes::many},
      {"evaluate", "how well a checkpoint predicts a text", run_evaluate, Processes::many},
      {"bench", "how fast a configuration would train here, and in how much memory", run_bench,
       Processes::many},
      {"plan", "memory and time of a configuration on any number of ranks, without them", run_plan,
       Processes::one},
      {"checkpoint", "look into checkpoints, check, compare and convert them", run_checkpoint,
       Processes::many},
  }};
  return kAll;
}

std::string help_text() {
  std::string text = fmt::format(
      "redspine {}: trains GPT-style transformers on many ranks\n\nredspine COMMAND [OPTION ...]\n",
      version_number());
  for (const Command& command : commands()) {
    text += fmt::format("  {:<10}  {}\n", command.name, command.summary);
  }
  return text +
         "  --version   version, build, backends and libraries\n"
         "  --help      this text; redspine COMMAND --help: the options of a command\n";
}

int run(Arguments arguments) {
  if (arguments.empty()) {
    write_error(help_text());
    return kExitUserError;
  }
  const std::string& name = arguments.front();
  for (const Command& command : commands()) {
    if (command.name == name) return start_command(command, name, arguments.subspan(1));
  }
  if (name == "--version") {
    write_out(version_text());
    return kExitDone;
  }
  if (name == "--help" || name == "-h") {
    write_out(help_text());
    return kExitDone;
  }
  std::vector<std::string> known = {"--version", "--help"};
  for (const Command& command : commands()) known.push_back(command.name);
  print_error("redspine: {}: unknown command{}; all: redspine --help\n",
              one_line(name, kMaxExcerpt), nearest_word(name, known));
  return kExitUserError;
}

}  // namespace
}  // namespace redspine

int main(int argc, char** argv) {
  redspine::prepare_process();
  try {
    const std::vector<std::string> arguments(argv + 1, argv + argc);
    const int exit_code = redspine::run(arguments);
    redspine::flush_out();
    return exit_code;
  } catch (const redspine::ConfigError& error) {
    redspine::print_error("redspine: {}\n", redspine::printable_lines(error.what()));
    return redspine::kExitUserError;
  } catch (const std::exception& error) {
    redspine::print_error("redspine: {}\n", redspine::printable_lines(error.what()));
    return redspine::kExitFailed;
  }
}
