#include <gtest/gtest.h>

#include <vector>

#include "data/files/token_file.h"
#include "tests/support/scratch.h"

namespace redspine {
namespace {

using Names = std::vector<std::string>;

TEST(FindTokenFiles, GivesAPlainNameAsItIs) {
  const Scratch scratch;
  const std::string path = scratch.write("a[1].bin", "x");
  EXPECT_EQ(find_token_files(path, TokenFormat::automatic, ""), Names{path});
  EXPECT_EQ(find_token_files(path, TokenFormat::raw_u16, ""), Names{path});
}

TEST(FindTokenFiles, OrdersAGlobByName) {
  const Scratch scratch;
  for (const char* name : {"b_10", "b_2", "B_3", "a_9", "b_1"}) scratch.write(name, "x");
  EXPECT_EQ(find_token_files(scratch / "?_*", TokenFormat::raw_u16, ""),
            (Names{scratch / "B_3", scratch / "a_9", scratch / "b_1", scratch / "b_10",
                   scratch / "b_2"}));
}

TEST(FindTokenFiles, NamesPairsByTheirPrefix) {
  const Scratch scratch;
  for (const char* name : {"t1.bin", "t1.idx", "t0.bin", "t0.idx", "u.bin"}) {
    scratch.write(name, "x");
  }
  const Names prefixes = {scratch / "t0", scratch / "t1"};
  EXPECT_EQ(find_token_files(scratch / "t*", TokenFormat::megatron, ""), prefixes);
  EXPECT_EQ(find_token_files(scratch / "t*", TokenFormat::automatic, ""), prefixes);
  EXPECT_EQ(find_token_files(scratch / "t1", TokenFormat::automatic, ""), Names{scratch / "t1"});
}

TEST(FindTokenFiles, MixesPairsAndFilesWhenItFindsTheFormatByItself) {
  const Scratch scratch;
  for (const char* name : {"a.bin", "b.bin", "b.idx", "c.bin"}) scratch.write(name, "x");
  EXPECT_EQ(find_token_files(scratch / "*", TokenFormat::automatic, ""),
            (Names{scratch / "a.bin", scratch / "b", scratch / "c.bin"}));
}

TEST(FindTokenFiles, SaysWhatItLookedFor) {
  const Scratch scratch;
  const std::string path = scratch / "none*";
  const auto message = [&](TokenFormat format) {
    return config_error_of([&] { find_token_files(path, format, "data.validation[1].path"); });
  };
  const std::string begin = "data.validation[1].path: " + path +
                            ": does not exist and as a glob matches nothing; looked for ";
  const std::string pair = "the pair " + path + ".bin and " + path + ".idx";
  EXPECT_EQ(message(TokenFormat::raw_u32), begin + "a file of that name");
  EXPECT_EQ(message(TokenFormat::megatron), begin + pair);
  EXPECT_EQ(message(TokenFormat::automatic), begin + "a file of that name and " + pair);
}

}  // namespace
}  // namespace redspine
