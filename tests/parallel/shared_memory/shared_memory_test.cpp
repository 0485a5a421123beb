#include "parallel/shared_memory/shared_memory.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "tests/support/mpi_main.h"

namespace redspine::testing {
namespace {

TEST(SharedMemory, ShowsEveryRankWhatTheOthersWrote) {
  constexpr std::size_t kBytesARank = 10'000;
  const auto size = kBytesARank * static_cast<std::size_t>(world().size());
  const auto memory = SharedMemory::make(world(), size);
  ASSERT_NE(memory, nullptr);
  const std::span<std::byte> bytes = memory->bytes();
  ASSERT_EQ(bytes.size(), size);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(bytes.data()) % 4096, 0U);
  EXPECT_TRUE(std::ranges::all_of(bytes, [](std::byte b) { return b == std::byte{0}; }));
  world().barrier();
  const auto of_rank = [&](int rank) {
    return bytes.subspan(kBytesARank * static_cast<std::size_t>(rank), kBytesARank);
  };
  std::ranges::fill(of_rank(world().rank()), static_cast<std::byte>(world().rank() + 1));
  world().barrier();
  for (int rank = 0; rank < world().size(); ++rank) {
    EXPECT_TRUE(std::ranges::all_of(of_rank(rank), [&](std::byte b) {
      return b == static_cast<std::byte>(rank + 1);
    })) << rank;
  }
  world().barrier();
}

TEST(SharedMemory, IsApartForEachOneThatIsMade) {
  const auto first = SharedMemory::make(world(), 1);
  const auto second = SharedMemory::make(world(), 1);
  ASSERT_NE(first, nullptr);
  ASSERT_NE(second, nullptr);
  if (world().rank() == 0) first->bytes()[0] = std::byte{7};
  world().barrier();
  EXPECT_EQ(first->bytes()[0], std::byte{7});
  EXPECT_EQ(second->bytes()[0], std::byte{0});
  world().barrier();
}

TEST(SharedMemory, HasNoNameOnceItIsMade) {
  const auto memory = SharedMemory::make(world(), 1);
  const std::string own = "redspine-" + std::to_string(getpid()) + "-";
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm")) {
    EXPECT_FALSE(entry.path().filename().string().starts_with(own)) << entry.path();
  }
}

TEST(SharedMemory, IsNullOnEveryRankWhereThereIsNotEnough) {
  EXPECT_EQ(SharedMemory::make(world(), std::size_t{1} << 50), nullptr);
  EXPECT_NE(SharedMemory::make(world(), 1), nullptr);
}

}  // namespace
}  // namespace redspine::testing
