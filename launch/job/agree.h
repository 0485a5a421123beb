// Agreement among ranks: a problem that any rank finds is reported by one of them and ends all.
#pragma once

#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "parallel/group/failure.h"
#include "parallel/group/process_group.h"
#include "tensor/error.h"

namespace redspine {

/// Thrown by agree() on every rank alike, after the problems were reported.
struct Rejected {};

/// The same problems under `key`: those that were found in what it names.
ConfigError under_key(const std::string& key, const ConfigError& error);

/// Collective. `problems` is what this rank found, or empty. Where any rank found some, the lowest
/// of them reports its own and all throw Rejected.
void reject_on_all_ranks(const ProcessGroup& world, const std::string& problems);

/// Collective. Rejects on all ranks where the ranks' `lines`, which describe `what`, differ; hosts
/// without a common file system may hold different versions of a file.
void reject_unequal(const ProcessGroup& world, const char* what, const std::string& lines);

/// Collective. Runs `function` on every rank and gives its result where it threw ConfigError on
/// none; else rejects on all ranks. Other exceptions pass through on their rank alone, which then
/// has to end the job.
template <class Function>
auto agree(const ProcessGroup& world, Function&& function) {
  std::optional<std::invoke_result_t<Function>> result;
  std::string problems;
  try {
    result.emplace(std::forward<Function>(function)());
  } catch (const ConfigError& error) {
    problems = error.what();
  }
  reject_on_all_ranks(world, problems);
  return std::move(*result);
}

}  // namespace redspine
