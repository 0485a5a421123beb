#include "tests/support/tampering.h"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <stdexcept>
#include <vector>

#include "data/io/folders.h"
#include "trainer/checkpoint/format/manifest.h"
#include "trainer/checkpoint/format/safetensors.h"
#include "trainer/checkpoint/format/training_json.h"
#include "trainer/checkpoint/summary.h"

namespace redspine::testing {
namespace {

namespace fs = std::filesystem;

void write_manifest(const std::string& directory, const Manifest& manifest) {
  replace_text(directory + "/" + kManifestName, manifest_to_json(manifest));
}

void write_record(const std::string& directory, const TrainingRecord& record) {
  const std::string text = training_to_json(record);
  replace_text(directory + "/training.json", text);
  Manifest manifest = read_manifest(directory);
  manifest.files["training.json"] = {
      .bytes = static_cast<std::int64_t>(text.size()), .hash = hash_text(text), .tensors = {}};
  write_manifest(directory, manifest);
}

void change_value(const std::string& path, std::int64_t offset) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  float value = 0.0F;
  file.seekg(offset).read(reinterpret_cast<char*>(&value), sizeof(value));
  value = std::nextafter(value, std::numeric_limits<float>::infinity());
  file.seekp(offset).write(reinterpret_cast<const char*>(&value), sizeof(value));
  if (!file.flush()) throw std::runtime_error("cannot change " + path);
}

std::string hash_of(const SafetensorsFile& file, const SafetensorsEntry& entry) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(entry.bytes()));
  file.read_bytes(entry, 0, bytes);
  ContentHash hash;
  hash.add(bytes);
  return hash.text();
}

}  // namespace

void change_by_one_ulp(const std::string& directory, const std::string& tensor,
                       std::int64_t element) {
  for (const auto& item : fs::directory_iterator(directory)) {
    if (item.path().extension() != ".safetensors") continue;
    const std::string path = item.path();
    const SafetensorsFile file = SafetensorsFile::open(path);
    const SafetensorsEntry* entry = file.find(tensor);
    if (entry == nullptr) continue;
    change_value(path, static_cast<std::int64_t>(file.header_bytes().size()) + entry->begin +
                           element * static_cast<std::int64_t>(sizeof(float)));
    Manifest manifest = read_manifest(directory);
    manifest.files.at(item.path().filename()).tensors.at(tensor) = hash_of(file, *entry);
    write_manifest(directory, manifest);
    return;
  }
  throw std::runtime_error(directory + " has no tensor " + tensor);
}

void record_digests_anew(const std::string& directory) {
  const CheckpointSummary summary = summarize(directory);
  TrainingRecord record = *summary.training;
  for (const TensorSummary& tensor : summary.tensors) {
    record.digests->tensors.at(tensor.name) = *tensor.digest;
  }
  record.digests->weights = *summary.weights_digest;
  write_record(directory, record);
}

void forget_digests(const std::string& directory) {
  TrainingRecord record = read_training_record(directory);
  record.digests.reset();
  write_record(directory, record);
}

}  // namespace redspine::testing
