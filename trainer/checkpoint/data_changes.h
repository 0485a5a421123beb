// What it means for a run that resumes when its token files are no longer the same. Pure.
#pragma once

#include <string>
#include <vector>

#include "data/files/fingerprint.h"

namespace redspine {

/// A line for each file that was added, removed, grown, shrunk, replaced or renamed, with the key
/// of its list, what it was and what it is. None for files that moved but come in the same order,
/// nor for a list that one of the two does not know.
std::vector<std::string> changed_data(const DataFingerprint& before, const DataFingerprint& after);

}  // namespace redspine
