// Whether a checkpoint is what was written, bit for bit. Reads every byte; ranks share the work.
#pragma once

#include <string>
#include <vector>

#include "parallel/rank_group.h"
#include "trainer/checkpoint/keep_going.h"

namespace redspine {

enum class Verification {
  full,         // sizes, headers and every hash
  from_medium,  // the same of what is on the medium, not of what the system remembers of it
  sizes,        // sizes and headers alone
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
                                           const RankGroup& group,
                                           const KeepGoing& keep_going = {});

}  // namespace redspine
