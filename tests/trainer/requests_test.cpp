#include "trainer/requests.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>
#include <string>

namespace redspine {
namespace {

class Allocation {
 public:
  /// Of so many seconds from now on.
  explicit Allocation(std::int64_t seconds)
      : Allocation(std::to_string(std::time(nullptr) + seconds)) {}
  explicit Allocation(const std::string& end) { setenv("SLURM_JOB_END_TIME", end.c_str(), 1); }
  Allocation(const Allocation&) = delete;
  Allocation& operator=(const Allocation&) = delete;
  ~Allocation() { unsetenv("SLURM_JOB_END_TIME"); }
};

bool is_at_its_end(RequestWatch& watch) { return watch.poll().has(Request::allocation_end); }

TEST(RequestWatch, LeavesRoomForAStepAndASaveBeforeTheEndOfTheAllocation) {
  const StopSignals signals;
  const Allocation allocation(1000);
  RequestWatch watch("/nowhere", 0, signals);
  EXPECT_FALSE(is_at_its_end(watch));
  watch.step_took(450.0);
  EXPECT_FALSE(is_at_its_end(watch));
  watch.save_took(300.0);
  watch.save_took(5.0);
  EXPECT_FALSE(is_at_its_end(watch)) << "100 + 450 + 300";
  watch.save_took(480.0);
  EXPECT_TRUE(is_at_its_end(watch)) << "100 + 450 + 480";
}

TEST(RequestWatch, RanksButTheFirstLeaveTheClockToItUnlessTheyAreAsked) {
  const StopSignals signals;
  const Allocation allocation(1000);
  RequestWatch watch("/nowhere", 1, signals);
  watch.step_took(1000.0);
  EXPECT_FALSE(is_at_its_end(watch));
  EXPECT_TRUE(watch.is_stop_asked());
  EXPECT_TRUE(is_at_its_end(watch)) << "what was seen stays";
}

TEST(RequestWatch, AnAllocationThatHasEndedBeforeTheStartIsWarnedOfAndNotGoneBy) {
  const StopSignals signals;
  for (const std::string& end : {std::to_string(std::time(nullptr) - 60), std::string("unknown")}) {
    const Allocation allocation(end);
    RequestWatch watch("/nowhere", 0, signals);
    EXPECT_FALSE(is_at_its_end(watch)) << end;
    EXPECT_NE(watch.warning().find("SLURM_JOB_END_TIME is \"" + end + '"'), std::string::npos)
        << watch.warning();
  }
  const Allocation allocation(1000);
  EXPECT_EQ(RequestWatch("/nowhere", 0, signals).warning(), "");
}

}  // namespace
}  // namespace redspine
