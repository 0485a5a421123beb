#include "launch/config/machine_file.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tensor/error.h"

namespace redspine::testing {
namespace {

constexpr const char* kMachine = R"(name: test
device: cpu
ranks_per_node: 2
memory_gib: 4.0
memory_gigabytes_per_second: 10.0
fp32_tflops: 0.1
inside: {gigabytes_per_second: 2.0}
between: {gigabytes_per_second: 1.0, latency_seconds: 1.0e-5}
rates:
  - {operation: product, precision: fp32, rows: 8, inner: 8, cols: 8, gigaflops: 50.0}
  - {operation: AdamW, precision: fp32, bytes: 1000.0, gigabytes_per_second: 5.0}
all_reduces:
  - {ranks: 2, bytes: 1000, seconds: 1.0e-5}
)";

std::string problems_of(const std::string& text) {
  try {
    parse_machine(text, "m.yaml");
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

std::string with(const std::string& part, const std::string& other) {
  std::string text = kMachine;
  text.replace(text.find(part), part.size(), other);
  return text;
}

TEST(MachineFile, IsReadWithItsListsAndSections) {
  const Machine machine = parse_machine(kMachine, "m.yaml");
  EXPECT_EQ(machine.name, "test");
  EXPECT_EQ(machine.between.latency_seconds, 1e-5);
  ASSERT_EQ(machine.rates.size(), 2U);
  EXPECT_EQ(machine.rates[0].gigaflops, 50.0);
  EXPECT_EQ(machine.rates[1].operation, "AdamW");
  ASSERT_EQ(machine.all_reduces.size(), 1U);
  EXPECT_EQ(machine.all_reduces[0].bytes, 1000);
}

TEST(MachineFile, WrittenReadsBackToTheSame) {
  const std::string written = to_yaml(parse_machine(kMachine, "m.yaml"), "two\nlines");
  EXPECT_EQ(written.substr(0, 14), "# two\n# lines\n");
  EXPECT_EQ(to_yaml(parse_machine(written, "again.yaml"), "two\nlines"), written);
}

TEST(MachineFile, NamesFileLineAndKeyOfWhatIsWrongAndWhatIsLegal) {
  EXPECT_EQ(problems_of(with("device: cpu", "device: tpu")),
            "m.yaml:2:9: device: read the text \"tpu\"; legal: auto, cpu, cuda");
  EXPECT_EQ(problems_of(with("device: cpu", "device: auto")),
            "m.yaml:2:9: device: is auto; legal for a machine: cpu, cuda");
  EXPECT_EQ(
      problems_of(with("memory_gib: 4.0\n", "")),
      "m.yaml: memory_gib: missing; legal: a finite number, like 0.1 or 1e-4, without quotes");
  EXPECT_EQ(problems_of(with("memory_gib:", "memory_gigs:")).substr(0, 73),
            "m.yaml:4:1: memory_gigs: unknown key; nearest: memory_gib; legal here: na");
  EXPECT_EQ(problems_of(with("bytes: 1000.0, ", "")),
            "m.yaml:11:5: rates[1].bytes: is 0; legal: a finite number above 0");
  EXPECT_EQ(problems_of(with("operation: AdamW, ", "")),
            "m.yaml:11:5: rates[1].operation: missing; legal: text in UTF-8");
  EXPECT_EQ(problems_of(with("gigaflops: 50.0", "gigabytes_per_second: 50.0")),
            "m.yaml:10:5: rates[0].gigaflops: is 0; legal: a finite number above 0\n"
            "m.yaml:10:93: rates[0].gigabytes_per_second: is given, but product is measured in "
            "gigaflops");
  EXPECT_EQ(problems_of(with("ranks: 2, ", "ranks: 1, ")),
            "m.yaml:13:13: all_reduces[0].ranks: is 1; legal: 2 to 4096");
  EXPECT_EQ(problems_of(with("AdamW", "Adam")).substr(0, 75),
            "m.yaml:11:17: rates[1].operation: is \"Adam\"; legal: Matmul, AddBias, Accumu");
  EXPECT_EQ(problems_of(with("ranks_per_node: 2", "ranks_per_node: 2\noverlap: 1.5")),
            "m.yaml:4:10: overlap: is 1.5; legal: 0 to 1");
  EXPECT_EQ(problems_of("rates: 3\n").substr(0, 40), "m.yaml:1:8: rates: read the number 3; le");
}

TEST(MachineFile, AllThatAreCommittedAreLegal) {
  int num_files = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::string(REDSPINE_CONFIGS) + "/machines")) {
    const Machine machine = load_machine(entry.path());
    EXPECT_FALSE(machine.name.empty()) << entry.path();
    ++num_files;
  }
  EXPECT_GE(num_files, 3);
}

TEST(MachineFile, ThatCannotBeReadIsNamed) {
  try {
    load_machine("/nowhere/m.yaml");
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(),
                 "/nowhere/m.yaml: cannot read the description of the machine: No "
                 "such file or directory");
  }
}

}  // namespace
}  // namespace redspine::testing
