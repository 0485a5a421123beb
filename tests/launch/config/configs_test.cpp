// Every file of configs/ is valid, at the number of ranks that its own comment names.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

#include "launch/config/config_file.h"
#include "model/model_spec.h"

namespace redspine {
namespace {

std::vector<std::string> config_files() {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(REDSPINE_CONFIGS)) {
    if (entry.is_regular_file()) files.push_back(entry.path().string());
  }
  return files;
}

std::string text_of_file(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

/// The N of "mpirun -n N" in the file.
int num_ranks_in_comment(const std::string& path) {
  const std::string text = text_of_file(path);
  std::smatch match;
  return std::regex_search(text, match, std::regex("#   mpirun -n ([0-9]+) ")) ? std::stoi(match[1])
                                                                               : 0;
}

Config load(const std::string& name) {
  const std::string path = std::string(REDSPINE_CONFIGS) + "/" + name + ".yaml";
  return load_config(path, {}, num_ranks_in_comment(path)).config;
}

TEST(Configs, EveryFileIsValidAtTheNumberOfRanksThatItNames) {
  const std::vector<std::string> files = config_files();
  EXPECT_EQ(files.size(), 7U);
  for (const std::string& file : files) {
    const int num_ranks = num_ranks_in_comment(file);
    ASSERT_GT(num_ranks, 0) << file;
    EXPECT_NO_THROW(load_config(file, {}, num_ranks)) << file;
  }
}

TEST(Configs, ARunIsNamedLikeItsFile) {
  for (const std::string& file : config_files()) {
    const std::string name = std::filesystem::path(file).stem().string();
    EXPECT_EQ(load(name).run.name, name);
  }
}

TEST(Configs, TheSizesAreThoseOfTheirNames) {
  EXPECT_EQ(num_parameters(load("gpt2-small").model), 124'439'808);  // as transformers counts
  EXPECT_EQ(num_parameters(load("gpt2-medium").model), 354'823'168);
  EXPECT_EQ(num_parameters(load("gpt2-xl").model), 1'557'611'200);
  EXPECT_EQ(num_parameters(load("llama-1b-like").model), 1'235'814'400);
  EXPECT_EQ(load("hundred-layer").model.num_layers, 100);
  EXPECT_GT(num_parameters(load("hundred-layer").model), 5'000'000'000);
  EXPECT_EQ(load("hundred-layer-tiny").model.num_layers, 100);
  EXPECT_LT(num_parameters(load("quickstart").model), 3'000'000);
}

}  // namespace
}  // namespace redspine
