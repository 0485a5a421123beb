// A failure of one rank becomes a failure of all ranks where they can still communicate: none is
// left waiting in a collective, and the cause is reported once. And how a rank writes messages.
#pragma once

#include <exception>
#include <functional>
#include <string>

#include "parallel/group/process_group.h"
#include "tensor/error.h"

namespace redspine {

/// Writes `text` to standard error, each line after "[rank R @ HOST] ". Local, from any thread.
void log_from_rank(const ProcessGroup& world, const std::string& text);

/// Thrown on every rank of a group alike, with the text of the lowest rank that failed.
class CollectiveError : public Error {
 public:
  explicit CollectiveError(const std::string& message, const char* file = __builtin_FILE(),
                           int line = __builtin_LINE())
      : Error(message, file, line) {}
};

/// Collective. `failure` is what went wrong here, or empty. Throws CollectiveError on every rank
/// where it is not empty on any.
void fail_together(const ProcessGroup& group, const std::string& failure);

/// Collective. Runs `action`, which talks to no other rank, and fails together where it threw.
void run_together(const ProcessGroup& group, const std::function<void()>& action);

}  // namespace redspine
