// `redspine tokenize` and `redspine trace` as a user meets them: words in, text and an exit code
// out.

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <filesystem>

#include "tests/support/command_line.h"

namespace redspine::testing {
namespace {

class DataCommands : public ::testing::Test {
 protected:
  DataCommands() {
    std::string text;
    for (int i = 0; i < 400; ++i) {
      text += fmt::format("This is document {}, which is of no use.\n\n", i);
    }
    write("text", text);
  }
  std::string path(const std::string& name) const { return scratch_ / name; }
  void write(const std::string& name, const std::string& text) const { scratch_.write(name, text); }
  std::string read(const std::string& name) const { return read_file(path(name)); }

  /// Tokens of bytes, blended from two files, and a run of three steps on them.
  std::string write_run() const {
    const std::string tokenize = "tokenize " + path("text") + " --document-separator '' --output ";
    EXPECT_EQ(redspine(tokenize + path("a")).exit_code, 0);
    EXPECT_EQ(redspine(tokenize + path("b") + " --output-format llmc").exit_code, 0);
    write("run.yaml", fmt::format(R"(
run: {{name: r, output_dir: {0}}}
model: {{num_layers: 1, hidden_size: 16, num_heads: 2, vocab_size: 257, max_sequence_length: 64}}
data: {{train: [{{path: {0}/a, weight: 0.7}}, {{path: {0}/b_000000.bin, weight: 0.3}}]}}
batch: {{global_batch_size: 4, micro_batch_size: 2}}
schedule: {{warmup_steps: 0}}
train: {{steps: 3}}
)",
                                  scratch_.folder()));
    return path("run.yaml");
  }

 private:
  Scratch scratch_;
};

TEST_F(DataCommands, TraceShowsTheBatchThatTrainingRead) {
  const std::string config = write_run();
  ASSERT_EQ(redspine("train --config " + config).exit_code, 0);
  const std::string metrics = read("r/metrics.jsonl");
  for (int step = 1; step <= 3; ++step) {
    // The layout is not asked for: tensor: 2 needs two ranks to train.
    const Result trace =
        redspine(fmt::format("trace --config {} --step {} --set parallel.tensor=2", config, step));
    ASSERT_EQ(trace.exit_code, 0) << trace.output;
    const std::size_t at = trace.output.find("batch_hash ");
    ASSERT_NE(at, std::string::npos) << trace.output;
    const std::string hash = trace.output.substr(at + 11, 16);
    EXPECT_NE(metrics.find(fmt::format("\"step\":{},", step)), std::string::npos);
    EXPECT_NE(metrics.find("\"batch_hash\":\"" + hash + "\""), std::string::npos)
        << hash << " in " << metrics;
    EXPECT_NE(trace.output.find(fmt::format("step {}: samples {} to {}, of 65 tokens each", step,
                                            4 * step - 4, 4 * step - 1)),
              std::string::npos)
        << trace.output;
  }
}

TEST_F(DataCommands, TraceNamesDocumentsAndShowsTheirText) {
  const std::string config = write_run();
  const Result trace = redspine("trace --config " + config + " --step 2");
  // Documents have 43 bytes or fewer, so a sample ends one, and shows another's number.
  EXPECT_NE(trace.output.find("/a.bin, tokens "), std::string::npos) << trace.output;
  EXPECT_NE(trace.output.find("  document "), std::string::npos);
  EXPECT_NE(trace.output.find(", its tokens 0 to "), std::string::npos);
  EXPECT_NE(trace.output.find(", which is of no use.\\n<|endoftext|>\""), std::string::npos);
  EXPECT_NE(trace.output.find("/b_000000.bin, tokens "), std::string::npos);
  const Result far = redspine("trace --config " + config +
                              " --step 2000000000 --set train.steps=2147483647 --preview 5");
  EXPECT_EQ(far.exit_code, 0) << far.output;
  EXPECT_NE(far.output.find(" ...\n"), std::string::npos);
}

TEST_F(DataCommands, TraceTellsProblems) {
  const std::string config = write_run();
  const auto expect_problem = [](const std::string& words, const std::string& text) {
    const Result result = redspine(words);
    EXPECT_EQ(result.exit_code, 2) << words;
    EXPECT_NE(result.output.find(text), std::string::npos) << result.output;
  };
  expect_problem("trace --step 1", "--config FILE is missing");
  expect_problem("trace --config " + config, "--step is missing");
  expect_problem("trace --config " + config + " --step 0", "--step: is 0; legal: 1 to");
  expect_problem("trace --config " + config + " --step 4", "train.steps, 3");
  expect_problem("trace --config " + config + " --step 1 --set data.tokenizer=/none.json",
                 "data.tokenizer: /none.json");
}

TEST_F(DataCommands, TrainsATokenizerAndTokenizesWithIt) {
  const Result made = redspine(fmt::format(
      "tokenize {} --document-separator '' --train-bpe --vocab-size 300 --save-tokenizer {} "
      "--output {}",
      path("text"), path("new/tokenizer.json"), path("t")));
  ASSERT_EQ(made.exit_code, 0) << made.output;
  EXPECT_NE(made.output.find("400 documents, "), std::string::npos) << made.output;
  EXPECT_NE(made.output.find(" tokens/byte, 0 lines skipped, "), std::string::npos);
  EXPECT_EQ(made.output.find('\r'), std::string::npos);
  const std::string tokenizer = " --tokenizer " + path("new/tokenizer.json");
  const Result shown = redspine("tokenize --inspect " + path("t") + tokenizer);
  EXPECT_EQ(shown.exit_code, 0);
  EXPECT_NE(shown.output.find("as text: \"This is document 0, which is of no use.\\n<|endoftext|>"),
            std::string::npos)
      << shown.output;
  EXPECT_EQ(redspine("tokenize --verify " + path("t") + tokenizer).exit_code, 0);
}

TEST_F(DataCommands, ReadsStandardInputAndCompressedFiles) {
  const Result piped = shell(fmt::format("gzip -c {0} | {1} tokenize - --output {2}", path("text"),
                                         REDSPINE_BINARY, path("piped")));
  ASSERT_EQ(piped.exit_code, 0) << piped.output;
  ASSERT_EQ(redspine(fmt::format("tokenize {} --output {}", path("text"), path("plain"))).exit_code,
            0);
  EXPECT_EQ(read("piped.bin"), read("plain.bin"));
}

TEST_F(DataCommands, OfOneProcessAreRejectedOnSeveralRanks) {
  for (const std::string command : {"tokenize", "trace", "checkpoint inspect", "checkpoint diff",
                                    "checkpoint import", "checkpoint export"}) {
    const std::string words = command + " " + path("text") + " --output " + path("t");
    const Result refused = on_ranks(2, words);
    EXPECT_EQ(refused.exit_code, 2) << refused.output;
    EXPECT_EQ(count(refused.output, "redspine: " + command +
                                        ": is for one process, and was started as 2 "
                                        "(OMPI_COMM_WORLD_SIZE is 2); start it once, without "
                                        "mpirun: redspine " +
                                        command + " ...\n"),
              1)
        << refused.output;
  }
  EXPECT_FALSE(std::filesystem::exists(path("t.bin")));
  const std::string words = "tokenize " + path("text") + " --output " + path("t");
  const Result step = shell("SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=4 " REDSPINE_BINARY " " + words);
  EXPECT_EQ(step.exit_code, 2);
  EXPECT_EQ(count(step.output,
                  "was started as 4 (SLURM_STEP_NUM_TASKS is 4); start it once, "
                  "without srun"),
            1)
      << step.output;
  // Slurm's tasks are then those that start Open MPI's ranks.
  EXPECT_EQ(
      shell("OMPI_COMM_WORLD_SIZE=1 SLURM_STEP_NUM_TASKS=4 " REDSPINE_BINARY " " + words).exit_code,
      0);
  EXPECT_EQ(on_ranks(1, words).exit_code, 0);
}

TEST_F(DataCommands, WritingOneOutputAtTheSameTimeAreKeptApart) {
  // The first one waits for its input while the second runs.
  const auto run_two = [&](const std::string& first, const std::string& partial,
                           const std::string& second) {
    return shell(
        fmt::format("cd {0} && rm -f p && mkfifo p && {{ {1} {2} <p & }} && exec 3>p && "
                    "while [ ! -e {3} ]; do sleep 0.02; done && {{ {1} {4} text; echo "
                    "second: $?; }} && cat text >&3 && exec 3>&- && wait $! && echo first: "
                    "done",
                    path(""), REDSPINE_BINARY, first, partial, second));
  };
  const auto expect_rejected = [](const Result& result, const std::string& problem) {
    EXPECT_EQ(count(result.output, problem + ": another process is writing it"), 1)
        << result.output;
    EXPECT_EQ(count(result.output, "second: 2\n"), 1) << result.output;
    EXPECT_EQ(count(result.output, "first: done\n"), 1) << result.output;
  };
  write("text", read("text"));
  expect_rejected(run_two("tokenize - --output t", "t.bin.partial", "tokenize --output t"),
                  "--output: t.bin");
  EXPECT_EQ(std::filesystem::file_size(path("t.bin")), 2 * (read("text").size() + 1));
  const std::string train = " --train-bpe --vocab-size 300 --save-tokenizer ";
  expect_rejected(
      run_two("tokenize -" + train + "a.json", "a.json.partial", "tokenize" + train + "a.json"),
      "--save-tokenizer: a.json");
  EXPECT_TRUE(std::filesystem::exists(path("a.json")));
}

TEST_F(DataCommands, InAFolderOfTheirInputsDoNotReadTheirOwnFiles) {
  std::filesystem::create_directory(path("corpus"));
  write("corpus/text", read("text"));
  const std::string words = fmt::format(
      "tokenize {0} --train-bpe --vocab-size 300 --save-tokenizer {0}/tokenizer.json --output "
      "{0}/tok",
      path("corpus"));
  ASSERT_EQ(redspine(words).exit_code, 0);
  const std::string tokens = read("corpus/tok.bin");
  const Result again = redspine(words);
  ASSERT_EQ(again.exit_code, 0) << again.output;
  EXPECT_EQ(read("corpus/tok.bin"), tokens);
  EXPECT_NE(again.output.find("3 files left out of the inputs, being this command's own: " +
                              path("corpus/tok.bin")),
            std::string::npos)
      << again.output;
  const Result only =
      redspine(fmt::format("tokenize '{0}/t*' --tokenizer {0}/tokenizer.json "
                           "--output {0}/tok",
                           path("corpus")));
  EXPECT_EQ(only.exit_code, 0) << only.output;
  EXPECT_EQ(read("corpus/tok.bin"), tokens);
}

TEST_F(DataCommands, VerifyHasHonestExitCodes) {
  ASSERT_EQ(redspine(fmt::format("tokenize {} --output {}", path("text"), path("t"))).exit_code, 0);
  const std::string verify = "tokenize --verify " + path("t");
  EXPECT_EQ(redspine(verify + " --vocab-size 257").exit_code, 0);
  const Result small = redspine(verify + " --vocab-size 256");
  EXPECT_EQ(small.exit_code, 1);
  EXPECT_NE(small.output.find("t.bin: token "), std::string::npos) << small.output;
  EXPECT_NE(small.output.find(" has id 256; legal"), std::string::npos) << small.output;
  EXPECT_EQ(redspine(verify).exit_code, 2);
  EXPECT_EQ(redspine("tokenize --verify " + path("none") + " --vocab-size 257").exit_code, 2);

  std::filesystem::resize_file(path("t.bin"), 1000);
  EXPECT_EQ(redspine(verify + " --vocab-size 257").exit_code, 1);
}

TEST_F(DataCommands, OptionsThatDoNotGoTogetherAreTold) {
  const auto expect_problem = [](const std::string& words, const std::string& text) {
    const Result result = redspine("tokenize " + words);
    EXPECT_EQ(result.exit_code, 2) << words;
    EXPECT_NE(result.output.find(text), std::string::npos) << words << ": " << result.output;
  };
  expect_problem("--inspect a --verify b --vocab-size 3", "--verify: is given with --inspect");
  expect_problem("--inspect a --output b", "--output: has no meaning with --inspect");
  expect_problem("a --output b --train-bpe", "--save-tokenizer: is missing");
  expect_problem("a --output b --train-bpe", "--vocab-size: is missing");
  expect_problem("a --output b --vocab-size 300", "--vocab-size: has no meaning without");
  expect_problem("- --output b --train-bpe --vocab-size 300 --save-tokenizer c",
                 "reads the inputs twice");
  expect_problem("a --output b --output-format x", "--output-format: read \"x\"; legal: megatron");
}

/// The most memory that any program which this test started, and waited for, has taken so far.
std::int64_t peak_bytes_of_children() {
  rusage usage{};
  getrusage(RUSAGE_CHILDREN, &usage);
  return std::int64_t{usage.ru_maxrss} * 1024;
}

/// `num_bytes` of words of a small vocabulary, without an order, a dozen a paragraph.
std::string words_of(std::size_t num_bytes) {
  std::string text;
  std::uint32_t state = 1;
  for (int number = 1; text.size() < num_bytes; ++number) {
    state = state * 1664525U + 1013904223U;
    text += fmt::format("{:x}", (state >> 16) % 4096);
    text += number % 12 == 0 ? "\n\n" : " ";
  }
  return text;
}

TEST_F(DataCommands, MemoryOfTokenizingDoesNotGrowWithTheText) {
  constexpr std::size_t kMegabyte = 1'000'000;
  constexpr std::size_t kLarge = 64 * kMegabyte;
  const std::string commands[] = {
      "tokenize --threads 2 --output {0}.tokens {0}",
      "tokenize --threads 2 --document-separator '' --output {0}.tokens {0}",
      "tokenize --threads 2 --output {0}.tokens {0}.tar",
      "tokenize --threads 2 --train-bpe --vocab-size 400 --save-tokenizer {0}.json {0}"};
  for (const std::string& command : commands) {
    const auto run = [&](const std::string& name) {
      const Result result = redspine(fmt::format(fmt::runtime(command), path(name)));
      EXPECT_EQ(result.exit_code, 0) << result.output;
      return peak_bytes_of_children();
    };
    write("small", words_of(4 * kMegabyte));
    write("large", words_of(kLarge));
    for (const char* name : {"small", "large"}) {
      ASSERT_EQ(shell(fmt::format("cd {} && tar -cf {}.tar {}", path(""), name, name)).exit_code,
                0);
    }
    const std::int64_t before = run("small");
    EXPECT_LT(run("large") - before, static_cast<std::int64_t>(kLarge / 4)) << command;
  }
}

}  // namespace
}  // namespace redspine::testing
