#include "tests/support/model_files.h"

#include <fmt/format.h>

#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "data/io/folders.h"
#include "model/transformers/stored_tensors.h"
#include "tests/support/tiny_model.h"
#include "trainer/checkpoint/format/model_json.h"
#include "trainer/checkpoint/format/safetensors.h"
#include "trainer/checkpoint/format/tensor_files.h"

namespace redspine::testing {
namespace {

std::string random_bytes(std::int64_t count, ElementType type, std::uint32_t& state) {
  std::string bytes;
  for (std::int64_t i = 0; i < count; ++i) {
    state = state * 1664525U + 1013904223U;
    const float value = (static_cast<float>(state >> 8) / static_cast<float>(1 << 24) - 0.5F) / 4;
    if (type == ElementType::f32) {
      bytes.append(reinterpret_cast<const char*>(&value), sizeof(value));
    } else {
      const std::uint16_t half = type == ElementType::f16 ? to_f16(value) : to_bf16(value);
      bytes.append(reinterpret_cast<const char*>(&half), sizeof(half));
    }
  }
  return bytes;
}

struct FileContent {
  std::vector<SafetensorsTensor> tensors;
  std::string bytes;
};

}  // namespace

TensorBytes write_model(const std::string& directory, const ModelFiles& model) {
  std::filesystem::create_directories(directory);
  write_text(directory + "/config.json", model_to_json(model.config));
  TensorBytes all;
  std::vector<FileContent> files(static_cast<std::size_t>(model.num_files));
  std::uint32_t state = 7;
  std::size_t number = 0;
  for (const StoredTensor& tensor : stored_tensors(model.config)) {
    FileContent& file = files[number++ % files.size()];
    std::string name = tensor.name;
    if (model.names == Names::of_the_hub) name = name.substr(name.find('.') + 1);
    const std::string bytes = random_bytes(tensor.shape.count(), model.type, state);
    file.tensors.push_back({name, model.type, tensor.shape.dims()});
    file.bytes += bytes;
    all[tensor.name] = bytes;
  }
  if (model.names == Names::of_the_hub) {
    for (std::int64_t layer = 0; layer < model.config.num_layers; ++layer) {
      files.front().tensors.push_back(
          {fmt::format("h.{}.attn.bias", layer), ElementType::u8, {1, 1, 4, 4}});
      files.front().bytes += std::string(16, '\1');
    }
  }
  nlohmann::json map;
  for (std::size_t i = 0; i < files.size(); ++i) {
    const std::string name = model.num_files == 1
                                 ? "model.safetensors"
                                 : fmt::format("model-{}-of-{}.safetensors", i + 1, files.size());
    SafetensorsWriter writer(fmt::format("{}/{}", directory, name), files[i].tensors);
    writer.write(std::as_bytes(std::span(files[i].bytes)));
    writer.finish();
    for (const SafetensorsTensor& tensor : files[i].tensors) map[tensor.name] = name;
  }
  if (model.num_files > 1) {
    write_text(directory + "/model.safetensors.index.json",
               nlohmann::json({{"weight_map", map}}).dump());
  }
  return all;
}

TensorBytes read_model_bytes(const std::string& directory) {
  TensorBytes all;
  const TensorFiles files = TensorFiles::open(directory, "model");
  for (const auto& [name, place] : files.tensors()) {
    std::string bytes(static_cast<std::size_t>(place.entry->bytes()), '\0');
    place.file->read_bytes(*place.entry, 0, std::as_writable_bytes(std::span(bytes)));
    all[name] = bytes;
  }
  return all;
}

ModelConfig small_model(Family family, std::int64_t vocab_size) {
  return tiny_model(family, {.vocab_size = vocab_size, .max_sequence_length = 24});
}

}  // namespace redspine::testing
