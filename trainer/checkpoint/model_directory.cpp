#include "trainer/checkpoint/model_directory.h"

#include <fmt/format.h>

#include <filesystem>

#include "tensor/error.h"
#include "trainer/checkpoint/loader.h"
#include "trainer/checkpoint/model_json.h"

namespace redspine {
namespace {

bool exists(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

}  // namespace

void check_is_model_directory(const std::string& directory) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(directory, ignored)) {
    throw ConfigError("", fmt::format("{}: is no directory", directory));
  }
  if (has_tensor_files(directory, "model")) return;
  const bool has_pickle = exists(directory + "/pytorch_model.bin") ||
                          exists(directory + "/pytorch_model.bin.index.json");
  throw ConfigError(
      "",
      fmt::format("{}: has no model.safetensors and no model.safetensors.index.json{}", directory,
                  has_pickle ? "; its pytorch_model.bin is a program to be run, not data: let "
                               "transformers save the model again (safe_serialization=True)"
                             : ""));
}

bool has_tensor_files(const std::string& directory, const std::string& stem) {
  const std::string single = fmt::format("{}/{}.safetensors", directory, stem);
  return exists(single) || exists(single + ".index.json");
}

ModelDirectory open_model(const std::string& directory) {
  check_is_model_directory(directory);
  const ModelConfig config = read_model_config(directory);
  ModelDirectory model{.config = config,
                       .tensors = stored_tensors(config),
                       .files = TensorFiles::open(directory, "model")};
  std::vector<std::string> names;
  for (const StoredTensor& tensor : model.tensors) names.push_back(tensor.name);
  model.files.adapt_to(names);
  check_tensors(model.files, model.tensors, StatePart::value);
  return model;
}

}  // namespace redspine
