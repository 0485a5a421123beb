#include "trainer/checkpoint/data_changes.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace redspine {
namespace {

using Files = std::vector<FileFingerprint>;

bool is_same_content(const FileFingerprint& a, const FileFingerprint& b) {
  return a.num_bytes == b.num_bytes && a.hash == b.hash;
}

class Comparison {
 public:
  Comparison(std::string key, std::string effect)
      : key_(std::move(key)), effect_(std::move(effect)) {}

  void compare(const Files& before, const Files& after) {
    const bool is_unknown = before.empty() || after.empty();
    if (is_unknown ||
        std::equal(before.begin(), before.end(), after.begin(), after.end(), is_same_content)) {
      return;
    }
    std::map<std::string, FileFingerprint> known;
    for (const FileFingerprint& file : before) known.insert({file.path, file});
    std::map<std::string, FileFingerprint> lost = known;
    Files found;
    for (const FileFingerprint& file : after) {
      const auto old = known.find(file.path);
      if (old == known.end()) {
        found.push_back(file);
      } else if (lost.erase(file.path) > 0 && !is_same_content(old->second, file)) {
        report_content(old->second, file);
      }
    }
    for (const FileFingerprint& file : found) {
      const auto old = std::find_if(lost.begin(), lost.end(), [&](const auto& other) {
        return is_same_content(other.second, file);
      });
      if (old == lost.end()) {
        report(file.path, fmt::format("none -> {} bytes", file.num_bytes), "added");
      } else {
        report(old->first, "-> " + file.path, "renamed");
        lost.erase(old);
      }
    }
    for (const auto& [path, file] : lost) {
      report(path, fmt::format("{} bytes -> none", file.num_bytes), "removed");
    }
  }

  std::vector<std::string> lines() && { return std::move(lines_); }

 private:
  /// A file that keeps its name.
  void report_content(const FileFingerprint& before, const FileFingerprint& after) {
    if (before.num_bytes == after.num_bytes) {
      report(after.path, fmt::format("hash {} -> {}", before.hash, after.hash), "replaced");
    } else {
      report(after.path, fmt::format("{} bytes -> {} bytes", before.num_bytes, after.num_bytes),
             before.num_bytes < after.num_bytes ? "grown" : "shrunk");
    }
  }

  void report(const std::string& path, const std::string& change, const char* word) {
    lines_.push_back(fmt::format("{}: {}: {} ({}: {})", key_, path, change, word, effect_));
  }

  std::string key_;
  std::string effect_;
  std::vector<std::string> lines_;
};

}  // namespace

std::vector<std::string> changed_data(const DataFingerprint& before, const DataFingerprint& after) {
  Comparison training("data.train", "other samples come next");
  training.compare(before.training, after.training);
  Comparison validation("data.validation", "the validation loss is that of other tokens");
  validation.compare(before.validation, after.validation);
  std::vector<std::string> lines = std::move(training).lines();
  std::vector<std::string> more = std::move(validation).lines();
  lines.insert(lines.end(), more.begin(), more.end());
  return lines;
}

}  // namespace redspine
