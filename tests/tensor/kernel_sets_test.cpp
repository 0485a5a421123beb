// Which of a build's kernels a processor gets. The sets are made up: no processor is asked.
#include "tensor/cpu/kernel_sets.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tensor/cpu_kernel_choice.h"
#include "tensor/error.h"

namespace redspine {
namespace {

using Names = std::vector<std::string>;

constexpr CpuKernelSet kOnAnOldProcessor[] = {{"avx2", true, nullptr}, {"avx512", false, nullptr}};
constexpr CpuKernelSet kOnANewProcessor[] = {{"avx2", true, nullptr}, {"avx512", true, nullptr}};

template <class Action>
std::string problem_of(const Action& action) {
  try {
    action();
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(KernelSets, TheFastestThatRunsIsTakenWhereNoneIsNamed) {
  EXPECT_STREQ(choose_kernel_set(kOnAnOldProcessor, "").name, "avx2");
  EXPECT_STREQ(choose_kernel_set(kOnANewProcessor, "").name, "avx512");
}

TEST(KernelSets, TheOneThatIsNamedIsTaken) {
  EXPECT_STREQ(choose_kernel_set(kOnANewProcessor, "avx2").name, "avx2");
  EXPECT_STREQ(choose_kernel_set(kOnANewProcessor, "avx512").name, "avx512");
}

TEST(KernelSets, OneThatTheProcessorLacksIsRejected) {
  EXPECT_EQ(problem_of([] { choose_kernel_set(kOnAnOldProcessor, "avx512"); }),
            "REDSPINE_CPU_KERNELS: is avx512, which this processor does not run; legal here: avx2");
}

TEST(KernelSets, OneThatTheBuildLacksIsRejected) {
  EXPECT_EQ(problem_of([] { choose_kernel_set(kOnANewProcessor, "neon"); }),
            "REDSPINE_CPU_KERNELS: is neon, which is not in this build; legal here: avx2, avx512");
}

TEST(KernelSets, RanksHaveTheirPlainestInCommon) {
  EXPECT_STREQ(common_kernel_set(kOnANewProcessor, Names{"avx512", "avx512"}).name, "avx512");
  EXPECT_STREQ(common_kernel_set(kOnANewProcessor, Names{"avx512", "avx2"}).name, "avx2");
  EXPECT_STREQ(common_kernel_set(kOnAnOldProcessor, Names{"avx512", "avx2"}).name, "avx2");
}

TEST(KernelSets, ARankOfAnotherBuildIsRejected) {
  EXPECT_EQ(problem_of([] {
              common_kernel_set(kOnANewProcessor, Names{"avx2", "native"});
            }),
            "REDSPINE_CPU_KERNELS: is native on another rank, which is not in this rank's build: "
            "avx2, avx512");
}

TEST(KernelSets, OfThisBuildAllThatRunHereMakeADevice) {
  for (const CpuKernelSet& set : cpu_kernel_sets()) {
    if (!set.runs_here) continue;
    const auto device = make_cpu_device(1, set.name);
    EXPECT_TRUE(device->description().ends_with(std::string(set.name) + " kernels"))
        << device->description();
  }
}

}  // namespace
}  // namespace redspine
