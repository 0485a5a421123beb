#include "data/io/inputs.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "tests/support/scratch.h"

namespace redspine {
namespace {

using Paths = std::vector<std::string>;

Paths files_of(const Paths& inputs, const OwnFiles& own = {}) {
  return find_inputs(inputs, own).files;
}

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
  EXPECT_EQ(files_of({scratch_ / "b", "-", scratch_ / "a.txt", scratch_ / "b"}),
            (Paths{scratch_ / "b", "-", scratch_ / "a.txt", scratch_ / "b"}));
}

TEST_F(Inputs, AFolderStandsForItsFilesInByteOrderWithoutHiddenOnes) {
  EXPECT_EQ(files_of({scratch_ / "d"}),
            (Paths{scratch_ / "d/B", scratch_ / "d/inner/x", scratch_ / "d/z"}));
}

TEST_F(Inputs, AGlobStandsForWhatItMatches) {
  EXPECT_EQ(files_of({scratch_ / "a.*"}), (Paths{scratch_ / "a.jsonl", scratch_ / "a.txt"}));
  EXPECT_EQ(files_of({scratch_ / "d*"}), files_of({scratch_ / "d"}));
  scratch_.write("a.*", "a file of that very name wins");
  EXPECT_EQ(files_of({scratch_ / "a.*"}), Paths{scratch_ / "a.*"});
}

TEST_F(Inputs, ThatMeanNothingAreNamedAllAtOnce) {
  std::filesystem::create_directory(scratch_ / "empty");
  EXPECT_EQ(config_error_of([&] {
              files_of({scratch_ / "none", scratch_ / "b", scratch_ / "empty", "-", "-"});
            }),
            scratch_ / "none" + ": does not exist and as a glob matches nothing\n" +
                scratch_ / "empty" + ": is a folder without files\n" +
                "-: is given more than once, but the standard input can be read only once");
}

TEST_F(Inputs, FollowLinksToFilesAndFolders) {
  std::filesystem::create_directory(scratch_ / "linked");
  std::filesystem::create_directory_symlink(scratch_ / "d", scratch_ / "linked/folder");
  std::filesystem::create_symlink("../b", scratch_ / "linked/file");
  EXPECT_EQ(files_of({scratch_ / "linked"}),
            (Paths{scratch_ / "linked/file", scratch_ / "linked/folder/B",
                   scratch_ / "linked/folder/inner/x", scratch_ / "linked/folder/z"}));
}

TEST_F(Inputs, NameWhatAFolderHasThatCannotBeRead) {
  std::filesystem::create_symlink("nowhere", scratch_ / "d/a");
  std::filesystem::create_directory_symlink("..", scratch_ / "d/inner/up");
  ASSERT_EQ(::mkfifo((scratch_ / "d/pipe").c_str(), 0600), 0);
  const std::string message = config_error_of([&] { files_of({scratch_ / "d"}); });
  for (const char* part :
       {"d/a: is a link that leads nowhere: No such file or directory",
        "d/inner/up: is a link to a folder that it lies in: it leads in a circle",
        "d/pipe: is a pipe, a socket or a device; legal: files and folders"}) {
    EXPECT_NE(message.find(part), std::string::npos) << message;
  }
}

TEST_F(Inputs, LeaveOutTheFilesOfTheCommandItself) {
  for (const char* name : {"d/t.bin", "d/t.bin.partial", "d/t.idx", "d/s_000000.bin",
                           "d/s_1234567.bin.partial", "d/s_x.bin", "d/tokenizer.json"}) {
    scratch_.write(name, "123");
  }
  std::filesystem::create_directory_symlink("d", scratch_ / "other");
  OwnFiles own;
  own.add(scratch_ / "other/inner/../t.bin");
  own.add(scratch_ / "d/t.idx");
  own.add(scratch_ / "d/tokenizer.json");
  own.add_shards(scratch_ / "other/s");
  const FoundInputs found = find_inputs({scratch_ / "d"}, own);
  EXPECT_EQ(found.files, (Paths{scratch_ / "d/B", scratch_ / "d/inner/x", scratch_ / "d/s_x.bin",
                                scratch_ / "d/z"}));
  EXPECT_EQ(found.left_out,
            (Paths{scratch_ / "d/s_000000.bin", scratch_ / "d/s_1234567.bin.partial",
                   scratch_ / "d/t.bin", scratch_ / "d/t.bin.partial", scratch_ / "d/t.idx",
                   scratch_ / "d/tokenizer.json"}));
  EXPECT_EQ(files_of({scratch_ / "d/t*", scratch_ / "b"}, own), Paths{scratch_ / "b"});
  EXPECT_EQ(config_error_of([&] { files_of({scratch_ / "other/t.bin"}, own); }),
            scratch_ / "other/t.bin" +
                ": is an input, and written or used as the tokenizer by the same command; legal: "
                "its folder or a quoted glob, which leave it out");
  EXPECT_EQ(
      config_error_of([&] { files_of({scratch_ / "d/t*"}, own); }),
      scratch_ / "d/t.bin" + ": no input has files but those of this command, such as this one");
}

TEST_F(Inputs, HaveATotalSizeUnlessOneCanOnlyBeReadToKnow) {
  EXPECT_EQ(total_size(files_of({scratch_ / "d", scratch_ / "b"})), 12);
  EXPECT_EQ(total_size({scratch_ / "b", "-"}), -1);
}

}  // namespace
}  // namespace redspine
