#include "data/files/megatron_writer.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <numeric>
#include <vector>

#include "data/files/token_file.h"
#include "tests/support/scratch.h"

namespace redspine {
namespace {

using Tokens = std::vector<std::int32_t>;

void write_documents(MegatronWriter& writer, const std::vector<Tokens>& documents) {
  for (const Tokens& document : documents) {
    writer.append(document);
    writer.end_document();
  }
}

void finish(MegatronWriter& writer) {
  writer.prepare();
  writer.retract();
  writer.publish();
}

TEST(MegatronWriter, WritesTheFormatByteForByte) {
  const Scratch scratch;
  MegatronWriter writer(scratch / "p", 65536);
  write_documents(writer, {{1, 2, 65535}, {4}});
  EXPECT_EQ(writer.num_documents(), 2);
  EXPECT_EQ(writer.num_tokens(), 4);
  finish(writer);
  EXPECT_EQ(read_file(scratch / "p.bin"), bytes_of<std::uint16_t>({1, 2, 65535, 4}));
  EXPECT_EQ(read_file(scratch / "p.idx"), (MegatronIndex{.lengths = {3, 1}}.bytes()));
}

TEST(MegatronWriter, TakesWiderIdsForALargerVocabulary) {
  const Scratch scratch;
  MegatronWriter writer(scratch / "p", 65537);
  write_documents(writer, {{1, 65536}, {7}});
  finish(writer);
  EXPECT_EQ(read_file(scratch / "p.bin"), bytes_of<std::int32_t>({1, 65536, 7}));
  EXPECT_EQ(read_file(scratch / "p.idx"),
            (MegatronIndex{.type_code = 4, .token_size = 4, .lengths = {2, 1}}.bytes()));
}

TEST(MegatronWriter, IsReadBackAsItWasWritten) {
  const Scratch scratch;
  MegatronWriter writer(scratch / "p", 50257);
  Tokens all;
  Tokens document(1000);  // enough of them to fill the buffers more than once
  for (std::int32_t d = 0; d < 2000; ++d) {
    std::iota(document.begin(), document.end(), d);
    writer.append(std::span(document).first(300));
    writer.append(std::span(document).subspan(300));
    writer.end_document();
    all.insert(all.end(), document.begin(), document.end());
  }
  finish(writer);
  const TokenFile file = TokenFile::open(scratch / "p", TokenFormat::automatic, "");
  EXPECT_EQ(file.num_documents(), 2000);
  ASSERT_EQ(file.num_tokens(), static_cast<std::int64_t>(all.size()));
  Tokens tokens(all.size());
  file.read(0, tokens, 50257);
  EXPECT_EQ(tokens, all);
}

TEST(MegatronWriter, LeavesNothingWhereItWasNotFinished) {
  const Scratch scratch;
  {
    MegatronWriter writer(scratch / "p", 257);
    write_documents(writer, {{1, 2}});
    EXPECT_FALSE(std::filesystem::exists(scratch / "p.bin"));
    EXPECT_FALSE(std::filesystem::exists(scratch / "p.idx"));
    EXPECT_TRUE(std::filesystem::exists(scratch / "p.bin.partial"));
  }
  EXPECT_TRUE(std::filesystem::is_empty(scratch / ""));
}

TEST(MegatronWriter, ReplacesAnOlderPairOnlyWhenFinished) {
  const Scratch scratch;
  {
    MegatronWriter writer(scratch / "p", 257);
    write_documents(writer, {{1, 2}});
    finish(writer);
  }
  const std::string old_tokens = read_file(scratch / "p.bin");
  const std::string old_index = read_file(scratch / "p.idx");
  {
    MegatronWriter writer(scratch / "p", 257);
    write_documents(writer, {{3}});
  }
  EXPECT_EQ(read_file(scratch / "p.bin"), old_tokens);
  EXPECT_EQ(read_file(scratch / "p.idx"), old_index);
  MegatronWriter writer(scratch / "p", 257);
  write_documents(writer, {{3}});
  finish(writer);
  EXPECT_EQ(read_file(scratch / "p.bin"), bytes_of<std::uint16_t>({3}));
  EXPECT_FALSE(std::filesystem::exists(scratch / "p.bin.partial"));
  EXPECT_FALSE(std::filesystem::exists(scratch / "p.idx.partial"));
}

TEST(MegatronWriter, LetsNobodyTakeNewTokensWithAnOldIndex) {
  const Scratch scratch;
  {
    MegatronWriter writer(scratch / "p", 257);
    write_documents(writer, {{1, 2}});
    finish(writer);
  }
  MegatronWriter writer(scratch / "p", 257);
  write_documents(writer, {{3}});
  writer.prepare();
  EXPECT_NO_THROW(TokenFile::open(scratch / "p", TokenFormat::megatron, ""));
  writer.retract();
  EXPECT_FALSE(std::filesystem::exists(scratch / "p.idx"));
}

TEST(MegatronWriter, NamesTheFileWhenTheMediumIsFull) {
  const Scratch scratch;
  std::filesystem::create_symlink("/dev/full", scratch / "p.bin.partial");
  MegatronWriter writer(scratch / "p", 257);
  write_documents(writer, {{1}});
  const std::string message = error_of([&] { writer.prepare(); });
  EXPECT_NE(message.find(scratch / "p.bin.partial" + ": writing failed: No space left on device"),
            std::string::npos)
      << message;
  EXPECT_FALSE(std::filesystem::exists(scratch / "p.idx"));
}

TEST(MegatronWriter, NamesAFolderThatIsMissing) {
  const Scratch scratch;
  const std::string message = error_of([&] { MegatronWriter(scratch / "none/p", 257); });
  EXPECT_NE(message.find("none/p.bin.partial: creating failed: No such file"), std::string::npos)
      << message;
}

}  // namespace
}  // namespace redspine
