// How a configuration is read and written as text: bytes, spelling, and what a problem quotes.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>
#include <sstream>

#include "launch/config/fields.h"
#include "tests/launch/config/parsed_config.h"

namespace redspine::testing {
namespace {

TEST(ConfigText, ATabInAnIndentationIsToldAsSuch) {
  const auto tab_at = [](const char* place) {
    return fmt::format("run.yaml:{}: a tab indents the line; legal: spaces", place);
  };
  EXPECT_EQ(problems_of("run:\n\tname: x\n"), tab_at("2:1"));
  EXPECT_EQ(problems_of("run:\n  name: x\n  \tseed: 3\n"), tab_at("3:3"));
  EXPECT_EQ(problems_of("data:\n  train:\n\t- path: x\n"), tab_at("3:1"));
  EXPECT_EQ(problems_of("data:\n  train:\n  -\tpath: x\n    weight: 1\n"), tab_at("3:4"));
  EXPECT_EQ(problems_of("run:\n  seed: 1\n\t\nmodel:\n  num_layers: 2\n"), tab_at("3:1"));
  EXPECT_EQ(problems_of("run:\n  name: a\tb\n  seed: {7\n").find("a tab"), std::string::npos)
      << "a tab inside a value is none";
  EXPECT_EQ(problems_of(kMinimal + "run:\n  seed:\t7\t# seven\n"), "");
}

TEST(ConfigText, TextThatIsNoUtf8AndNulsAreRejectedAtTheirKeys) {
  EXPECT_EQ(
      problems_of(kMinimal + "run:\n  name: caf\xe9\n"),
      R"(run.yaml:6:9: run.name: read the text "caf\xe9": has the byte 0xe9 at 3, which is no )"
      "UTF-8; legal: text in UTF-8");
  EXPECT_EQ(problems_of(kMinimal + "run:\n  output_dir: \"a\\0b\"\n"),
            R"(run.yaml:6:15: run.output_dir: read the quoted text "a\x00b": has a NUL at byte 1; )"
            "legal: text in UTF-8");
  EXPECT_EQ(problems_of(kMinimal, {"data.tokenizer=\xff"}),
            R"(--set data.tokenizer=\xff: data.tokenizer: read the text "\xff": has the byte 0xff )"
            "at 0, which is no UTF-8; legal: text in UTF-8");
  EXPECT_NE(problems_of(kMinimal, {"data.train=[{path: a\xe9}]"}).find("data.train[0].path: read"),
            std::string::npos);
  EXPECT_EQ(problems_of(kMinimal + "run: {name: café}  # \xe9\n"), "");
}

TEST(ConfigText, AProblemQuotesLongTextsInParts) {
  const std::string text(300'000, 'x');
  for (const std::string& problem :
       {problems_of(kMinimal + "run: {seed: " + text + "}\n"),
        problems_of(kMinimal + "model:\n  ? " + text + "\n  : 3\n"),
        problems_of(kMinimal + "model: {num_layers: !" + text + " 3}\n"),
        problems_of(kMinimal, {"run.seed=" + text}), problems_of(kMinimal, {text}),
        problems_of(kMinimal, {"run.seed=" + std::string(300'000, '1')})}) {
    EXPECT_LT(problem.size(), 2200U) << problem;
    EXPECT_NE(problem.find("legal"), std::string::npos) << problem;
  }
}

TEST(ConfigText, AProblemHoldsNothingThatMovesACursor) {
  for (const std::string& problem :
       {problems_of(kMinimal + "run: {\"na\x1b[2Jme\": x}\n"),
        problems_of(kMinimal + "run: {seed: \"\\e[2J\"}\n"),
        problems_of(kMinimal, {"run.\x1b[2J=3"}), problems_of(kMinimal, {"run.name=a/\x1b[2J"})}) {
    EXPECT_NE(problem, "");
    EXPECT_EQ(problem.find('\x1b'), std::string::npos) << problem;
  }
}

TEST(ConfigText, AFileThatCannotBeReadIsNamedWithTheCause) {
  const auto cause = [](const std::string& path) -> std::string {
    try {
      load_config(path, {}, 1);
      return "";
    } catch (const ConfigError& error) {
      return error.what();
    }
  };
  EXPECT_EQ(cause("no/such.yaml"),
            "no/such.yaml: cannot read the configuration: No such file or directory");
  EXPECT_EQ(cause(::testing::TempDir()),
            ::testing::TempDir() + ": cannot read the configuration: Is a directory");
}

// --- The effective configuration -----------------------------------------------------------------

TEST(ConfigText, TheEffectiveConfigReadsBackToItself) {
  const std::string text = kMinimal +
                           "run: {name: \"a \\\"b\\\" \\\\ \\x01 \\u00e9: #\", seed: "
                           "18446744073709551615}\n"
                           "model: {family: llama, norm_epsilon: 1.1e-7, rope: {theta: 12345.678, "
                           "scaling: yarn, factor: 3.3, attention_factor: 1.25}}\n"
                           "optimizer: {learning_rate: 0.1, beta2: 0.9999999999999999}\n";
  const Config config = parse(text, {"data.validation=[{path: 'x y', weight: 0.3}, {path: z}]"});
  const std::string yaml = to_yaml(config);
  EXPECT_EQ(to_yaml(parse(yaml)), yaml);
  const Config again = parse(yaml);
  EXPECT_EQ(again.run.name, config.run.name);
  EXPECT_EQ(again.optimizer.beta2, config.optimizer.beta2);
  EXPECT_EQ(again.model.rope.attention_factor, config.model.rope.attention_factor);
  EXPECT_EQ(again.data.validation.at(0).weight, 0.3);
}

TEST(ConfigText, ReadersOfYaml11TakeTheNumbersOfTheEffectiveConfigForNumbers) {
  const std::string yaml = to_yaml(
      parse(kMinimal + "model: {norm_epsilon: 1.5e-12}\n",
            {"optimizer.learning_rate=3e-5", "optimizer.weight_decay=1e+20", "model.position=rope",
             "model.rope.theta=5e5", "data.validation=[{path: x, weight: 1e-9}]"}));
  // The resolvers of PyYAML for int and float, in base ten.
  const std::regex number(R"([-+]?(0|[1-9][0-9_]*)|[-+]?[0-9][0-9_]*\.[0-9_]*([eE][-+][0-9]+)?)");
  std::istringstream lines(yaml);
  int num_numbers = 0;
  for (std::string line; std::getline(lines, line);) {
    const std::string value = line.substr(std::min(line.size(), line.find(": ") + 2));
    if (value.empty() || std::string("0123456789-+.").find(value[0]) == std::string::npos) continue;
    EXPECT_TRUE(std::regex_match(value, number)) << line;
    ++num_numbers;
  }
  EXPECT_GT(num_numbers, 25);
  EXPECT_NE(yaml.find("epsilon: 1.0e-08\n"), std::string::npos) << yaml;
  EXPECT_NE(yaml.find("weight: 1.0e-09}"), std::string::npos) << yaml;
}

TEST(ConfigText, ReadersOfYaml11TakeTheTextsOfTheEffectiveConfigAsTheyAre) {
  const Config config = parse(kMinimal + "run: {name: \"\\x85\\x9b \\u2028\\uFEFF é\"}\n");
  const std::string yaml = to_yaml(config);
  EXPECT_NE(yaml.find(R"(name: "\x85\x9b \u2028\ufeff é")"), std::string::npos) << yaml;
  EXPECT_EQ(parse(yaml).run.name, config.run.name);
}

TEST(ConfigText, TheEffectiveConfigHoldsEveryKeyThatHasAValue) {
  Config config = parse(kMinimal);
  const EffectiveConfig read = parse_config(to_yaml(config), "run.yaml", {}, 1);
  for (const Field& field : fields_of(config)) {
    if (text_of(field.value).empty()) continue;
    EXPECT_TRUE(read.origins.at(field.key).starts_with("run.yaml:")) << field.key;
  }
}

TEST(ConfigText, EachValueIsShownWithItsOrigin) {
  const std::vector<std::string> settings = {"run.seed=5"};
  const std::string yaml = to_yaml_with_origins(parse_config(
      kMinimal + "model:\n  family: llama\n  num_layers: 2\n", "run.yaml", settings, 1));
  for (const std::string line :
       {"  num_layers: 2  # run.yaml:7:15\n", "  norm: rmsnorm  # preset llama\n",
        "  hidden_size: 768  # default\n", "  seed: 5  # --set run.seed=5\n",
        "  num_kv_heads: 12  # from model.num_heads\n", "  decay_steps: 10  # from train.steps\n",
        "  warmup_steps: 1  # from schedule.decay_steps\n"}) {
    EXPECT_NE(yaml.find(line), std::string::npos) << line << "in\n" << yaml;
  }
  EXPECT_EQ(problems_of(yaml), "") << "comments and all, it is a valid file";
}

TEST(ConfigText, EveryKeyIsDescribedWithWhatItsDefaultFollowsFrom) {
  EffectiveConfig effective = parse_config(kMinimal, "run.yaml", {}, 1);
  for (const Field& field : fields_of(effective.config)) {
    EXPECT_FALSE(field.description.empty()) << field.key;
    const auto origin = effective.origins.find(field.key);
    const bool is_derived =
        origin != effective.origins.end() && origin->second.starts_with("from ");
    const bool is_described = !field.default_text.empty() && field.default_text != kRequired &&
                              !std::holds_alternative<std::optional<double>*>(field.value);
    EXPECT_EQ(is_derived, is_described) << field.key;
    if (!is_derived || !is_described) continue;
    EXPECT_NE(field.default_text.find(origin->second.substr(5)), std::string_view::npos)
        << field.key << " follows " << origin->second;
  }
}

}  // namespace
}  // namespace redspine::testing
