#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/command_line.h"

namespace redspine::testing {
namespace {

using Json = nlohmann::json;

std::string config_file(const std::string& name) {
  return std::string(REDSPINE_CONFIGS) + "/" + name;
}

Json plan_line(const std::string& words) {
  const Result result = redspine("plan --json " + words);
  EXPECT_EQ(result.exit_code, 0) << result.output;
  return Json::parse(result.output);
}

// On a machine without the data of the configuration, and on 1024 ranks that there are not.
TEST(PlanCommand, TellsTheMemoryOfARankByClass) {
  const Json line = plan_line("--config " + config_file("hundred-layer.yaml") + " --ranks 1024");
  EXPECT_EQ(line["ranks"], 1024);
  EXPECT_EQ(line["data"].get<int>() * line["tensor"].get<int>(), 1024);
  const Json& bytes = line["memory_bytes"];
  std::int64_t sum = 0;
  for (const char* name : {"parameters", "gradients", "optimizer", "saved_activations", "scratch",
                           "logits", "communication"}) {
    sum += bytes[name].get<std::int64_t>();
  }
  EXPECT_EQ(line["allocated_bytes"], sum);
  EXPECT_EQ(bytes["gradients"], bytes["parameters"]);
  EXPECT_GT(bytes["saved_activations"], bytes["scratch"]);
}

TEST(PlanCommand, FollowsSettings) {
  const std::string words = "--config " + config_file("gpt2-small.yaml") + " --ranks 2 --set ";
  const Json plain = plan_line(words + "batch.micro_batch_size=4");
  const Json again = plan_line(words + "batch.micro_batch_size=4 parallel.recompute=block");
  EXPECT_EQ(again["recompute"], "block");
  EXPECT_LT(again["memory_bytes"]["saved_activations"].get<double>(),
            0.2 * plain["memory_bytes"]["saved_activations"].get<double>());
  const Json split = plan_line(words + "batch.micro_batch_size=4 parallel.tensor=2");
  EXPECT_LT(split["memory_bytes"]["parameters"].get<double>(),
            0.52 * plain["memory_bytes"]["parameters"].get<double>());
}

TEST(PlanCommand, ShowsATableToPeople) {
  const Result result = redspine("plan --ranks 8 --config " + config_file("gpt2-small.yaml") +
                                 " --set run.device=cuda");
  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_EQ(result.output.substr(0, result.output.find('\n')),
            "plan: 124439808 parameters on 8 ranks (cuda) = 8 data x 1 tensor");
  EXPECT_EQ(count(result.output, "  saved activations "), 1) << result.output;
}

TEST(PlanCommand, RefusesWhatDoesNotFitTheRanks) {
  const std::string config = config_file("gpt2-small.yaml");
  const Result no_layout =
      redspine("plan --ranks 10 --config " + config + " --set parallel.tensor=4");
  EXPECT_EQ(no_layout.exit_code, 2);
  EXPECT_EQ(count(no_layout.output, "parallel.tensor: is 4, which does not divide the 10 ranks"), 1)
      << no_layout.output;
  const Result no_ranks = redspine("plan --config " + config);
  EXPECT_EQ(no_ranks.exit_code, 2);
  EXPECT_EQ(count(no_ranks.output, "--ranks N is missing"), 1) << no_ranks.output;
  const Result too_few = redspine("plan --ranks 0 --config " + config);
  EXPECT_EQ(too_few.exit_code, 2);
  EXPECT_EQ(count(too_few.output, "--ranks: is 0; legal: 1 to 1048576"), 1) << too_few.output;
}

std::string machine_file(const std::string& name) { return config_file("machines/" + name); }

TEST(PlanCommand, PredictsTheTimeOfAStepOnAMachine) {
  const std::string words = "--config " + config_file("gpt2-small.yaml") + " --machine " +
                            machine_file("h100-8.yaml") + " --set run.precision=bf16 --ranks ";
  const Json one = plan_line(words + "1");
  EXPECT_EQ(one["device"], "cuda");
  EXPECT_EQ(one["fits"], true);
  const Json& time = one["predicted"];
  double sum = 0.0;
  for (const char* name :
       {"products_seconds", "attention_seconds", "other_kernels_seconds", "update_seconds",
        "tensor_wait_seconds", "data_wait_seconds", "host_seconds"}) {
    sum += time[name].get<double>();
  }
  EXPECT_NEAR(time["step_seconds"].get<double>(), sum, 1e-9);
  EXPECT_NEAR(time["tokens_per_second"].get<double>(), 512 * 1024 / sum, 1.0);
  const Json eight = plan_line(words + "8");
  const double speedup =
      time["step_seconds"].get<double>() / eight["predicted"]["step_seconds"].get<double>();
  EXPECT_GT(speedup, 6.0);
  EXPECT_LT(speedup, 8.0);
}

TEST(PlanCommand, RefusesAMachineThatTheConfigurationIsNotFor) {
  const Result cpu = redspine("plan --ranks 1 --config " + config_file("gpt2-small.yaml") +
                              " --set run.device=cpu --machine " + machine_file("h100-8.yaml"));
  EXPECT_EQ(cpu.exit_code, 2);
  EXPECT_EQ(count(cpu.output,
                  "run.device: is cpu, but the machine 8 x H100 computes on cuda; "
                  "legal with it: auto, cuda"),
            1)
      << cpu.output;
  const Result bf16 =
      redspine("plan --ranks 1 --config " + config_file("gpt2-small.yaml") +
               " --set run.precision=bf16 --machine " + machine_file("cpu-cluster.yaml"));
  EXPECT_EQ(bf16.exit_code, 2);
  EXPECT_EQ(count(bf16.output, "run.precision: is bf16, but the machine CPU cluster"), 1)
      << bf16.output;
}

TEST(PlanCommand, SearchesAllLayoutsAndTellsWhyOthersDoNotFit) {
  const Json line = plan_line("--search --ranks 4096 --config " +
                              config_file("hundred-layer.yaml") + " --machine " +
                              machine_file("h100-8.yaml") + " --set batch.global_batch_size=4096");
  const Json& layouts = line["layouts"];
  ASSERT_GT(layouts.size(), 20U);
  for (std::size_t i = 1; i < layouts.size(); ++i) {
    EXPECT_LE(layouts[i]["predicted"]["tokens_per_second"],
              layouts[i - 1]["predicted"]["tokens_per_second"]);
  }
  for (const Json& layout : layouts) {
    EXPECT_EQ(layout["data"].get<int>() * layout["tensor"].get<int>(), 4096);
    EXPECT_LE(layout["device_bytes"].get<double>(), 79.0 * (1 << 30));
  }
  std::string reasons;
  for (const Json& layout : line["rejected"]) reasons += layout["reason"].get<std::string>() + '\n';
  EXPECT_GE(count(reasons, " GiB of 79.0, most of it "), 1) << reasons;
  EXPECT_GE(count(reasons, "which does not divide model.num_heads (16)"), 1) << reasons;
}

// gpt2-xl.yaml splits its 25 heads over 5 ranks, which do not divide 8.
TEST(PlanCommand, SearchesWhereTheConfigurationsOwnLayoutDoesNotFit) {
  const Json line = plan_line("--search --ranks 8 --config " + config_file("gpt2-xl.yaml") +
                              " --machine " + machine_file("h100-8.yaml"));
  EXPECT_GT(line["layouts"].size(), 4U);
  EXPECT_EQ(line["layouts"][0]["data"], 8);
}

TEST(PlanCommand, SearchNeedsAMachine) {
  const Result result =
      redspine("plan --search --ranks 8 --config " + config_file("gpt2-small.yaml"));
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(count(result.output, "--search: needs --machine FILE"), 1) << result.output;
}

TEST(PlanCommand, NamesTheLineOfAMachinesFileThatIsWrong) {
  const Folder folder;
  folder.write("m.yaml", "name: x\ndevice: abacus\n");
  const Result result = redspine("plan --ranks 8 --config " + config_file("gpt2-small.yaml") +
                                 " --machine " + folder.path("m.yaml"));
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(
      count(result.output, "m.yaml:2:9: device: read the text \"abacus\"; legal: auto, cpu, cuda"),
      1)
      << result.output;
  EXPECT_EQ(count(result.output, "m.yaml: rates: missing; legal: a list like"), 1) << result.output;
}

// From the bench's file to a plan: what was measured is in it.
TEST(PlanCommand, TakesWhatTheBenchHasMeasured) {
  const TinyRun run;
  const std::string machine = run.path("machine.yaml");
  const Result bench = redspine("bench --steps 1 --matrix 256 --config " + run.path("run.yaml") +
                                " --set run.device=cpu --write-machine " + machine);
  ASSERT_EQ(bench.exit_code, 0) << bench.output;
  EXPECT_EQ(count(bench.output, " rates of operations, "), 1) << bench.output;
  const Json line =
      plan_line("--ranks 1 --config " + run.path("run.yaml") + " --machine " + machine);
  EXPECT_EQ(line["device"], "cpu");
  EXPECT_GT(line["predicted"]["step_seconds"].get<double>(), 0.0);
  const Result two =
      on_ranks(2, "bench --steps 1 --matrix 256 --largest 1024 --config " + run.path("run.yaml") +
                      " --set run.device=cpu --write-machine " + machine);
  ASSERT_EQ(two.exit_code, 0) << two.output;
  EXPECT_EQ(count(two.output, ", 1 of sums between ranks"), 1) << two.output;
  const Json tensor = plan_line("--ranks 2 --config " + run.path("run.yaml") + " --machine " +
                                machine + " --set parallel.tensor=2");
  EXPECT_GT(tensor["predicted"]["tensor_wait_seconds"].get<double>(), 0.0);
}

// The dry run predicts, and the run compares what it measured.
TEST(PlanCommand, IsComparedWithARunThatIsGivenTheMachine) {
  const TinyRun run;
  const std::string words = "train --config " + run.path("run.yaml") +
                            " --set run.device=cpu --machine " + machine_file("cpu-cluster.yaml");
  const Result dry = redspine(words + " --dry-run");
  EXPECT_EQ(dry.exit_code, 0) << dry.output;
  EXPECT_EQ(count(dry.output, "predicted on CPU cluster:"), 1) << dry.output;
  const Result result = redspine(words);
  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_EQ(count(result.output, "predicted on CPU cluster:"), 1) << result.output;
  EXPECT_EQ(count(result.output, "step: planned "), 1) << result.output;
  EXPECT_EQ(count(result.output, " s, measured "), 1) << result.output;
  EXPECT_EQ(count(result.output, "memory of rank 0: planned "), 1) << result.output;
  const Result wrong = redspine("train --config " + run.path("run.yaml") +
                                " --set run.device=cpu --machine " + machine_file("h100-8.yaml"));
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_EQ(count(wrong.output, "but the machine 8 x H100 computes on cuda"), 1) << wrong.output;
}

}  // namespace
}  // namespace redspine::testing
