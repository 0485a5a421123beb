// The commands of `redspine checkpoint`. Each takes the arguments after its name and returns the
// exit code; problems are ConfigErrors. Local, but for verify, which shares its reading over all
// ranks.
#pragma once

#include "launch/commands/command.h"

namespace redspine {

int run_checkpoint_inspect(Arguments arguments);
int run_checkpoint_verify(Arguments arguments);
int run_checkpoint_diff(Arguments arguments);
int run_checkpoint_import(Arguments arguments);
int run_checkpoint_export(Arguments arguments);

}  // namespace redspine
