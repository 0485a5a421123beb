// One voice and one exit for all ranks: a mistake that any of them finds is told by one of them and
// ends all of them.
#pragma once

#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "parallel/failure.h"
#include "parallel/rank_group.h"
#include "tensor/error.h"

namespace redspine {

/// Thrown by agree() on every rank alike, after the mistakes were told.
struct Refused {};

/// The same mistakes under `key`: those that were found in what it names.
ConfigError under_key(const std::string& key, const ConfigError& error);

/// Collective. `mistakes` is what this rank found, or empty. Where any rank found some, the lowest
/// of them tells its own and all throw Refused.
void refuse_together(const RankGroup& world, const std::string& mistakes);

/// Collective. Refuses together where the ranks do not have the same of `what`, which `lines` tell;
/// hosts without a common file system may hold different versions of a file.
void refuse_unequal(const RankGroup& world, const char* what, const std::string& lines);

/// Collective. Runs `function` on every rank and gives its result where it threw ConfigError on
/// none; else refuses together. Other exceptions pass through on their rank alone, which then has
/// to end the job.
template <class Function>
auto agree(const RankGroup& world, Function&& function) {
  std::optional<std::invoke_result_t<Function>> result;
  std::string mistakes;
  try {
    result.emplace(std::forward<Function>(function)());
  } catch (const ConfigError& error) {
    mistakes = error.what();
  }
  refuse_together(world, mistakes);
  return std::move(*result);
}

}  // namespace redspine
