// manifest.json: what a checkpoint consists of, to the last bit. Written last: a directory without
// one is incomplete. Plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>

struct XXH3_state_s;

namespace redspine {

/// xxh3-128 in 32 hexadecimal digits.
std::string hash_text(std::string_view bytes);

/// The same of bytes that come in pieces.
class ContentHash {
 public:
  ContentHash();

  void add(std::span<const std::byte> bytes);
  std::string text() const;

 private:
  struct Free {
    void operator()(XXH3_state_s* state) const;
  };
  std::unique_ptr<XXH3_state_s, Free> state_;
};

struct ManifestFile {
  std::int64_t bytes = 0;
  /// Of the whole file; for safetensors of the header alone (length word and JSON).
  std::string hash;
  std::map<std::string, std::string> tensors;  // name -> hash of its stored bytes

  bool operator==(const ManifestFile&) const = default;
};

struct Manifest {
  std::map<std::string, ManifestFile> files;  // all but manifest.json

  std::int64_t total_bytes() const;
  bool operator==(const Manifest&) const = default;
};

inline constexpr const char* kManifestName = "manifest.json";

std::string manifest_to_json(const Manifest& manifest);
/// ConfigError names `path` and what is wrong.
Manifest manifest_from_json(std::string_view json, const std::string& path);
bool has_manifest(const std::string& directory);
/// ConfigError says that the checkpoint is incomplete where there is none, and where there is no
/// directory.
Manifest read_manifest(const std::string& directory);

}  // namespace redspine
