// redspine checkpoint: finds which of its commands is meant.

#include "launch/commands/checkpoint_command.h"

#include <fmt/format.h>

#include <array>

#include "data/io/output.h"
#include "launch/config/nearest.h"
#include "tensor/printable.h"

namespace redspine {
namespace {

const std::array<Command, 5>& commands() {
  static const std::array<Command, 5> kAll = {{
      {"inspect", "tensors, layers, step and configuration", run_checkpoint_inspect,
       Processes::one},
      {"verify", "is every byte as it was written?", run_checkpoint_verify, Processes::many},
      {"diff", "what differs between two, tensor by tensor", run_checkpoint_diff, Processes::one},
      {"import", "a GPT-2 or Llama of transformers -> weights to begin with", run_checkpoint_import,
       Processes::one},
      {"export", "the model alone, for transformers", run_checkpoint_export, Processes::one},
  }};
  return kAll;
}

std::string help_text() {
  std::string text = "redspine checkpoint COMMAND DIR ... [OPTION ...]\n";
  for (const Command& command : commands()) {
    text += fmt::format("  {:<8}  {}\n", command.name, command.summary);
  }
  return text + "redspine checkpoint COMMAND --help: the options of a command\n";
}

}  // namespace

int run_checkpoint(Arguments arguments) {
  if (arguments.empty()) {
    write_error(help_text());
    return kExitUserError;
  }
  const std::string& name = arguments.front();
  std::vector<std::string> known;
  for (const Command& command : commands()) {
    if (command.name == name) {
      return start_command(command, "checkpoint " + name, arguments.subspan(1));
    }
    known.push_back(command.name);
  }
  if (name == "--help" || name == "-h") {
    write_out(help_text());
    return kExitDone;
  }
  print_error("redspine: checkpoint {}: unknown command{}; all: redspine checkpoint --help\n",
              one_line(name, kMaxExcerpt), nearest_word(name, known));
  return kExitUserError;
}

}  // namespace redspine
