#include "data/io/partial_file.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <span>

#include "data/files/llmc_writer.h"
#include "data/files/megatron_writer.h"
#include "tests/support/scratch.h"

namespace redspine {
namespace {

void write(PartialFile& file, std::string_view text) {
  file.file().write(std::as_bytes(std::span(text)));
}

TEST(PartialFile, HasItsNameOnlyOnceItIsPublished) {
  const Scratch scratch;
  const std::string path = scratch.write("a", "old");
  PartialFile file(path, "");
  write(file, "new");
  EXPECT_EQ(read_file(path), "old");
  file.publish();
  EXPECT_EQ(read_file(path), "new");
  EXPECT_FALSE(std::filesystem::exists(partial(path)));
}

TEST(PartialFile, RejectsANameThatIsWrittenAtTheSameTime) {
  const Scratch scratch;
  const std::string path = scratch / "a";
  std::optional<PartialFile> file(std::in_place, path, "--output");
  write(*file, "first");
  const std::string refusal = "--output: " + path +
                              ": another process is writing it; legal: a name that no other job "
                              "writes to at the same time";
  EXPECT_EQ(config_error_of([&] { PartialFile(path, "--output"); }), refusal);
  // Nothing was taken from the one that was there before; and another process is told the same.
  const pid_t child = ::fork();
  if (child == 0) {
    ::_exit(config_error_of([&] { PartialFile(path, "--output"); }) == refusal ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  file->publish();
  EXPECT_EQ(read_file(path), "first");
  // The name is free once it is published, and what has it stays as it is.
  PartialFile second(path, "--output");
  EXPECT_EQ(read_file(path), "first");
}

TEST(PartialFile, WritesOverWhatAKilledWriterLeft) {
  const Scratch scratch;
  scratch.write("a.partial", "left by one that was killed");
  PartialFile file(scratch / "a", "");
  write(file, "new");
  file.publish();
  EXPECT_EQ(read_file(scratch / "a"), "new");
}

TEST(PartialFile, LeavesNothingWhereItWasNotPublished) {
  const Scratch scratch;
  { PartialFile file(scratch / "a", ""); }
  EXPECT_TRUE(std::filesystem::is_empty(scratch / ""));
}

template <typename Make>
void expect_one_writer_at_a_time(const Scratch& scratch, const Make& make) {
  const std::string busy = ": another process is writing it;";
  const std::vector<std::int32_t> tokens = {1, 2, 3, 4, 5, 6, 7};
  std::unique_ptr<TokenWriter> writer = make();
  writer->append(tokens);
  EXPECT_NE(config_error_of([&] { make(); }).find(busy), std::string::npos);
  writer->end_document();
  writer->prepare();
  writer->retract();
  EXPECT_NE(config_error_of([&] { make(); }).find(busy), std::string::npos);
  writer->publish();
  make();  // and leaves what was published
  for (const auto& entry : std::filesystem::directory_iterator(scratch / "")) {
    EXPECT_FALSE(entry.path().string().ends_with(".partial")) << entry.path();
  }
}

TEST(PartialFile, KeepsWritersOfTokenFilesApart) {
  const Scratch megatron;
  expect_one_writer_at_a_time(
      megatron, [&] { return std::make_unique<MegatronWriter>(megatron / "p", 257); });
  EXPECT_EQ(std::filesystem::file_size(megatron / "p.bin"), 14u);
  const Scratch llmc;
  expect_one_writer_at_a_time(llmc, [&] {
    return std::make_unique<LlmcWriter>(LlmcWriter::Options{llmc / "p", 257, 2});
  });
  EXPECT_EQ(std::filesystem::file_size(llmc / "p_000003.bin"), 1026u);
}

}  // namespace
}  // namespace redspine
