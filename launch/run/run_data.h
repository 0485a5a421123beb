// Whether all ranks read the same token files, and a run that resumes the same as before.
#pragma once

#include <string>
#include <vector>

#include "data/dataset.h"
#include "data/files/fingerprint.h"
#include "data/files/token_file.h"
#include "parallel/group/process_group.h"
#include "trainer/trainer.h"

namespace redspine {

/// Collective. The fingerprints of `files`; rejects on all ranks (agree.h) where ranks read
/// different ones. Ranks that share the files share the reading, too.
std::vector<FileFingerprint> agree_on_files(const ProcessGroup& world,
                                            const std::vector<const TokenFile*>& files);

/// Collective. The same for all files of a run.
DataFingerprint agree_on_data(const ProcessGroup& world, const RunData& data);

/// A line for each training file, up to ten, with the tokens at its end that no sample has.
std::string describe_unused_tokens(const TrainingData& data);

/// On rank 0: a warning for each file that is not what it was.
void log_data_changes(const ProcessGroup& world, const DataFingerprint& before,
                      const DataFingerprint& after);

}  // namespace redspine
