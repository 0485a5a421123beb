#include "data/inputs.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/data/scratch.h"

namespace redspine {
namespace {

using Paths = std::vector<std::string>;

class Inputs : public testing::Test {
 protected:
  Inputs() {
    std::filesystem::create_directories(scratch_ / "d/inner");
    std::filesystem::create_directories(scratch_ / "d/.git");
    for (const char* name :
         {"b", "a.txt", "a.jsonl", "d/z", "d/B", "d/inner/x", "d/.git/config", "d/.hidden"}) {
      scratch_.write(name, "123");
    }
  }
  Scratch scratch_;
};

TEST_F(Inputs, KeepTheirOrderAndNamesOfFilesArePlain) {
  EXPECT_EQ(find_inputs({scratch_ / "b", "-", scratch_ / "a.txt", scratch_ / "b"}),
            (Paths{scratch_ / "b", "-", scratch_ / "a.txt", scratch_ / "b"}));
}

TEST_F(Inputs, AFolderStandsForItsFilesInByteOrderWithoutHiddenOnes) {
  EXPECT_EQ(find_inputs({scratch_ / "d"}),
            (Paths{scratch_ / "d/B", scratch_ / "d/inner/x", scratch_ / "d/z"}));
}

TEST_F(Inputs, AGlobStandsForWhatItMatches) {
  EXPECT_EQ(find_inputs({scratch_ / "a.*"}), (Paths{scratch_ / "a.jsonl", scratch_ / "a.txt"}));
  EXPECT_EQ(find_inputs({scratch_ / "d*"}), find_inputs({scratch_ / "d"}));
  scratch_.write("a.*", "a file of that very name wins");
  EXPECT_EQ(find_inputs({scratch_ / "a.*"}), Paths{scratch_ / "a.*"});
}

TEST_F(Inputs, ThatMeanNothingAreNamedAllAtOnce) {
  std::filesystem::create_directory(scratch_ / "empty");
  EXPECT_EQ(config_error_of([&] {
              find_inputs({scratch_ / "none", scratch_ / "b", scratch_ / "empty", "-", "-"});
            }),
            scratch_ / "none" + ": does not exist and as a glob matches nothing\n" +
                scratch_ / "empty" + ": is a folder without files\n" +
                "-: is given more than once, but the standard input can be read only once");
}

TEST_F(Inputs, HaveATotalSizeUnlessOneCanOnlyBeReadToKnow) {
  EXPECT_EQ(total_size(find_inputs({scratch_ / "d", scratch_ / "b"})), 12);
  EXPECT_EQ(total_size({scratch_ / "b", "-"}), -1);
}

}  // namespace
}  // namespace redspine
