// The main function of tests that run on several ranks, and what they share.
//
// Every rank runs the same tests. A test compares on whichever ranks it likes with EXPECT (never
// ASSERT, which would leave the others waiting); a failure on any rank fails all of them.
#pragma once

#include <string>

#include "parallel/group/process_group.h"

namespace redspine::testing {

/// All ranks of this test.
const ProcessGroup& world();

/// A new empty directory that all ranks see, removed at the end of the process. Collective.
std::string shared_temporary_directory();

}  // namespace redspine::testing
