#include "data/io/own_files.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <system_error>

#include "data/io/partial_file.h"

namespace redspine {
namespace {

namespace fs = std::filesystem;

/// The folder of `path`, absolute and without links, as far as it exists.
std::string folder_of(const std::string& path) {
  std::error_code code;
  const fs::path parent = fs::path(path).parent_path();
  return fs::weakly_canonical(parent.empty() ? fs::path(".") : parent, code).string();
}

}  // namespace

OwnFiles::Place OwnFiles::place_of(const std::string& path) {
  return {.folder = folder_of(path), .name = fs::path(path).filename().string()};
}

void OwnFiles::add(const std::string& path) {
  files_.push_back(place_of(path));
  files_.push_back(place_of(partial(path)));
}

void OwnFiles::add_shards(const std::string& prefix) { shards_.push_back(place_of(prefix)); }

bool OwnFiles::contains(const std::string& path) const {
  const std::string name = fs::path(path).filename().string();
  // By the name first: what a folder really is takes some calls.
  const auto is_there = [&](const Place& place) { return place.folder == folder_of(path); };
  const auto is_file = [&](const Place& file) { return file.name == name && is_there(file); };
  const auto is_shard = [&](const Place& shards) {
    return (is_shard_name(name, shards.name, ".bin") ||
            is_shard_name(name, shards.name, partial(".bin"))) &&
           is_there(shards);
  };
  return std::any_of(files_.begin(), files_.end(), is_file) ||
         std::any_of(shards_.begin(), shards_.end(), is_shard);
}

bool is_shard_name(std::string_view name, std::string_view stem, std::string_view ending) {
  if (!name.starts_with(stem) || !name.ends_with(ending) ||
      name.size() < stem.size() + 1 + ending.size() || name[stem.size()] != '_') {
    return false;
  }
  const std::string_view number =
      name.substr(stem.size() + 1, name.size() - stem.size() - 1 - ending.size());
  const auto is_digit = [](unsigned char c) { return std::isdigit(c) != 0; };
  return number.size() >= 6 && std::all_of(number.begin(), number.end(), is_digit);
}

}  // namespace redspine
