// Two model directories side by side, tensor by tensor: by value, whatever their files, their names
// around the model or their element types are. Local.
#pragma once

#include <string>
#include <vector>

namespace redspine {

enum class Relation { equal, different, other_shape, only_first, only_second };

struct TensorDifference {
  std::string name;
  Relation relation;
  /// The largest |first - second|, and that over the largest |first| of the tensor. 0 for equal
  /// tensors, infinite where a number that is not finite meets another one.
  double max_absolute = 0.0;
  double max_relative = 0.0;
};

struct DirectoryDifference {
  std::vector<TensorDifference> tensors;  // of the model, then of the optimizer where both have one
  std::vector<std::string> settings;      // lines on config.json and training.json that differ
  std::vector<std::string> not_compared;  // what only one of the two has

  bool is_equal() const;
};

/// ConfigError where one of the two is no readable model.
DirectoryDifference compare_directories(const std::string& first, const std::string& second);

}  // namespace redspine
