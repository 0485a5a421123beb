#include "launch/job/threads.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <limits>

#include "tensor/error.h"

namespace redspine {
namespace {

constexpr double kUnlimited = std::numeric_limits<double>::infinity();

RankCpus rank_on(const std::string& host, std::vector<int> cpus, double quota = kUnlimited,
                 int num_requested_threads = 0) {
  return {.host = host,
          .cpus = std::move(cpus),
          .quota = quota,
          .num_requested_threads = num_requested_threads};
}

std::vector<int> threads_of(const std::vector<RankCpus>& ranks) {
  return plan_threads(ranks).num_threads;
}

TEST(Threads, OneRankUsesItsWholeMask) {
  EXPECT_EQ(threads_of({rank_on("a", {0, 1, 4, 5})}), std::vector<int>{4});
}

TEST(Threads, RanksWithTheSameMaskShareIt) {
  const std::vector<int> all = {0, 1, 2, 3, 4, 5};
  EXPECT_EQ(threads_of({rank_on("a", all), rank_on("a", all)}), (std::vector<int>{3, 3}));
}

TEST(Threads, RanksThatAreBoundApartShareNothing) {
  EXPECT_EQ(threads_of({rank_on("a", {0, 1}), rank_on("a", {2, 3})}), (std::vector<int>{2, 2}));
}

TEST(Threads, RanksOfOtherHostsDoNotCount) {
  EXPECT_EQ(threads_of({rank_on("a", {0, 1}), rank_on("b", {0, 1, 2, 3})}),
            (std::vector<int>{2, 4}));
}

TEST(Threads, TheQuotaIsSharedByAllRanksOfAHostEvenWhenBoundApart) {
  EXPECT_EQ(threads_of({rank_on("a", {0, 1, 2, 3}, 4.5), rank_on("a", {4, 5, 6, 7}, 4.5)}),
            (std::vector<int>{2, 2}));
}

TEST(Threads, ARankHasAtLeastOneThread) {
  EXPECT_EQ(threads_of({rank_on("a", {0}, 0.5), rank_on("a", {0}, 0.5)}), (std::vector<int>{1, 1}));
}

TEST(Threads, TheEnvironmentWins) {
  EXPECT_EQ(threads_of({rank_on("a", {0, 1, 2, 3}, kUnlimited, 3)}), std::vector<int>{3});
}

TEST(Threads, MoreThreadsThanCpusAreWarnedOfWithTheHost) {
  const auto plan =
      plan_threads(std::vector<RankCpus>{rank_on("a", {0, 1}), rank_on("b", {0, 1}, kUnlimited, 1),
                                         rank_on("b", {0, 1}, kUnlimited, 2)});
  ASSERT_EQ(plan.warnings.size(), 1U);
  EXPECT_NE(plan.warnings[0].find("2 ranks on b compute with 3 threads in all, but may use 2 CPUs"),
            std::string::npos)
      << plan.warnings[0];
}

TEST(Threads, AQuotaBelowTheThreadsIsWarnedOf) {
  EXPECT_EQ(plan_threads(std::vector<RankCpus>{rank_on("a", {0, 1, 2}, 2.0, 3)}).warnings.size(),
            1U);
  EXPECT_TRUE(plan_threads(std::vector<RankCpus>{rank_on("a", {0, 1, 2}, 2.0)}).warnings.empty());
}

RankCpus bound_rank(std::vector<int> cpus, double quota = kUnlimited,
                    int num_requested_threads = 0) {
  RankCpus rank = rank_on("a", std::move(cpus), quota, num_requested_threads);
  rank.num_launcher_cpus = 8;
  return rank;
}

TEST(Threads, RanksThatMpirunBoundToFewCpusAreWarnedOf) {
  const auto warnings_of = [](const std::vector<RankCpus>& ranks) {
    return plan_threads(ranks).warnings;
  };
  const auto warnings = warnings_of({bound_rank({0}), bound_rank({1})});
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_NE(warnings[0].find("ranks on a are bound to 2 of the 8 CPUs that mpirun may use there"),
            std::string::npos)
      << warnings[0];
  EXPECT_EQ(warnings_of({bound_rank({0}, 3.0), bound_rank({1}, 3.0)}).size(), 1U);
  EXPECT_TRUE(warnings_of({bound_rank({0}, 2.0), bound_rank({1}, 2.0)}).empty()) << "the quota";
  EXPECT_TRUE(warnings_of({bound_rank({0}, kUnlimited, 1)}).empty()) << "OMP_NUM_THREADS";
  EXPECT_TRUE(warnings_of({bound_rank({0, 1, 2, 3}), bound_rank({4, 5, 6, 7})}).empty());
}

TEST(Threads, RanksThatOpenMpBindsToTheSameCpusAreWarnedOf) {
  const auto binding = [](std::vector<int> cpus) {
    RankCpus rank = rank_on("a", std::move(cpus));
    rank.is_binding_threads = true;
    return rank;
  };
  const auto warnings_of = [](const std::vector<RankCpus>& ranks) {
    return plan_threads(ranks).warnings;
  };
  EXPECT_EQ(warnings_of({binding({0, 1}), binding({0, 1})}).size(), 1U);
  EXPECT_TRUE(warnings_of({binding({0, 1}), binding({2, 3})}).empty()) << "bound apart";
  EXPECT_TRUE(warnings_of({binding({0, 1})}).empty()) << "alone";
}

// In a child, which mpirun's rank is: bound to one CPU of those that its parent has.
TEST(Threads, ARankKnowsTheCpusOfMpirun) {
  const std::vector<int> all = this_rank_cpus().cpus;
  const auto run_child = [&all] {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<std::size_t>(all.front()), &one);
    if (sched_setaffinity(0, sizeof(one), &one) != 0) _exit(2);
    unsetenv("OMPI_COMM_WORLD_RANK");
    if (this_rank_cpus().num_launcher_cpus != 0) _exit(3);
    setenv("OMPI_COMM_WORLD_RANK", "0", 1);
    const RankCpus rank = this_rank_cpus();
    if (rank.cpus.size() != 1) _exit(4);
    _exit(rank.num_launcher_cpus == static_cast<int>(all.size()) ? 0 : 5);
  };
  EXPECT_EXIT(run_child(), ::testing::ExitedWithCode(0), "");
}

TEST(Threads, ADescriptionSurvivesTheExchange) {
  for (const double quota : {kUnlimited, 1.5}) {
    RankCpus rank = rank_on("node07.cluster", {3, 5, 1027}, quota, 7);
    rank.num_launcher_cpus = 16;
    rank.is_binding_threads = true;
    EXPECT_EQ(RankCpus::from_string(rank.to_string()), rank);
  }
}

TEST(Threads, ThisProcessHasCpus) {
  const RankCpus rank = this_rank_cpus();
  EXPECT_FALSE(rank.cpus.empty());
  EXPECT_FALSE(rank.host.empty());
  EXPECT_GT(rank.quota, 0.0);
}

TEST(Threads, AWrongThreadCountInTheEnvironmentIsNamed) {
  const char* before = std::getenv("OMP_NUM_THREADS");
  const std::string saved = before == nullptr ? "" : before;
  for (const char* wrong : {"0", "-1", "two", "2x"}) {
    setenv("OMP_NUM_THREADS", wrong, 1);
    EXPECT_THROW(this_rank_cpus(), ConfigError) << wrong;
  }
  setenv("OMP_NUM_THREADS", "3,2", 1);
  EXPECT_EQ(this_rank_cpus().num_requested_threads, 3);
  setenv("OMP_NUM_THREADS", saved.c_str(), 1);  // empty is as good as unset
}

/// A /proc and /sys of our own.
class CgroupTest : public testing::Test {
 protected:
  void SetUp() override {
    root_ = std::filesystem::path(testing::TempDir()) /
            testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(root_);
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  void write(const std::string& file, const std::string& text) const {
    std::filesystem::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text;
  }
  double quota() const { return cgroup_cpu_quota(root_); }

 private:
  std::filesystem::path root_;
};

TEST_F(CgroupTest, NoControlGroupIsNoLimit) { EXPECT_EQ(quota(), kUnlimited); }

TEST_F(CgroupTest, TheLeastQuotaOfVersion2CountsUpToTheRoot) {
  write("proc/self/cgroup", "0::/slice/job/step\n");
  write("sys/fs/cgroup/slice/cpu.max", "400000 100000\n");
  write("sys/fs/cgroup/slice/job/cpu.max", "150000 100000\n");
  write("sys/fs/cgroup/slice/job/step/cpu.max", "max 100000\n");
  EXPECT_EQ(quota(), 1.5);
}

TEST_F(CgroupTest, AContainerThatSeesItsOwnGroupAsTheRootIsLimited) {
  write("proc/self/cgroup", "0::/outside/that/is/not/mounted\n");
  write("sys/fs/cgroup/cpu.max", "200000 100000\n");
  EXPECT_EQ(quota(), 2.0);
}

TEST_F(CgroupTest, VersionOneIsReadUnderEitherNameOfItsController) {
  write("proc/self/cgroup", "5:memory:/x\n4:cpu,cpuacct:/docker/abc\n3:cpuset:/\n");
  write("sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_quota_us", "300000\n");
  write("sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(quota(), 3.0);
}

TEST_F(CgroupTest, VersionOneWithoutQuotaIsNoLimit) {
  write("proc/self/cgroup", "4:cpu:/\n");
  write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  write("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(quota(), kUnlimited);
}

}  // namespace
}  // namespace redspine
