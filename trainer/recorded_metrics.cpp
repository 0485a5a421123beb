#include "trainer/recorded_metrics.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tensor/error.h"
#include "tensor/printable.h"
#include "trainer/metrics.h"

namespace redspine {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kWeightsDigest = "weights_digest";

// Where a run's speed begins, which no replay has.
constexpr const char* kFirstTime = "seconds";

std::string without_times(const std::string& line) {
  return line.substr(0, line.find(fmt::format(",\"{}\":", kFirstTime)));
}

void add_difference(std::string& text, const std::string& key, const Json& recorded,
                    const Json& replayed) {
  if (recorded.dump() == replayed.dump()) return;
  if (!text.empty()) text += "; ";
  text += fmt::format("{} is {} in metrics.jsonl, {} in the replay", key,
                      one_line(recorded.dump(), kMaxExcerpt), replayed.dump());
}

}  // namespace

RecordedMetrics::RecordedMetrics(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw ConfigError("", fmt::format("{}: {}", path, std::strerror(errno)));
  for (std::string line; std::getline(file, line);) {
    const Json json = Json::parse(line, nullptr, false);
    if (!json.is_object() || !json.contains("kind") || json["kind"] != "train") continue;
    if (!json.contains("step") || !json["step"].is_number_integer()) continue;
    lines_[json["step"].get<std::int64_t>()] = line;
  }
}

std::string RecordedMetrics::differences(const StepReport& replayed) const {
  const std::string& line = lines_.at(replayed.step);
  const Json recorded = Json::parse(line);
  std::string expected = training_line(replayed);
  if (!recorded.contains(kWeightsDigest)) {
    const std::string pair =
        fmt::format(R"("{}":"{}",)", kWeightsDigest, replayed.weights_digest.text());
    expected.erase(expected.find(pair), pair.size());
  }
  const Json mine = Json::parse(expected);
  std::string text;
  for (const auto& [key, value] : mine.items()) {
    if (key == kFirstTime) break;
    add_difference(text, key, recorded.contains(key) ? recorded[key] : Json(nullptr), value);
  }
  // Numbers are written as their shortest text: another one is somebody else's.
  if (text.empty() && without_times(line) != without_times(expected)) {
    text = fmt::format("{} is not how a run writes it", one_line(without_times(line)));
  }
  return text;
}

std::string RecordedMetrics::differences(std::int64_t step, const Digest& weights) const {
  const Json recorded = Json::parse(lines_.at(step));
  std::string text;
  if (recorded.contains(kWeightsDigest)) {
    add_difference(text, kWeightsDigest, recorded[kWeightsDigest], weights.text());
  }
  return text;
}

}  // namespace redspine
