// What every device does alike: memory and copies.
#include "tests/tensor/any_device.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "tensor/error.h"
#include "tensor/tensor.h"
#include "tests/support/random_tensor.h"

namespace redspine {
namespace {

using namespace redspine::testing;

TEST(AnyDevice, AllocatesZeroedAlignedMemoryOfAnySize) {
  const auto device = make_device_under_test();
  for (const std::int64_t count : {0, 1, 15, 16, 1000, 300'000, 1'500'001, 3'000'001}) {
    Tensor tensor(*device, DType::f32, {count});
    ASSERT_NE(tensor.view().raw(), nullptr);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(tensor.view().raw()) % 64, 0U);
    EXPECT_EQ(from_device(*device, tensor), std::vector<float>(static_cast<std::size_t>(count)));
  }
}

// Sizes around those of the pieces that copies are cut into.
TEST(AnyDevice, CopiesEveryElementThereAndBack) {
  const auto device = make_device_under_test();
  for (const std::int64_t count :
       {0, 1, 17, 262'143, 262'144, 262'145, 524'287, 524'288, 524'289, 1'600'003}) {
    std::vector<float> in(static_cast<std::size_t>(count));
    std::iota(in.begin(), in.end(), 1.0F);
    Tensor first = to_device(*device, in, {count});
    Tensor second(*device, DType::f32, {count});
    device->copy(second, first);
    device->zero(first);
    EXPECT_EQ(from_device(*device, second), in) << count;
    EXPECT_EQ(from_device(*device, first), std::vector<float>(in.size())) << count;
  }
}

TEST(AnyDevice, RejectsACopyBetweenDifferentCountsOrTypes) {
  const auto device = make_device_under_test();
  Tensor floats(*device, DType::f32, {4});
  Tensor integers(*device, DType::i32, {4});
  Tensor five(*device, DType::f32, {5});
  EXPECT_THROW(device->copy(floats, integers), Error);
  EXPECT_THROW(device->copy(floats, five), Error);
}

TEST(AnyDevice, NamesTheBytesThatItCannotAllocateAndGoesOn) {
  const auto device = make_device_under_test();
  try {
    device->allocate(std::size_t{1} << 60);
    FAIL() << "an exbibyte was granted";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("1152921504606846976"), std::string::npos)
        << error.what();
  }
  Tensor tensor = to_device(*device, std::vector<float>(3, 1.0F), {3});
  EXPECT_EQ(from_device(*device, tensor), std::vector<float>(3, 1.0F));
}

}  // namespace
}  // namespace redspine
