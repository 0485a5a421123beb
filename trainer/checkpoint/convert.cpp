#include "trainer/checkpoint/convert.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "data/io/file.h"
#include "data/io/folders.h"
#include "tensor/error.h"
#include "trainer/checkpoint/format/manifest.h"
#include "trainer/checkpoint/format/model_json.h"
#include "trainer/checkpoint/model_directory.h"
#include "trainer/checkpoint/partial_folder.h"

namespace redspine {
namespace {

constexpr const char* kModelFile = "model.safetensors";
constexpr const char* kConfigFile = "config.json";

// What users of the model need besides it.
constexpr const char* kCompanions[] = {"generation_config.json",
                                       "tokenizer.json",
                                       "tokenizer_config.json",
                                       "tokenizer.model",
                                       "vocab.json",
                                       "merges.txt",
                                       "added_tokens.json",
                                       "special_tokens_map.json",
                                       "chat_template.jinja"};

// Keys of a source's config.json that describe its vocabulary, which ours has no words for.
constexpr const char* kKeptKeys[] = {"bos_token_id", "eos_token_id", "pad_token_id"};

std::string_view torch_name(ElementType type) {
  switch (type) {
    case ElementType::f16:
      return "float16";
    case ElementType::bf16:
      return "bfloat16";
    default:
      return "float32";
  }
}

std::string normal_path(const std::string& path) {
  std::string text = std::filesystem::path(path).lexically_normal().string();
  while (text.size() > 1 && text.ends_with('/')) text.pop_back();
  return text;
}

void check_output(const std::string& output) {
  std::error_code failure;
  const PathKind kind = look_at(output, "--output");
  if (kind == PathKind::other ||
      (kind == PathKind::folder && !std::filesystem::is_empty(output, failure))) {
    throw ConfigError("--output", fmt::format("{}: is there already; legal: a new directory or an "
                                              "empty one",
                                              output));
  }
  prepare_output(output, "--output");
}

std::string config_json(const std::string& source, const ModelConfig& config, ElementType type) {
  const auto theirs =
      nlohmann::ordered_json::parse(read_text(source + "/" + kConfigFile), nullptr, false);
  auto ours = nlohmann::ordered_json::parse(model_to_json(config));
  ours["torch_dtype"] = torch_name(type);
  for (const char* key : kKeptKeys) {
    if (theirs.contains(key)) ours[key] = theirs[key];
  }
  return ours.dump(2) + "\n";
}

/// `bytes` are those of `values` where the types are the same.
void encode(std::vector<std::byte>& bytes, const std::vector<float>& values, ElementType type) {
  bytes.resize(values.size() * static_cast<std::size_t>(bytes_of(type)));
  if (type == ElementType::f32) {
    if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
    return;
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::uint16_t half = type == ElementType::f16 ? to_f16(values[i]) : to_bf16(values[i]);
    std::memcpy(bytes.data() + 2 * i, &half, sizeof(half));
  }
}

void check_finite(const std::vector<float>& values, const TensorFiles::Place& place) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (std::isfinite(values[i])) continue;
    throw ConfigError("", fmt::format("{}: tensor {}: element {} is {}; legal: finite numbers",
                                      place.file->path(), place.entry->name, i, values[i]));
  }
}

void check_fits(const std::vector<std::byte>& bytes, const std::vector<float>& values,
                const TensorFiles::Place& place, ElementType type) {
  std::vector<float> back(values.size());
  widen(back, bytes, type);
  for (std::size_t i = 0; i < back.size(); ++i) {
    if (std::isfinite(back[i])) continue;
    throw ConfigError(
        "--dtype", fmt::format("{}: tensor {}: element {} is {}, too large for {}",
                               place.file->path(), place.entry->name, i, values[i], name_of(type)));
  }
}

class Converter {
 public:
  Converter(const Conversion& conversion, const ModelDirectory& model, std::string folder)
      : conversion_(conversion), model_(model), folder_(std::move(folder)) {}

  ConversionReport run() {
    write_tensors();
    add(kConfigFile,
        config_json(conversion_.source, model_.config, type_of(model_.tensors.front())));
    for (const char* name : kCompanions) {
      const std::string path = conversion_.source + "/" + name;
      if (!exists(path, "")) continue;
      add(name, read_text(path));
      report_.copied.emplace_back(name);
    }
    if (conversion_.writes_manifest) {
      sync_folder(folder_);  // no name may come after the manifest's
      write_text(folder_ + "/" + kManifestName, manifest_to_json(manifest_));
    }
    sync_folder(folder_);
    report_.config = model_.config;
    return report_;
  }

 private:
  ElementType type_of(const StoredTensor& tensor) const {
    return conversion_.type.value_or(model_.files.at(tensor.name).entry->type);
  }

  void write_tensors() {
    std::vector<SafetensorsTensor> layout;
    for (const StoredTensor& tensor : model_.tensors) {
      layout.push_back({tensor.name, type_of(tensor), model_.files.at(tensor.name).entry->shape});
    }
    SafetensorsWriter writer(folder_ + "/" + kModelFile, layout);
    ManifestFile& file = manifest_.files[kModelFile];
    std::vector<float> values;
    std::vector<std::byte> bytes;
    for (const SafetensorsTensor& tensor : layout) {
      const TensorFiles::Place& place = model_.files.at(tensor.name);
      values.resize(static_cast<std::size_t>(place.entry->count()));
      place.file->read_floats(*place.entry, 0, values);
      check_finite(values, place);
      encode(bytes, values, tensor.type);
      check_fits(bytes, values, place, tensor.type);
      writer.write(bytes);
      file.tensors[tensor.name] =
          hash_text({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
      ++report_.num_tensors;
      report_.num_parameters += place.entry->count();
    }
    writer.finish();
    file.bytes = writer.file_bytes();
    file.hash = hash_text(writer.header_bytes());
    report_.bytes = writer.file_bytes();
  }

  void add(const std::string& name, const std::string& text) {
    write_text(folder_ + "/" + name, text);
    manifest_.files[name] = {
        .bytes = static_cast<std::int64_t>(text.size()), .hash = hash_text(text), .tensors = {}};
  }

  const Conversion& conversion_;
  const ModelDirectory& model_;
  std::string folder_;
  Manifest manifest_;
  ConversionReport report_;
};

}  // namespace

ConversionReport convert_model(const Conversion& conversion) {
  const std::string output = normal_path(conversion.output);
  check_output(output);
  const ModelDirectory model = open_model(conversion.source);
  PartialFolder folder(output, "--output");
  ConversionReport report = Converter(conversion, model, folder.path()).run();
  folder.publish();
  return report;
}

}  // namespace redspine
