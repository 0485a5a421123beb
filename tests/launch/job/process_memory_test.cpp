// The memory of a whole process beside what its plan says.

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstdio>

#include "tests/support/command_line.h"

namespace redspine::testing {
namespace {

// Of the processes that this one has started and that have ended, the largest one's peak.
double peak_of_processes() {
  rusage usage{};
  getrusage(RUSAGE_CHILDREN, &usage);
  return static_cast<double>(usage.ru_maxrss) * 1024.0;
}

// The weights, gradients and moments are 16 bytes per parameter. A run with `checkpoint.async` and
// an interval takes 12 more for its snapshot.
TEST(ProcessMemory, OfATrainingRunIsItsPlanAndLittleMore) {
  const TinyRun run;
  const Result result = redspine(fmt::format(
      "train --config {} --set model.num_layers=8 model.hidden_size=768 model.num_heads=12 "
      "model.max_sequence_length=256 batch.micro_batch_size=4 checkpoint.interval=0",
      run.path("run.yaml")));
  ASSERT_EQ(result.exit_code, 0) << result.output;
  double planned_mib = 0.0;
  const std::size_t plan = result.output.find("memory: ");
  ASSERT_NE(plan, std::string::npos) << result.output;
  ASSERT_EQ(std::sscanf(result.output.c_str() + plan, "memory: %lf MiB", &planned_mib), 1);
  const double planned = planned_mib * (1 << 20);
  const double num_parameters = 8.0 * (12.0 * 768.0 * 768.0) + (257.0 + 256.0) * 768.0;
  EXPECT_GT(planned, 16.0 * num_parameters);
  EXPECT_GT(peak_of_processes(), planned);
  EXPECT_LT(peak_of_processes(), planned + 150e6);
}

}  // namespace
}  // namespace redspine::testing
