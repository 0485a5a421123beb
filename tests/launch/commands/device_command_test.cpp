// `redspine` and the devices that its ranks compute on: what is chosen, shown and rejected. The
// binary has the CUDA backend on the host, which REDSPINE_ON_HOST_DEVICES gives so many devices.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/launch/commands/bench_line.h"
#include "tests/support/command_line.h"

namespace redspine::testing {
namespace {

using Json = nlohmann::json;

class DeviceCommand : public ::testing::Test {
 protected:
  Result with_devices(int num_devices, int num_ranks, const std::string& words) const {
    return shell(fmt::format("REDSPINE_ON_HOST_DEVICES={} {} {} {} {}", num_devices,
                             REDSPINE_MPIRUN, num_ranks, REDSPINE_BINARY, words));
  }
  Result train(int num_devices, int num_ranks, const std::string& settings) const {
    return with_devices(
        num_devices, num_ranks,
        fmt::format("train --config {} --set {}", folder_.path("run.yaml"), settings));
  }
  std::string checkpoint() const { return folder_.path("runs/tiny/checkpoints/step_00000002"); }
  const Folder& folder() const { return folder_; }
  bool has_run() const { return std::filesystem::exists(folder_.path("runs")); }

 private:
  TinyRun folder_;
};

TEST_F(DeviceCommand, VersionNamesTheLibrariesOfGpus) {
  const Result result = redspine("--version");
  for (const std::string part :
       {"backends   cpu, cuda", "CUDA       13.0, cuBLASLt 13.0.0", "NCCL       2."}) {
    EXPECT_EQ(count(result.output, part), 1) << part << " in\n" << result.output;
  }
}

TEST_F(DeviceCommand, EveryRankShowsItsGpuAndRanksBeyondThemShare) {
  const Result result = train(2, 3, "run.precision=bf16 batch.global_batch_size=3");
  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_EQ(count(result.output, "PCI 0000:01:00.0"), 2) << result.output;
  EXPECT_EQ(count(result.output, "PCI 0000:02:00.0"), 1) << result.output;
  EXPECT_EQ(count(result.output, "memory: "), 1) << result.output;
}

TEST_F(DeviceCommand, AutoIsTheCpuWhereThereIsNoDevice) {
  const Result result = train(0, 2, "run.device=auto");
  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_EQ(count(result.output, "ranks 0 to 1 @ "), 1) << result.output;
  EXPECT_EQ(count(result.output, ": cpu: "), 1) << result.output;
}

TEST_F(DeviceCommand, CudaWithoutADeviceIsOneLineAndCode2) {
  const Result result = train(0, 2, "run.device=cuda");
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(count(result.output, "[rank "), 1) << result.output;
  EXPECT_EQ(count(result.output, "run.device: cuda cannot be used: "), 1) << result.output;
  EXPECT_FALSE(has_run());
}

TEST_F(DeviceCommand, NcclIsRejectedToRanksThatShareAGpu) {
  const Result result = train(1, 2, "run.collectives=nccl");
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(count(result.output, "[rank "), 1) << result.output;
  EXPECT_EQ(count(result.output, "is nccl, but ranks 0 and 1 share the GPU 0000:01:00.0 of "), 1)
      << result.output;
  EXPECT_FALSE(has_run());
}

TEST_F(DeviceCommand, Bf16OnTheCpuIsRejectedBeforeAnythingIsMade) {
  const Result result = train(0, 1, "run.precision=bf16");
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(count(result.output, "run.precision: is bf16, which the CPU backend does not compute"),
            1)
      << result.output;
  EXPECT_FALSE(has_run());
}

TEST_F(DeviceCommand, AHalfOfARunOnTheCpuGoesOnInBf16) {
  const Result first = train(0, 1, "run.device=cpu train.steps=1 schedule.decay_steps=2");
  EXPECT_EQ(first.exit_code, 0) << first.output;
  const Result second = train(2, 2, "run.device=cuda run.precision=bf16");
  EXPECT_EQ(second.exit_code, 0) << second.output;
  EXPECT_EQ(count(second.output, "run.precision: fp32 -> bf16"), 1) << second.output;
  EXPECT_EQ(count(second.output, "\nstep 2/2  loss "), 1) << second.output;
}

TEST_F(DeviceCommand, ATrainedModelIsEvaluatedAndSampledInBf16) {
  ASSERT_EQ(train(0, 1, "run.device=cpu").exit_code, 0);
  const auto loss_with = [&](int num_devices, const std::string& options) {
    const Result result =
        with_devices(num_devices, 1,
                     fmt::format("evaluate --checkpoint {} --data {} --sequence-length 16 {}",
                                 checkpoint(), folder().path("tokens"), options));
    EXPECT_EQ(result.exit_code, 0) << result.output;
    const std::size_t at = result.output.find("loss           ");
    return at == std::string::npos ? 0.0 : std::stod(result.output.substr(at + 15));
  };
  const double exact = loss_with(0, "--device cpu");
  EXPECT_GT(exact, 4.0);
  EXPECT_NEAR(loss_with(1, "--device cuda"), exact, 1e-5);
  EXPECT_NEAR(loss_with(1, "--precision bf16"), exact, 0.01 * exact);

  const auto text_with = [&](const std::string& options) {
    return with_devices(1, 2,
                        fmt::format("sample --checkpoint {} --prompt The --tokens 3 --greedy "
                                    "--tokenizer bytes {}",
                                    checkpoint(), options));
  };
  const Result sampled = text_with("--precision bf16");
  EXPECT_EQ(sampled.exit_code, 0) << sampled.output;
  const Result refused = text_with("--device cpu --precision bf16");
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_EQ(count(refused.output, "--precision: is bf16, but --device is cpu"), 1)
      << refused.output;
}

TEST_F(DeviceCommand, BenchMeasuresMemoryAgainstItsPlan) {
  const Result result = with_devices(
      1, 1,
      fmt::format("bench --config {} --steps 1 --matrix 32 --json --set run.precision=bf16",
                  folder().path("run.yaml")));
  const Json line = bench_line(result);
  EXPECT_EQ(line["precision"], "bf16");
  EXPECT_EQ(line["steps"], 1);
  for (const char* key :
       {"seconds", "cpu_seconds", "tokens_per_second", "matrix_tflops", "tflops_per_rank", "mfu",
        "forward_seconds", "gradients_seconds", "norm_seconds", "update_seconds"}) {
    ASSERT_TRUE(line[key].is_number()) << key << " is " << line[key];
    EXPECT_GT(line[key].get<double>(), 0.0) << key;
  }
  const auto value = [&](const char* key) { return line[key].get<double>(); };
  EXPECT_NEAR(value("tokens_per_second") * value("seconds"), 4 * 16, 1e-6);
  EXPECT_NEAR(value("tflops_per_rank") / value("matrix_tflops"), value("mfu"), 1e-9);
  EXPECT_LE(value("gradients_seconds") + value("norm_seconds") + value("update_seconds"),
            value("seconds"));
  EXPECT_NEAR(value("loss"), std::log(257.0), 1.0);
  EXPECT_NEAR(value("used_bytes") / value("planned_bytes"), 1.0, 0.1);
  EXPECT_FALSE(has_run());
}

TEST_F(DeviceCommand, BenchMeasuresTheCollectivesThatTheRunAsksFor) {
  const auto carrier_of = [&](const std::string& settings) {
    return bench_line(
        with_devices(2, 2,
                     fmt::format("bench --config {} --part collectives --largest 20000 --json "
                                 "--set parallel.tensor=2 {}",
                                 folder().path("run.yaml"), settings)))["carrier"];
  };
  EXPECT_EQ(carrier_of(""), "nccl");
  EXPECT_EQ(carrier_of("run.collectives=mpi"), "mpi");
}

}  // namespace
}  // namespace redspine::testing
