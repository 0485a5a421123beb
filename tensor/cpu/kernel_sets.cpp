#include "tensor/cpu/kernel_sets.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cassert>
#include <cstdlib>
#include <vector>

#include "tensor/cpu_kernel_choice.h"
#include "tensor/error.h"

namespace redspine {
namespace {

constexpr const char* kVariable = "REDSPINE_CPU_KERNELS";

enum class Which { all, that_run_here };

// For a message.
std::string names_of(std::span<const CpuKernelSet> sets, Which which) {
  std::vector<std::string> names;
  for (const CpuKernelSet& set : sets) {
    if (which == Which::all || set.runs_here) names.emplace_back(set.name);
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

const CpuKernelSet& choose_kernel_set(std::span<const CpuKernelSet> sets, const std::string& name) {
  assert(!sets.empty());
  if (name.empty()) {
    // The plainest is what the whole program was compiled for: where it does not run, nothing does.
    const CpuKernelSet* fastest = &sets.front();
    for (const CpuKernelSet& set : sets) {
      if (set.runs_here) fastest = &set;
    }
    return *fastest;
  }
  for (const CpuKernelSet& set : sets) {
    if (set.name != name) continue;
    if (set.runs_here) return set;
    throw ConfigError(kVariable, fmt::format("is {}, which this processor does not run; legal "
                                             "here: {}",
                                             name, names_of(sets, Which::that_run_here)));
  }
  throw ConfigError(kVariable, fmt::format("is {}, which is not in this build; legal here: {}",
                                           name, names_of(sets, Which::that_run_here)));
}

const CpuKernelSet& common_kernel_set(std::span<const CpuKernelSet> sets,
                                      std::span<const std::string> names) {
  for (const std::string& name : names) {
    const bool is_known = std::any_of(sets.begin(), sets.end(),
                                      [&](const CpuKernelSet& set) { return set.name == name; });
    if (!is_known) {
      throw ConfigError(kVariable,
                        fmt::format("is {} on another rank, which is not in this rank's build: {}",
                                    name, names_of(sets, Which::all)));
    }
  }
  for (const CpuKernelSet& set : sets) {
    if (std::find(names.begin(), names.end(), set.name) != names.end()) return set;
  }
  return sets.front();
}

std::string cpu_kernels() {
  const char* name = std::getenv(kVariable);
  return choose_kernel_set(cpu_kernel_sets(), name == nullptr ? "" : name).name;
}

std::string cpu_kernels_in_common(std::span<const std::string> of_ranks) {
  return common_kernel_set(cpu_kernel_sets(), of_ranks).name;
}

std::string cpu_kernels_description() {
  const auto sets = cpu_kernel_sets();
  return fmt::format("{} (in this build: {})", cpu_kernels(), names_of(sets, Which::all));
}

}  // namespace redspine
