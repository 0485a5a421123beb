#include "parallel/group/process_group.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "tests/support/mpi_main.h"

namespace redspine::testing {
namespace {

TEST(ProcessGroup, AddsUpAndTakesTheLargestOfEveryElement) {
  const int rank = world().rank();
  const int size = world().size();
  std::array<double, 2> values{rank + 1.0, -rank - 1.0};
  world().all_reduce(values, ReduceOp::sum);
  EXPECT_EQ(values[0], size * (size + 1) / 2.0);
  EXPECT_EQ(values[1], -size * (size + 1) / 2.0);
  values = {rank + 1.0, -rank - 1.0};
  world().all_reduce(values, ReduceOp::max);
  EXPECT_EQ(values[0], size);
  EXPECT_EQ(values[1], -1.0);
}

TEST(ProcessGroup, GivesEveryRankTheBitsOfTheSameSum) {
  // Rounded differently in every order of addition.
  const double sum = world().all_reduce(std::pow(1.1, 7 * world().rank() + 1), ReduceOp::sum);
  const std::string bits(reinterpret_cast<const char*>(&sum), sizeof(sum));
  for (const std::string& other : world().all_gather(bits)) EXPECT_EQ(other == bits, true);
}

TEST(ProcessGroup, ANotANumberOfOneRankReachesAll) {
  const bool is_last = world().rank() == world().size() - 1;
  const double mine = is_last ? std::numeric_limits<double>::quiet_NaN() : 1.0;
  EXPECT_TRUE(std::isnan(world().all_reduce(mine, ReduceOp::sum)));
}

TEST(ProcessGroup, SumsOfHashesWrapAround) {
  const std::uint64_t mine =
      std::numeric_limits<std::uint64_t>::max() - static_cast<std::uint64_t>(world().rank());
  std::uint64_t expected = 0;
  for (int rank = 0; rank < world().size(); ++rank) {
    expected += std::numeric_limits<std::uint64_t>::max() - static_cast<std::uint64_t>(rank);
  }
  EXPECT_EQ(world().sum(mine), expected);
  std::array<std::uint64_t, 2> several{mine, 1};
  world().sum(several);
  EXPECT_EQ(several[0], expected);
  EXPECT_EQ(several[1], static_cast<std::uint64_t>(world().size()));
}

TEST(ProcessGroup, GathersTextsOfAnyLengthByRank) {
  // Rank 0 gives nothing; zero bytes are bytes like others.
  const auto text_of = [](int rank) {
    return std::string(static_cast<std::size_t>(rank * 1000), static_cast<char>(rank - 1));
  };
  const std::vector<std::string> all = world().all_gather(text_of(world().rank()));
  EXPECT_EQ(all.size(), static_cast<std::size_t>(world().size()));
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    EXPECT_EQ(all[rank] == text_of(static_cast<int>(rank)), true) << "text of rank " << rank;
  }
  for (const std::string& text : world().all_gather("")) EXPECT_EQ(text, "");
}

// Two messages from each rank to each other one, of lengths that tell them all apart; the first of
// all is empty.
TEST(ProcessGroup, ExchangesMessagesAmongAllRanksAtOnce) {
  const int size = world().size();
  const int self = world().rank();
  const auto text_of = [](int from, int to, int number) {
    return std::string(static_cast<std::size_t>(20'000 * from + 3'000 * (to - 1) + 5 * number),
                       static_cast<char>('a' + from));
  };
  std::vector<std::string> sent;
  std::vector<std::string> received;
  std::vector<std::string> expected;
  for (int other = 0; other < size; ++other) {
    for (int number = 0; number < 2 && other != self; ++number) {
      sent.push_back(text_of(self, other, number));
      expected.push_back(text_of(other, self, number));
      received.emplace_back(expected.back().size(), '?');
    }
  }
  std::vector<ProcessGroup::Outgoing> outgoing;
  std::vector<ProcessGroup::Incoming> incoming;
  std::size_t message = 0;
  for (int other = 0; other < size; ++other) {
    for (int number = 0; number < 2 && other != self; ++number, ++message) {
      outgoing.push_back({std::as_bytes(std::span(sent[message])), other});
      incoming.push_back({std::as_writable_bytes(std::span(received[message])), other});
    }
  }
  world().exchange(outgoing, incoming);
  EXPECT_EQ(received == expected, true);
}

TEST(ProcessGroup, SplitsIntoTheRanksOfAColourInTheirOrder) {
  const int color = world().rank() % 2;
  const ProcessGroup part = world().split(color);
  EXPECT_EQ(part.rank(), world().rank() / 2);
  EXPECT_EQ(part.size(), (world().size() + 1 - color) / 2);
  const std::vector<std::string> members = part.all_gather(std::to_string(world().rank()));
  for (std::size_t i = 0; i < members.size(); ++i) {
    EXPECT_EQ(members[i], std::to_string(2 * static_cast<int>(i) + color));
  }
}

TEST(ProcessGroup, GroupsOfASplitDoNotHearOneAnother) {
  const ProcessGroup alone = world().split(world().rank());
  EXPECT_EQ(alone.size(), 1);
  EXPECT_EQ(alone.all_reduce(world().rank() + 0.5, ReduceOp::sum), world().rank() + 0.5);
}

}  // namespace
}  // namespace redspine::testing
