#include "trainer/batch_feed.h"

#include <gtest/gtest.h>

#include "tests/support/random_tensor.h"

namespace redspine {
namespace {

using Ids = std::vector<std::int32_t>;

class Feed : public ::testing::Test {
 protected:
  Ids ids(ConstTensorView view) { return testing::from_device<std::int32_t>(*device, view); }

  std::unique_ptr<Device> device = make_cpu_device(1);
  BatchFeed feed{*device, {.num_sequences = 2, .sequence_length = 3}};
};

TEST_F(Feed, TargetsAreTheTokensThatFollow) {
  const Batch batch{.first_sample = 40,
                    .tokens = {1, 2, 3, 4, 11, 12, 13, 14, 21, 22, 23, 24, 31, 32, 33, 34},
                    .samples = {40, 41, 42, 43},
                    .hash = 0};
  const MicroBatch first = feed.training(batch, 0);
  EXPECT_EQ(first.tokens_BT.shape(), (Shape{2, 3}));
  EXPECT_EQ(ids(first.tokens_BT), (Ids{1, 2, 3, 11, 12, 13}));
  EXPECT_EQ(ids(first.targets_BT), (Ids{2, 3, 4, 12, 13, 14}));
  EXPECT_EQ(testing::from_device<std::int64_t>(*device, first.samples_B),
            (std::vector<std::int64_t>{40, 41}));
  const MicroBatch second = feed.training(batch, 1);
  EXPECT_EQ(ids(second.tokens_BT), (Ids{21, 22, 23, 31, 32, 33}));
  EXPECT_EQ(ids(second.targets_BT), (Ids{22, 23, 24, 32, 33, 34}));
  EXPECT_EQ(testing::from_device<std::int64_t>(*device, second.samples_B),
            (std::vector<std::int64_t>{42, 43}));
}

TEST_F(Feed, WindowsGoAsTheyAre) {
  const MicroBatch windows = feed.windows({1, 2, 3, 4, 5, 6}, {2, 3, -1, 5, -1, -1});
  EXPECT_EQ(ids(windows.tokens_BT), (Ids{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(ids(windows.targets_BT), (Ids{2, 3, -1, 5, -1, -1}));
}

}  // namespace
}  // namespace redspine
