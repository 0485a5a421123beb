#include "trainer/checkpoint/stored_digest.h"

#include <algorithm>

#include "trainer/checkpoint/state_digests.h"

namespace redspine {

StoredTensors::StoredTensors(const ModelConfig& config) : tensors_(stored_tensors(config)) {
  for (const StatePart part : kStateParts) {
    for (const StoredTensor& tensor : tensors_) {
      named_[prefix_of(part) + tensor.name] = {.part = part, .tensor = &tensor};
    }
  }
}

const NamedTensor* StoredTensors::find(const std::string& name) const {
  const auto found = named_.find(name);
  return found == named_.end() ? nullptr : &found->second;
}

StoredDigest::StoredDigest(const StoredTensor& tensor, StatePart part) : tensor_(tensor) {
  for (const StoredPart& stored : tensor.parts) {
    keys_.push_back(digest_key(part, stored.parameter, stored.shape));
  }
}

void StoredDigest::add(std::int64_t first, std::span<const float> values) {
  // Stored as it is, row after row.
  if (keys_.size() == 1 && tensor_.orientation == Orientation::as_is) {
    sum_ += digest_of(values, keys_.front(), first);
    return;
  }
  const std::int64_t width = tensor_.num_columns();
  while (!values.empty()) {
    const std::int64_t column = first % width;
    const std::int64_t count = std::min(width - column, std::ssize(values));
    add_in_row(first / width, column, values.first(static_cast<std::size_t>(count)));
    first += count;
    values = values.subspan(static_cast<std::size_t>(count));
  }
}

void StoredDigest::add_in_row(std::int64_t row, std::int64_t column,
                              std::span<const float> values) {
  const Range given{column, column + std::ssize(values)};
  for (std::size_t i = 0; i < keys_.size(); ++i) {
    const StoredPart& part = tensor_.parts[i];
    const Range columns{std::max(given.begin, part.columns.begin),
                        std::min(given.end, part.columns.end)};
    if (columns.size() <= 0) continue;
    const auto of_part = values.subspan(static_cast<std::size_t>(columns.begin - given.begin),
                                        static_cast<std::size_t>(columns.size()));
    const std::int64_t within = columns.begin - part.columns.begin;
    if (tensor_.orientation == Orientation::transposed) {
      const std::int64_t num_columns = part.shape[1];  // of the parameter: the stored rows
      sum_ += digest_of(of_part, keys_[i], within * num_columns + row, num_columns);
    } else {
      sum_ += digest_of(of_part, keys_[i], row * part.columns.size() + within);
    }
  }
}

}  // namespace redspine
