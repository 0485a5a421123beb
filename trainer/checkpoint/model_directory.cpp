#include "trainer/checkpoint/model_directory.h"

#include <fmt/format.h>

#include <filesystem>
#include <string_view>

#include "data/io/folders.h"
#include "tensor/error.h"
#include "trainer/checkpoint/format/model_json.h"
#include "trainer/checkpoint/loader.h"

namespace redspine {
namespace {

bool exists(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

// Not so of a path that the system does not follow: over a link to itself, of too long a name.
bool is_absent(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::status(path, ignored).type() == std::filesystem::file_type::not_found;
}

// What a file of a model is that is not read.
std::string form_hint(const std::string& name) {
  if (name.ends_with(".gguf")) {
    return fmt::format(
        "; {} is in llama.cpp's form, which is not read: take the model's "
        "safetensors files and config.json",
        name);
  }
  if (name.ends_with(".safetensors")) return "; legal: the folder that it lies in";
  for (const char* ending : {".bin", ".bin.index.json", ".pt", ".pth", ".ckpt"}) {
    if (!name.ends_with(ending)) continue;
    return fmt::format(
        "; {} is a program to be run, not data: let transformers save the model "
        "again (safe_serialization=True)",
        name);
  }
  return "";
}

// "gpt2" or "org/model", where the folder that it would lie in is not there either.
bool may_be_hub_name(const std::string& path) {
  const std::string_view first = std::string_view(path).substr(0, path.find('/'));
  const std::string_view rest = std::string_view(path).substr(first.size());
  constexpr const char* kLegal =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
  return !first.empty() && first.front() != '.' && rest != "/" &&
         first.find_first_not_of(kLegal) == std::string_view::npos &&
         (rest.empty() || rest.find_first_not_of(kLegal, 1) == std::string_view::npos) &&
         is_absent(std::string(first));
}

}  // namespace

void check_is_model_directory(const std::string& directory) {
  const std::string problem = directory_problem(directory);
  if (!problem.empty()) {
    std::string hint = form_hint(directory);
    if (hint.empty() && is_absent(directory) && may_be_hub_name(directory)) {
      hint = fmt::format(
          "; a model of the Hugging Face hub is not fetched from here: `hf download "
          "{} --local-dir DIR` does, then give DIR",
          directory);
    }
    throw ConfigError("", fmt::format("{}: {}{}", directory, problem, hint));
  }
  if (has_tensor_files(directory, "model")) return;
  std::string hint;
  for (const std::string& name : names_in(directory)) {
    if (name.ends_with(".gguf") || name.starts_with("pytorch_model.bin")) {
      hint = form_hint(name);
    }
  }
  throw ConfigError(
      "", fmt::format("{}: has no model.safetensors and no model.safetensors.index.json{}",
                      directory, hint));
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
