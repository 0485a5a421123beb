#include "trainer/fault_injection.h"

#include <gtest/gtest.h>

#include <bit>

#include "tests/support/random_tensor.h"
#include "tests/support/scratch.h"

namespace redspine {
namespace {

TEST(BitFlip, IsReadAsItIsMeant) {
  const BitFlip flip = BitFlip::parse("3:1:exp_avg_sq:blocks.0.mlp.up.weight:17:31", "KEY");
  EXPECT_EQ(flip.step, 3);
  EXPECT_EQ(flip.rank, 1);
  EXPECT_EQ(flip.place, FaultPlace::exp_avg_sq);
  EXPECT_EQ(flip.tensor, "blocks.0.mlp.up.weight");
  EXPECT_EQ(flip.element, 17);
  EXPECT_EQ(flip.bit, 31);
}

TEST(BitFlip, AnyOtherTextIsAnError) {
  for (const char* text :
       {"", "3:1:weight:a:0", "3:1:weight:a:0:1:2", "x:1:weight:a:0:1", "3:-1:weight:a:0:1",
        "3:1:bias:a:0:1", "3:1:weight:a::1", "3:1:weight:a:0:32", "3:1:weight:a:0:1 "}) {
    EXPECT_NE(config_error_of([&] { BitFlip::parse(text, "KEY"); }).find("KEY: is "),
              std::string::npos)
        << text;
  }
}

TEST(FlipBit, FlipsOneBitOfOneElementOfTheNamedParameter) {
  const auto device = make_cpu_device(1);
  ParameterStore store;
  store.begin_bucket();
  store.declare({replicated_parameter("a", {3}, 0)});
  store.declare({replicated_parameter("b", {2, 4}, 0)});
  store.allocate(*device);
  BitFlip flip{
      .step = 1, .rank = 0, .place = FaultPlace::weight, .tensor = "b", .element = 5, .bit = 30};
  flip_bit(flip, store, store.values(), *device);
  std::vector<float> expected(8);
  expected[5] = std::bit_cast<float>(std::uint32_t{1} << 30);
  EXPECT_EQ(testing::from_device(*device, store.parameters()[1].value.reshape({8})), expected);
  EXPECT_EQ(testing::from_device(*device, store.parameters()[0].value), std::vector<float>(3));
  flip.element = 8;
  EXPECT_NE(error_of([&] {
              flip_bit(flip, store, store.values(), *device);
            }).find("this rank has no element 8 of b"),
            std::string::npos);
  flip.tensor = "c";
  EXPECT_NE(error_of([&] { flip_bit(flip, store, store.values(), *device); }).find("no element"),
            std::string::npos);
}

}  // namespace
}  // namespace redspine
