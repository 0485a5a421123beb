// What a run needs besides its configuration and data, looked at before anything is made or
// changed: its tokenizer, the weights that it begins with, and a directory that it may write.
#pragma once

#include <string>

#include "launch/config/config_file.h"
#include "parallel/group/process_group.h"
#include "trainer/checkpoint/keep_going.h"

namespace redspine {

/// ConfigError ("data.tokenizer") where there is no such tokenizer, or one with more ids than the
/// model has. Local.
void check_tokenizer(const Config& config);

/// Collective. Rejects on all ranks (agree.h) a checkpoint.initialize_from without weights, with
/// damaged ones or with those of another model, under its key or that of each setting that differs.
void check_initial_weights(const ProcessGroup& world, const EffectiveConfig& effective,
                           const KeepGoing& keep_going);
/// Where a run begins with the weights of checkpoint.initialize_from, in lines: what was not looked
/// at, and which settings make the weights another function. Local.
std::string describe_initial_weights(const Config& config);

/// ConfigError ("run.output_dir") where the run's directory cannot be made or written, as far as
/// that shows without trying. Local.
void check_run_directory(const RunConfig& config);
/// Said of a directory that is used with checkpoint.verify: false.
inline constexpr const char* kUnverified =
    ", whose hashes were not compared (checkpoint.verify is false)";
std::string config_path(const RunConfig& config);
[[noreturn]] void reject_output(const std::string& path, int code);

}  // namespace redspine
