#include "trainer/checkpoint/save_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>

namespace redspine {

std::string stem_of(StatePart part) { return part == StatePart::value ? "model" : "optimizer"; }

// The largest first, each to the rank that has the least so far.
SavePlan::SavePlan(std::span<const StoredTensor> tensors, int num_ranks) {
  for (const StatePart part : kStateParts) {
    for (const StoredTensor& tensor : tensors) tensors_.push_back({part, &tensor, 0});
  }
  std::vector<std::size_t> by_size(tensors_.size());
  std::iota(by_size.begin(), by_size.end(), std::size_t{0});
  std::stable_sort(by_size.begin(), by_size.end(), [this](std::size_t a, std::size_t b) {
    return tensors_[a].bytes() > tensors_[b].bytes();
  });
  std::vector<std::int64_t> bytes_of_rank(static_cast<std::size_t>(num_ranks));
  for (const std::size_t index : by_size) {
    const auto least = std::min_element(bytes_of_rank.begin(), bytes_of_rank.end());
    tensors_[index].writer = static_cast<int>(least - bytes_of_rank.begin());
    *least += tensors_[index].bytes();
  }
  for (const char* stem : {"model", "optimizer"}) name_files(stem);
}

void SavePlan::name_files(const std::string& stem) {
  std::set<int> writers;
  for (const PlannedTensor& planned : tensors_) {
    if (stem_of(planned.part) == stem) writers.insert(planned.writer);
  }
  int number = 0;
  for (const int writer : writers) {
    files_[{stem, writer}] =
        fmt::format("{}-{:05}-of-{:05}.safetensors", stem, ++number, writers.size());
  }
}

std::int64_t SavePlan::total_bytes() const {
  std::int64_t total = 0;
  for (const PlannedTensor& planned : tensors_) total += planned.bytes();
  return total;
}

std::vector<SavePlan::Round> SavePlan::rounds(int first_writer, int num_writers,
                                              std::span<const StatePart> parts) const {
  const auto count = static_cast<std::size_t>(num_writers);
  std::vector<Round> rounds;
  std::vector<std::size_t> num_planned(count);  // [writer]
  for (const PlannedTensor& planned : tensors_) {
    const int writer = planned.writer - first_writer;
    if (writer < 0 || writer >= num_writers) continue;
    if (std::find(parts.begin(), parts.end(), planned.part) == parts.end()) continue;
    const auto index = static_cast<std::size_t>(writer);
    const std::size_t round = num_planned[index]++;
    if (round == rounds.size()) rounds.emplace_back(count);
    rounds[round][index] = &planned;
  }
  return rounds;
}

const std::string& SavePlan::file_of(const PlannedTensor& tensor) const {
  return files_.at({stem_of(tensor.part), tensor.writer});
}

std::string SavePlan::index_json(const std::string& stem) const {
  nlohmann::ordered_json map;
  std::int64_t bytes = 0;
  for (const PlannedTensor& planned : tensors_) {
    if (stem_of(planned.part) != stem) continue;
    map[planned.name()] = file_of(planned);
    bytes += planned.bytes();
  }
  const nlohmann::ordered_json index = {{"metadata", {{"total_size", bytes}}}, {"weight_map", map}};
  return index.dump(2) + "\n";
}

}  // namespace redspine
