#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/launch/commands/bench_line.h"
#include "tests/launch/commands/trained.h"
#include "tests/support/command_line.h"

namespace redspine::testing {
namespace {

using Json = nlohmann::json;

TEST(Bench, MeasuresAStepItsPartsAndTheFloorOfThem) {
  const Json line =
      bench_line(redspine("bench --config " + trained("run.yaml") + " --steps 3 --json --set " +
                          "run.output_dir=" + fresh("runs") + " run.device=cpu"));
  EXPECT_EQ(line["products"].size(), 5U * 3U + 1U);
  EXPECT_EQ(line["products"][0]["name"], "square");
  EXPECT_DOUBLE_EQ(line["products"][0]["gflops"].get<double>(),
                   1000.0 * line["matrix_tflops"].get<double>())
      << "measured twice";
  for (const Json& product : line["products"]) {
    EXPECT_GT(product["gflops"].get<double>(), 0.0) << product;
    EXPECT_GT(product["library_gflops"].get<double>(), 0.0) << product;
  }
  EXPECT_NE(line["library"].get<std::string>().find("OpenBLAS"), std::string::npos) << line;
  double sum = 0.0;
  for (const Json& seconds : line["phases_seconds"]) sum += seconds.get<double>();
  double mean = 0.0;
  for (const Json& seconds : line["all_seconds"]) mean += seconds.get<double>() / 3.0;
  EXPECT_LT(sum, mean);
  EXPECT_GT(line["step_over_floor"].get<double>(), 0.0);
  EXPECT_GT(line["cpu_seconds"].get<double>(), 0.0);
  EXPECT_GT(line["phases_seconds"]["attention backward"].get<double>(), 0.0);
  EXPECT_GT(line["phases_seconds"]["head and loss"].get<double>(), 0.0);
}

// OpenBLAS asks for address space for ever where there is too little of it.
TEST(Bench, WithoutRoomForTheLibraryComparesWithNothing) {
  const Json line = bench_line(
      shell("ulimit -v 700000; OMP_NUM_THREADS=4 timeout 60 " REDSPINE_BINARY " bench --config " +
            trained("run.yaml") + " --part gemm --matrix 64 --json --set run.device=cpu 2>&1"));
  EXPECT_EQ(
      line["library"],
      "OpenBLAS needs 1024 MiB of address space, more than this process may have (ulimit -v)");
  for (const Json& product : line["products"]) EXPECT_EQ(product["library_gflops"], 0.0);
}

TEST(Bench, MeasuresCollectivesOfEachAxisThatHasRanks) {
  const Json line =
      bench_line(on_ranks(2, "bench --config " + trained("run.yaml") +
                                 " --part collectives --largest 1000000 --json --set " +
                                 "parallel.tensor=2 run.device=cpu"));
  EXPECT_EQ(line["carrier"], "mpi");
  std::vector<std::int64_t> sizes;
  for (const Json& time : line["collectives"]) {
    EXPECT_EQ(time["axis"], "tensor");
    EXPECT_GT(time["seconds"].get<double>(), 0.0);
    EXPECT_GT(time["copy_seconds"].get<double>(), 0.0);
    EXPECT_GT(time["exchange_seconds"].get<double>(), 0.0);
    sizes.push_back(time["bytes"].get<std::int64_t>());
  }
  EXPECT_EQ(sizes, (std::vector<std::int64_t>{1'024, 16'384, 262'144, 1'000'000}));
  EXPECT_FALSE(line.contains("products"));
}

TEST(Bench, RejectsMessagesThatAreTooSmall) {
  const Result result = redspine("bench --config " + trained("run.yaml") + " --largest 1000");
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_NE(result.output.find("--largest: is 1000; legal: from 1024"), std::string::npos)
      << result.output;
}

TEST(Bench, NamesTheLegalParts) {
  const Result result = redspine("bench --config " + trained("run.yaml") + " --part gemms");
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_NE(result.output.find("--part: is gemms; legal: gemm, memory, collectives, step"),
            std::string::npos)
      << result.output;
}

}  // namespace
}  // namespace redspine::testing
