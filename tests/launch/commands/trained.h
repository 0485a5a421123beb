// A model that one run has trained for all tests of this binary, and what it was trained on.
#pragma once

#include <string>

namespace redspine::testing {

/// A path in the folder of the run. It holds "text", the token files "tokens" of its 200 documents,
/// run.yaml, "first" and "last" (checkpoints after steps 60 and 120), and metrics.jsonl.
std::string trained(const std::string& name);

/// The text's documents end with a token each, and the first token is no target.
inline constexpr int kNumDocuments = 200;

/// A new path in that folder for what a test writes.
std::string fresh(const std::string& name);

}  // namespace redspine::testing
