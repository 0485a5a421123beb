#include "trainer/metrics.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>

#include "tensor/error.h"

namespace redspine {
namespace {

using nlohmann::ordered_json;

StepReport step_report() {
  return {.step = 3,
          .loss = 5.25,
          .gradient_norm = 0.1,
          .learning_rate = 6e-4,
          .tokens = 12'288,
          .samples = 12,
          .batch_hash = 0x00ab'cdef'0123'4567,
          .weights_digest = {.low = 0x0123'4567'89ab'cdef, .high = 0x00aa'bbcc'ddee'ff00},
          .applied = true,
          .seconds = 0.5,
          .tokens_per_second = 8192.0,
          .tflops_per_rank = 0.0625,
          .requests = {}};
}

class MetricsFile : public ::testing::Test {
 protected:
  MetricsFile()
      : path_(std::filesystem::temp_directory_path() /
              ("redspine_metrics_" + std::to_string(getpid()) + ".jsonl")) {}
  ~MetricsFile() override { std::filesystem::remove(path_); }

  std::string text() const {
    std::ostringstream all;
    all << std::ifstream(path_).rdbuf();
    return all.str();
  }
  /// The keys of the only line, in their order in the file.
  std::vector<std::string> keys() const {
    std::vector<std::string> names;
    const ordered_json line = ordered_json::parse(text());
    for (const auto& [key, value] : line.items()) names.push_back(key);
    return names;
  }

  std::filesystem::path path_;
};

TEST_F(MetricsFile, ATrainingLineHasTheKeysOfTheInterfaceInItsOrder) {
  MetricsLog(path_.string(), TrainConfig{}, std::nullopt).write(step_report());
  EXPECT_EQ(keys(), (std::vector<std::string>{"kind", "step", "loss", "grad_norm", "learning_rate",
                                              "tokens", "samples", "batch_hash", "weights_digest",
                                              "applied", "seconds", "tokens_per_second",
                                              "tflops_per_rank", "mfu"}));
  const ordered_json line = ordered_json::parse(text());
  EXPECT_EQ(line.at("kind"), "train");
  EXPECT_EQ(line.at("step"), 3);
  EXPECT_EQ(line.at("loss"), 5.25);
  EXPECT_EQ(line.at("batch_hash"), "00abcdef01234567");
  EXPECT_EQ(line.at("weights_digest"), "00aabbccddeeff000123456789abcdef");
  EXPECT_EQ(line.at("applied"), true);
  EXPECT_EQ(line.at("tokens"), 12'288);
  EXPECT_TRUE(line.at("mfu").is_null());
}

TEST(StepReport, ALineForSeveralStepsHasTheTimesOfAllOfThem) {
  StepReport first = step_report();  // half a second at 8192 tokens/s
  StepReport second = step_report();
  second.step = 4;
  second.tokens += 4096;
  second.seconds = 1.5;
  second.tokens_per_second = 4096 / 1.5;
  second.tflops_per_rank = 0.03125 / 1.5;
  const StepReport line = with_times_of(first, second);
  EXPECT_EQ(line.step, 4);
  EXPECT_EQ(line.tokens, 16'384);
  EXPECT_EQ(line.seconds, 2.0);
  EXPECT_EQ(line.num_steps, 2);
  EXPECT_DOUBLE_EQ(line.tokens_per_second, 8192 / 2.0);
  EXPECT_DOUBLE_EQ(line.tflops_per_rank, 0.0625 / 2.0);
}

TEST_F(MetricsFile, AValidationLineHasTheKeysOfTheInterfaceInItsOrder) {
  MetricsLog(path_.string(), TrainConfig{}, std::nullopt)
      .write(ValidationReport{.step = 9, .loss = 2.5, .tokens = 77});
  EXPECT_EQ(text(), "{\"kind\":\"validation\",\"step\":9,\"loss\":2.5,\"tokens\":77}\n");
}

TEST_F(MetricsFile, NumbersThatAreNotFiniteAreStrings) {
  StepReport report = step_report();
  report.loss = std::numeric_limits<double>::quiet_NaN();
  report.gradient_norm = std::numeric_limits<double>::infinity();
  report.applied = false;
  MetricsLog(path_.string(), TrainConfig{}, std::nullopt).write(report);
  const ordered_json line = ordered_json::parse(text());
  EXPECT_EQ(line.at("loss"), "nan");
  EXPECT_EQ(line.at("grad_norm"), "inf");
  EXPECT_EQ(line.at("applied"), false);
}

TEST_F(MetricsFile, ANotANumberHasNoSign) {
  StepReport report = step_report();
  report.loss = std::copysign(std::numeric_limits<double>::quiet_NaN(), -1.0);
  report.gradient_norm = -std::numeric_limits<double>::infinity();
  MetricsLog(path_.string(), TrainConfig{}, std::nullopt).write(report);
  EXPECT_EQ(ordered_json::parse(text()).at("loss"), "nan");
  EXPECT_EQ(ordered_json::parse(text()).at("grad_norm"), "-inf");
}

TEST_F(MetricsFile, NumbersReadBackToTheSameBitsAndAreTheShortestThatDo) {
  std::mt19937_64 generator(5);
  MetricsLog log(path_.string(), TrainConfig{}, std::nullopt);
  std::vector<double> losses{0.1, 1.0 / 3.0, 5e-324, 1.7976931348623157e308, 1e22, 123456789.0};
  while (losses.size() < 2000) {
    const double value = std::ldexp(static_cast<double>(generator() >> 11), -50) *
                         std::pow(10.0, static_cast<double>(generator() % 40) - 20.0);
    losses.push_back(value);
  }
  for (const double loss : losses)
    log.write(ValidationReport{.step = 1, .loss = loss, .tokens = 1});
  std::istringstream lines(text());
  std::string line;
  for (const double loss : losses) {
    ASSERT_TRUE(std::getline(lines, line));
    EXPECT_EQ(ordered_json::parse(line).at("loss").get<double>(), loss);
    const std::size_t begin = line.find("\"loss\":") + 7;
    const std::string digits = line.substr(begin, line.find(',', begin) - begin);
    char shortest[32];
    const char* const shortest_end =
        std::to_chars(shortest, shortest + sizeof(shortest), loss, std::chars_format::scientific)
            .ptr;
    // ".0" and the sign and zeros of an exponent are matters of taste.
    const auto significant = [](std::string text) {
      text = text.substr(0, text.find('e'));
      std::erase(text, '.');
      text.erase(0, text.find_first_not_of('0'));
      text.erase(text.find_last_not_of('0') + 1);
      return text;
    };
    EXPECT_EQ(significant(digits),
              significant(std::string(static_cast<const char*>(shortest), shortest_end)))
        << digits;
  }
}

TEST_F(MetricsFile, ALineIsThereAsSoonAsItIsWritten) {
  MetricsLog log(path_.string(), TrainConfig{}, std::nullopt);
  log.write(step_report());
  EXPECT_EQ(text().back(), '\n');
  log.write(ValidationReport{.step = 3, .loss = 1.0, .tokens = 1});
  const std::string both = text();
  EXPECT_EQ(std::count(both.begin(), both.end(), '\n'), 2);
}

TEST_F(MetricsFile, ALineOfAnotherKindOrTypeIsNoReasonToFail) {
  const std::string odd = R"({"kind":5,"step":3}
{"kind":"train","step":3,"applied":"yes"}
)";
  std::ofstream(path_) << odd << "[1]\n{\"step\":\"3\"}\n";
  MetricsLog(path_.string(), TrainConfig{.steps = 8}, 5).sync();
  EXPECT_EQ(text(), odd);
}

TEST_F(MetricsFile, AResumedFileIsThatOfAnUninterruptedRun) {
  std::ofstream(path_) << R"({"kind":"train","step":3,"applied":true}
{"kind":"train","step":4,"applied":true}
{"kind":"validation","step":4}
{"kind":"checkpoint","step":4}
{"kind":"train","step":5,"applied":true}
{"kind":"validation","step":5}
{"kind":"checkpoint","step":5}
{"kind":"train","step":6,"applied":true}
{"kind":"train","step":7,"appl)";
  const TrainConfig config{.steps = 8, .log_interval = 1, .eval_interval = 4, .eval_batches = 0};
  MetricsLog(path_.string(), config, 5).write_resume(5, "DIR/\"x\"");
  EXPECT_EQ(text(), R"({"kind":"train","step":3,"applied":true}
{"kind":"train","step":4,"applied":true}
{"kind":"validation","step":4}
{"kind":"checkpoint","step":4}
{"kind":"train","step":5,"applied":true}
{"kind":"checkpoint","step":5}
{"kind":"event","step":5,"event":"resume","from":"DIR/\"x\""}
)");
}

TEST_F(MetricsFile, AFreshRunStartsAFreshFile) {
  std::ofstream(path_) << "{\"kind\":\"train\",\"step\":3}\n";
  const MetricsLog log(path_.string(), TrainConfig{}, std::nullopt);
  EXPECT_EQ(text(), "");
}

TEST_F(MetricsFile, AFileThatCannotBeWrittenIsNamed) {
  try {
    const MetricsLog log("/nowhere/metrics.jsonl", TrainConfig{}, std::nullopt);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("/nowhere/metrics.jsonl"), std::string::npos);
  }
}

TEST_F(MetricsFile, AFullDiskIsAnError) {
  MetricsLog log("/dev/full", TrainConfig{}, std::nullopt);
  EXPECT_THROW(log.write(step_report()), Error);
}

}  // namespace
}  // namespace redspine
