#include "trainer/recorded_metrics.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <limits>

#include "tests/support/scratch.h"
#include "trainer/metrics.h"

namespace redspine {
namespace {

StepReport report(std::int64_t step) {
  return {.step = step,
          .loss = 5.25,
          .gradient_norm = 0.1,
          .learning_rate = 6e-4,
          .tokens = 12'288,
          .samples = 12,
          .batch_hash = 7,
          .weights_digest = {.low = 1, .high = 2},
          .applied = true,
          .seconds = 0.5,
          .tokens_per_second = 8192.0,
          .tflops_per_rank = 0.0625,
          .requests = {}};
}

std::string replaced(std::string text, const std::string& part, const std::string& by) {
  return text.replace(text.find(part), part.size(), by);
}

class RecordedMetricsTest : public testing::Test {
 protected:
  RecordedMetrics read(const std::string& text) const {
    return RecordedMetrics(scratch_.write("metrics.jsonl", text));
  }
  // Of step 3, whose line is `line`.
  std::string differences(const std::string& line) const {
    return read(line + "\n").differences(report(3));
  }

  Scratch scratch_;
  std::string line_ = training_line(report(3));
};

TEST_F(RecordedMetricsTest, TheSameStepDiffersInNothingButItsTimes) {
  EXPECT_EQ(differences(line_), "");
  StepReport slower = report(3);
  slower.seconds = 9.0;
  slower.tokens_per_second = 1.0;
  EXPECT_EQ(differences(training_line(slower)), "");
}

TEST_F(RecordedMetricsTest, EveryEditedKeyIsNamedWithBothValues) {
  EXPECT_EQ(differences(replaced(line_, "5.25", "5.250000000000001")),
            "loss is 5.250000000000001 in metrics.jsonl, 5.25 in the replay");
  EXPECT_EQ(differences(replaced(line_, "\"grad_norm\":0.1", "\"grad_norm\":\"nan\"")),
            "grad_norm is \"nan\" in metrics.jsonl, 0.1 in the replay");
  EXPECT_EQ(differences(replaced(replaced(line_, "12288", "12289"), "000007\"", "000008\"")),
            "tokens is 12289 in metrics.jsonl, 12288 in the replay; batch_hash is "
            "\"0000000000000008\" in metrics.jsonl, \"0000000000000007\" in the replay");
  EXPECT_EQ(differences(replaced(line_, "\"loss\":5.25,", "")),
            "loss is null in metrics.jsonl, 5.25 in the replay");
  EXPECT_NE(differences(replaced(line_, "00001\",\"applied", "00002\",\"applied"))
                .find("weights_digest is"),
            std::string::npos);
}

TEST_F(RecordedMetricsTest, ANumberThatIsWrittenOtherwiseIsToldToo) {
  EXPECT_NE(differences(replaced(line_, "5.25", "5.250")).find("is not how a run writes it"),
            std::string::npos);
}

TEST_F(RecordedMetricsTest, AnEarlierVersionWroteNoDigests) {
  const std::string digest = R"("weights_digest":"00000000000000020000000000000001",)";
  const RecordedMetrics metrics = read(replaced(line_, digest, ""));
  EXPECT_EQ(metrics.differences(report(3)), "");
  EXPECT_EQ(metrics.differences(3, Digest{}), "");
}

TEST_F(RecordedMetricsTest, TheWeightsAloneAreComparedByTheirDigest) {
  const RecordedMetrics metrics = read(line_);
  EXPECT_EQ(metrics.differences(3, report(3).weights_digest), "");
  EXPECT_EQ(metrics.differences(3, Digest{}),
            "weights_digest is \"00000000000000020000000000000001\" in metrics.jsonl, "
            "\"00000000000000000000000000000000\" in the replay");
}

TEST_F(RecordedMetricsTest, KnowsTheTrainingStepsAloneThatHaveALine) {
  const RecordedMetrics metrics =
      read(fmt::format("{}\n{{\"kind\":\"validation\",\"step\":9,\"loss\":1}}\nnone\n{}\n{{\"ki",
                       line_, training_line(report(5))));
  EXPECT_TRUE(metrics.has(3));
  EXPECT_TRUE(metrics.has(5));
  EXPECT_FALSE(metrics.has(4));
  EXPECT_FALSE(metrics.has(9));
  EXPECT_EQ(metrics.last_step(), 5);
  EXPECT_EQ(read("").last_step(), 0);
}

TEST_F(RecordedMetricsTest, AFileThatIsNotThereIsAnError) {
  EXPECT_NE(config_error_of([&] { RecordedMetrics(scratch_ / "none"); }).find("No such file"),
            std::string::npos);
}

}  // namespace
}  // namespace redspine
