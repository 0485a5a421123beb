// Checks that the ranks of a job see the same files where their hosts should share a folder. A file
// system that one host lacks is found, and its rank named, before anything is changed. Collective;
// the same on every rank.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "parallel/group/process_group.h"
#include "trainer/checkpoint/store.h"

namespace redspine {

/// ConfigError (`key`) where one rank sees other files in `directory` than another: names, sizes,
/// and what manifest.json and config.json say. Whether there is anything at all is not asked.
void check_same_directory(const std::string& directory, const std::string& key,
                          const ProcessGroup& world);

/// The steps of the store, ascending. ConfigError ("checkpoint.resume") where one rank sees
/// checkpoints that another does not.
std::vector<std::int64_t> agreed_steps(const CheckpointStore& store, const ProcessGroup& world);

/// ConfigError ("run.output_dir") where the ranks could not write one checkpoint together. Tries
/// it with a partial folder that is gone afterwards.
void check_shared_folder(const CheckpointStore& store, const ProcessGroup& world);

}  // namespace redspine
