// One voice and one exit for all ranks: a problem that any of them finds is told by one of them and
// ends all of them.
#pragma once

#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "parallel/group/failure.h"
#include "parallel/group/process_group.h"
#include "tensor/error.h"

namespace redspine {

/// Thrown by agree() on every rank alike, after the problems were told.
struct Refused {};

/// The same problems under `key`: those that were found in what it names.
ConfigError under_key(const std::string& key, const ConfigError& error);

/// Collective. `problems` is what this rank found, or empty. Where any rank found some, the lowest
/// of them tells its own and all throw Refused.
void refuse_together(const ProcessGroup& world, const std::string& problems);

/// Collective. Refuses together where the ranks do not have the same of `what`, which `lines` tell;
/// hosts without a common file system may hold different versions of a file.
void refuse_unequal(const ProcessGroup& world, const char* what, const std::string& lines);

/// Collective. Runs `function` on every rank and gives its result where it threw ConfigError on
/// none; else refuses together. Other exceptions pass through on their rank alone, which then has
/// to end the job.
template <class Function>
auto agree(const ProcessGroup& world, Function&& function) {
  std::optional<std::invoke_result_t<Function>> result;
  std::string problems;
  try {
    result.emplace(std::forward<Function>(function)());
  } catch (const ConfigError& error) {
    problems = error.what();
  }
  refuse_together(world, problems);
  return std::move(*result);
}

}  // namespace redspine
