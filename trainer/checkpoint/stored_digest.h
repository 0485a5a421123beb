// The digest of a tensor as it is stored: that of the parameters in it, whoever wrote it. Local.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "model/transformers/stored_tensors.h"
#include "tensor/digest.h"
#include "trainer/checkpoint/training_state.h"

namespace redspine {

/// A tensor of a state under its name in the files.
struct NamedTensor {
  StatePart part;
  const StoredTensor* tensor;
};

/// All tensors of a checkpoint of a model, or none.
class StoredTensors {
 public:
  StoredTensors() = default;
  explicit StoredTensors(const ModelConfig& config);

  /// Null for a name that is none of theirs.
  const NamedTensor* find(const std::string& name) const;
  /// Of each part.
  std::size_t num_tensors() const { return tensors_.size(); }

 private:
  std::vector<StoredTensor> tensors_;
  std::unordered_map<std::string, NamedTensor> named_;  // into tensors_
};

class StoredDigest {
 public:
  /// `tensor` outlives it.
  StoredDigest(const StoredTensor& tensor, StatePart part);

  /// Some elements, from `first` on in the order in which they are stored. Each is given once.
  void add(std::int64_t first, std::span<const float> values);
  const Digest& sum() const { return sum_; }

 private:
  void add_in_row(std::int64_t row, std::int64_t column, std::span<const float> values);

  const StoredTensor& tensor_;
  std::vector<DigestKey> keys_;  // of its parts
  Digest sum_;
};

}  // namespace redspine
