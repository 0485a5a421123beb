// Who writes which tensor of a checkpoint into which file. Pure: every rank makes the same plan.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "model/transformers/stored_tensors.h"
#include "trainer/checkpoint/training_state.h"

namespace redspine {

/// One tensor of one part of the state.
struct PlannedTensor {
  StatePart part;
  const StoredTensor* tensor;
  int writer;  // world rank

  std::string name() const { return prefix_of(part) + tensor->name; }
  std::int64_t bytes() const { return tensor->shape.count() * std::int64_t{sizeof(float)}; }
};

class SavePlan {
 public:
  /// Spreads the tensors over `num_ranks` so that all write about equally many bytes. Borrows
  /// `tensors`.
  SavePlan(std::span<const StoredTensor> tensors, int num_ranks);

  /// All, by part and in the order of the network.
  const std::vector<PlannedTensor>& tensors() const { return tensors_; }
  std::int64_t total_bytes() const;

  /// What the ranks [first, first + count) write of some parts, in rounds of a tensor each, so that
  /// they write at the same time: [round][rank - first], null for nothing.
  using Round = std::vector<const PlannedTensor*>;
  std::vector<Round> rounds(int first_writer, int num_writers,
                            std::span<const StatePart> parts) const;
  /// "model-00002-of-00004.safetensors", or "optimizer-...". Ranks that write none are not counted.
  const std::string& file_of(const PlannedTensor& tensor) const;
  /// The index of the files that begin with `stem` ("model" or "optimizer"), as JSON.
  std::string index_json(const std::string& stem) const;

 private:
  void name_files(const std::string& stem);

  std::vector<PlannedTensor> tensors_;
  std::map<std::pair<std::string, int>, std::string> files_;  // by stem and writer
};

/// "model" or "optimizer": which files a part goes to.
std::string stem_of(StatePart part);

}  // namespace redspine
