#include "trainer/checkpoint/format/tensor_files.h"

#include <fmt/format.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <set>

#include "data/io/folders.h"
#include "tensor/error.h"

namespace redspine {
namespace {

using WeightMap = std::map<std::string, std::string>;  // tensor -> file

WeightMap read_index(const std::string& path) {
  const nlohmann::json index = nlohmann::json::parse(read_text(path), nullptr, false);
  const auto fail = [&path](const std::string& text) {
    throw ConfigError("", fmt::format("{}: {}", path, text));
  };
  if (!index.is_object() || !index.contains("weight_map") || !index["weight_map"].is_object()) {
    fail("is no index of safetensors files: it needs an object \"weight_map\"");
  }
  WeightMap map;
  for (const auto& [name, file] : index["weight_map"].items()) {
    if (!file.is_string()) fail(fmt::format("weight_map: {}: is no file name", name));
    const auto text = file.get<std::string>();
    if (text.empty() || text.find('/') != std::string::npos) {
      fail(
          fmt::format("weight_map: {}: names \"{}\"; legal: a file of this directory", name, text));
    }
    map[name] = text;
  }
  return map;
}

}  // namespace

TensorFiles TensorFiles::open(const std::string& directory, const std::string& stem) {
  TensorFiles result;
  result.directory_ = directory;
  const std::string single = fmt::format("{}/{}.safetensors", directory, stem);
  const std::string index = single + ".index.json";
  WeightMap map;
  std::set<std::string> names;
  if (::access(index.c_str(), F_OK) == 0) {
    map = read_index(index);
    for (const auto& [tensor, file] : map) names.insert(file);
  } else {
    names.insert(stem + ".safetensors");
  }
  result.files_.reserve(names.size());  // places point into it
  for (const std::string& name : names) {
    const SafetensorsFile& file =
        result.files_.emplace_back(SafetensorsFile::open(fmt::format("{}/{}", directory, name)));
    for (const SafetensorsEntry& entry : file.header().entries) {
      const auto [place, is_new] = result.tensors_.insert({entry.name, {&file, &entry}});
      if (!is_new) {
        throw ConfigError("", fmt::format("{}: tensor {}: is also in {}", file.path(), entry.name,
                                          place->second.file->path()));
      }
      const auto indexed = map.find(entry.name);
      if (map.empty() || (indexed != map.end() && indexed->second == name)) continue;
      throw ConfigError("", fmt::format("{}: tensor {}: {} does not list it here", file.path(),
                                        entry.name, index));
    }
  }
  for (const auto& [tensor, file] : map) {
    if (result.contains(tensor)) continue;
    throw ConfigError("", fmt::format("{}: tensor {}: is not in {}", index, tensor, file));
  }
  return result;
}

void TensorFiles::adapt_to(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    const std::size_t dot = name.find('.');
    if (dot == std::string::npos || contains(name)) continue;
    const auto without_model = tensors_.find(std::string_view(name).substr(dot + 1));
    if (without_model == tensors_.end()) continue;
    tensors_.insert({name, without_model->second});
    tensors_.erase(without_model);
  }
  const std::set<std::string> wanted(names.begin(), names.end());
  std::erase_if(tensors_, [&wanted](const auto& item) {
    const std::string& name = item.first;
    return !wanted.contains(name) &&
           (name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias") ||
            name.ends_with(".rotary_emb.inv_freq") || name == "lm_head.weight");
  });
}

const TensorFiles::Place& TensorFiles::at(std::string_view name) const {
  const auto found = tensors_.find(name);
  if (found == tensors_.end()) {
    throw ConfigError("", fmt::format("{}: tensor {}: is not there", directory_, name));
  }
  return found->second;
}

void TensorFiles::read(std::string_view name, std::int64_t first, std::span<float> values) const {
  const Place& place = at(name);
  place.file->read_floats(*place.entry, first, values);
}

}  // namespace redspine
