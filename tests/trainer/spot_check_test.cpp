// A block that other ranks compute again has the same bits, for all that a model may be and on all
// layouts; and one that came out otherwise is told, with those who computed it and those who did so
// again.
#include "trainer/spot_check.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/support/collective_failure.h"
#include "tests/support/run_case.h"
#include "tests/support/test_device.h"

namespace redspine::testing {
namespace {

constexpr std::int64_t kNumSteps = 6;

class SpotChecks : public ::testing::Test {
 protected:
  // With a check in each step.
  Config config(Family family, int num_tensor) {
    Config config = run_config(files_, family);
    config.parallel.tensor = num_tensor;
    config.run.spot_check_interval = 1;
    return config;
  }

  static Digest digest_of_run(const Config& config) {
    RunCase run(config);
    Digest digest;
    for (std::int64_t step = 0; step < kNumSteps; ++step) {
      digest = run.trainer.train_step().weights_digest;
    }
    return digest;
  }

  // Nothing is told, and the run is the same as without.
  static void expect_unnoticed(const Config& config) {
    Digest checked;
    EXPECT_EQ(failure_of([&] { checked = digest_of_run(config); }), "");
    Config unchecked = config;
    unchecked.run.spot_check_interval = 0;
    EXPECT_EQ(checked, digest_of_run(unchecked));
  }

  static std::int64_t block_at(const Config& config, std::int64_t step) {
    return SpotCheck::block_of(config.run.seed, config.model.num_layers, step);
  }

  RunFiles files_;
};

TEST_F(SpotChecks, FindNothingWhereNothingIsWrong) {
  for (const Family family : {Family::gpt2, Family::llama}) {
    for (int num_tensor = 1; 2 * num_tensor <= world().size(); num_tensor *= 2) {
      SCOPED_TRACE(num_tensor);
      expect_unnoticed(config(family, num_tensor));
      Config other = config(family, num_tensor);
      other.model.dropout = 0.1;
      other.batch.micro_batch_size = 1;
      other.parallel.recompute = Recompute::block;
      other.parallel.sequence = true;
      expect_unnoticed(other);
    }
  }
}

TEST_F(SpotChecks, FindNothingInTheTypesAndModesOfTheDevice) {
  Config config = SpotChecks::config(Family::llama, world().size() / 2);
  if (make_test_device()->kind() == DeviceKind::cuda) {
    config.run.precision = Precision::bf16;
  } else {
    config.run.exact = true;
    config.run.exact_leaves = 4;
    config.run.exact_lanes = 4;
    config.parallel.sequence = true;
  }
  expect_unnoticed(config);
}

TEST_F(SpotChecks, LookAtAnotherBlockEachTime) {
  std::vector<int> counts(10);
  for (std::int64_t step = 1; step <= 1000; ++step) {
    ++counts[static_cast<std::size_t>(SpotCheck::block_of(1234, 10, step))];
  }
  EXPECT_GT(*std::ranges::min_element(counts), 60);
  EXPECT_LT(*std::ranges::max_element(counts), 140);
}

// One group computed it, the next one did so again; of two, nobody knows which is right.
TEST_F(SpotChecks, TellWhoComputedABlockOtherwise) {
  const int num_tensor = world().size() / 2;
  const Config config = SpotChecks::config(Family::gpt2, num_tensor);
  const std::string host = ProcessGroup::host_name();
  const auto group = [&](int first) {
    return num_tensor == 1 ? fmt::format("rank {} @ {}", first, host)
                           : fmt::format("ranks {} @ {}, {} @ {}", first, host, first + 1, host);
  };
  const std::string all = num_tensor == 1
                              ? fmt::format("ranks 0 @ {0}, 1 @ {0}", host)
                              : fmt::format("ranks 0 @ {0}, 1 @ {0}, 2 @ {0}, 3 @ {0}", host);
  struct Case {
    const char* activation;
    const char* differs;
  };
  const std::int64_t block = block_at(config, 3);
  for (const Case& c :
       {Case{"normed1", "attention.query.weight"}, Case{"input", "the gradient of its input"},
        Case{"hidden", "mlp.down.weight"}}) {
    const int faulty = world().size() - 1;
    RunCase run(config);
    run.trainer.inject({.step = 3,
                        .rank = faulty,
                        .place = FaultPlace::activation,
                        .tensor = fmt::format("blocks.{}.{}", block, c.activation),
                        .element = 5,
                        .bit = 29});
    run.trainer.train_step();
    run.trainer.train_step();
    const std::string differs = std::string(c.differs).starts_with("the")
                                    ? c.differs
                                    : fmt::format("the gradient of blocks.{}.{}", block, c.differs);
    const std::string failure = failure_of([&] { run.trainer.train_step(); });
    EXPECT_EQ(
        failure.substr(0, failure.rfind(" (")),
        fmt::format("step 3: spot check: what {} computed in block {} is not what {} computed "
                    "from the same input: {} differs; to be suspected: {}",
                    group(faulty / num_tensor * num_tensor), block, group(0), differs, all));
  }
}

TEST_F(SpotChecks, WithOneDataRankAreRefused) {
  Config config = SpotChecks::config(Family::gpt2, world().size());
  ConfigProblems problems;
  config.validate(problems, world().size());
  EXPECT_THROW(problems.throw_if_any(), ConfigError);
}

}  // namespace
}  // namespace redspine::testing
