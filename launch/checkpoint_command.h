// The commands of `redspine checkpoint`. Each takes the words after its name and returns the exit
// code; mistakes are ConfigErrors. Local, but for verify, which shares its reading over all ranks.
#pragma once

#include "launch/command.h"

namespace redspine {

int run_checkpoint_inspect(Words words);
int run_checkpoint_verify(Words words);
int run_checkpoint_diff(Words words);
int run_checkpoint_import(Words words);
int run_checkpoint_export(Words words);

}  // namespace redspine
