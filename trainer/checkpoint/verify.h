// Whether a checkpoint is what was written, bit for bit. Reads every byte; ranks share the work.
#pragma once

#include <string>
#include <vector>

#include "parallel/group/process_group.h"
#include "trainer/checkpoint/keep_going.h"

namespace redspine {

enum class Verification {
  full,         // sizes, headers and every hash
  from_medium,  // the same of what is on the medium, not of what the system remembers of it
  sizes,        // sizes and headers alone
  model,        // full, but without the optimizer's state
};

/// What is wrong with this rank's share of `directory` (its manifest, sizes and headers in any
/// case); empty if nothing. Each line names file and tensor. Local, never throws for damage.
struct VerifyShare {
  int index = 0;
  int count = 1;
};
std::vector<std::string> verify_checkpoint(const std::string& directory, Verification verification,
                                           VerifyShare share = {},
                                           const KeepGoing& keep_going = {});

/// The same by all ranks of `group`, each a share. Collective; the same on every rank.
std::vector<std::string> verify_checkpoint(const std::string& directory, Verification verification,
                                           const ProcessGroup& group,
                                           const KeepGoing& keep_going = {});

/// Before `directory` is used: ConfigError with everything that is not as its manifest says, the
/// same on every rank. False where it has no manifest, as what others wrote has none: nothing
/// tells.
bool check_as_written(const std::string& directory, Verification verification);
/// The same by all ranks of `group`. Collective.
bool check_as_written(const std::string& directory, Verification verification,
                      const ProcessGroup& group, const KeepGoing& keep_going = {});

}  // namespace redspine
