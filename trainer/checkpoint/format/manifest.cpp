#include "trainer/checkpoint/format/manifest.h"

#include <fmt/format.h>
#include <unistd.h>
#include <xxhash.h>

#include "data/io/folders.h"
#include "trainer/checkpoint/format/json_reader.h"

namespace redspine {
namespace {

constexpr std::int64_t kFormatVersion = 1;

std::string checked_hash(const JsonReader& object, const std::string& key) {
  constexpr std::size_t kDigits = 32;
  std::string text = object.string(key);
  if (text.size() != kDigits || text.find_first_not_of("0123456789abcdef") != std::string::npos) {
    object.fail(key, text, "32 hexadecimal digits");
  }
  return text;
}

std::string digits_of(const XXH128_hash_t& hash) {
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

}  // namespace

std::string hash_text(std::string_view bytes) {
  return digits_of(XXH3_128bits(bytes.data(), bytes.size()));
}

ContentHash::ContentHash() : state_(XXH3_createState()) { XXH3_128bits_reset(state_.get()); }
void ContentHash::Free::operator()(XXH3_state_s* state) const { XXH3_freeState(state); }

void ContentHash::add(std::span<const std::byte> bytes) {
  XXH3_128bits_update(state_.get(), bytes.data(), bytes.size());
}

std::string ContentHash::text() const { return digits_of(XXH3_128bits_digest(state_.get())); }

std::int64_t Manifest::total_bytes() const {
  std::int64_t total = 0;
  for (const auto& [name, file] : files) total += file.bytes;
  return total;
}

std::string manifest_to_json(const Manifest& manifest) {
  nlohmann::ordered_json files;
  for (const auto& [name, file] : manifest.files) {
    nlohmann::ordered_json entry = {{"bytes", file.bytes}, {"xxh3_128", file.hash}};
    if (!file.tensors.empty()) entry["tensors"] = file.tensors;
    files[name] = std::move(entry);
  }
  const nlohmann::ordered_json json = {{"format_version", kFormatVersion}, {"files", files}};
  return json.dump(1) + "\n";
}

Manifest manifest_from_json(std::string_view json, const std::string& path) {
  const JsonReader reader(json, path);
  const std::int64_t version = reader.integer("format_version");
  if (version != kFormatVersion) {
    reader.fail("format_version", fmt::format("{}", version), fmt::format("{}", kFormatVersion));
  }
  Manifest manifest;
  const JsonReader files = reader.object("files");
  for (const std::string& name : files.keys()) {
    if (name.empty() || name.find('/') != std::string::npos) {
      files.fail(name, "a path", "a file of this directory");
    }
    const JsonReader file = files.object(name);
    ManifestFile& entry = manifest.files[name];
    entry.bytes = file.integer("bytes");
    entry.hash = checked_hash(file, "xxh3_128");
    if (!file.contains("tensors")) continue;
    const JsonReader tensors = file.object("tensors");
    for (const std::string& tensor : tensors.keys()) {
      entry.tensors[tensor] = checked_hash(tensors, tensor);
    }
  }
  return manifest;
}

bool has_manifest(const std::string& directory) {
  return ::access((directory + "/" + kManifestName).c_str(), F_OK) == 0;
}

Manifest read_manifest(const std::string& directory) {
  check_is_directory(directory);
  const std::string path = directory + "/" + kManifestName;
  if (!has_manifest(directory)) {
    throw ConfigError(
        "", fmt::format("{}: is no complete checkpoint: it has no {}", directory, kManifestName));
  }
  return manifest_from_json(read_text(path), path);
}

}  // namespace redspine
