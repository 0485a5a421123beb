#include "trainer/checkpoint/summary.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "data/io/file.h"
#include "trainer/checkpoint/format/model_json.h"
#include "trainer/checkpoint/model_directory.h"

namespace redspine {
namespace {

constexpr std::int64_t kElementsAtOnce = std::int64_t{1} << 20;

double sum_of_squares(const TensorFiles::Place& place) {
  std::vector<float> values;
  double sum = 0.0;
  for (std::int64_t first = 0; first < place.entry->count(); first += kElementsAtOnce) {
    values.resize(
        static_cast<std::size_t>(std::min(kElementsAtOnce, place.entry->count() - first)));
    place.file->read_floats(*place.entry, first, values);
    for (const float value : values) sum += static_cast<double>(value) * static_cast<double>(value);
  }
  return sum;
}

/// Up to and with the number of the block; around the blocks, all but what kind of weight it is.
std::string layer_of(const std::string& name) {
  for (std::size_t begin = 0; begin < name.size();) {
    const std::size_t end = std::min(name.find('.', begin), name.size());
    const bool is_number = end > begin && name.find_first_not_of("0123456789", begin) >= end;
    if (is_number) return name.substr(0, end);
    begin = end + 1;
  }
  return name.substr(0, name.rfind('.'));
}

/// The order of the network, then whatever else there is.
std::vector<std::string> ordered_names(const ModelConfig& config, TensorFiles& files) {
  std::vector<std::string> expected;
  for (const StoredTensor& tensor : stored_tensors(config)) expected.push_back(tensor.name);
  files.adapt_to(expected);
  std::vector<std::string> names;
  std::copy_if(expected.begin(), expected.end(), std::back_inserter(names),
               [&files](const std::string& name) { return files.contains(name); });
  std::sort(expected.begin(), expected.end());
  for (const auto& [name, place] : files.tensors()) {
    if (!std::binary_search(expected.begin(), expected.end(), name)) names.push_back(name);
  }
  return names;
}

void add_to_layer(std::vector<LayerSummary>& layers, const TensorSummary& tensor) {
  const std::string name = layer_of(tensor.name);
  if (layers.empty() || layers.back().name != name) layers.push_back({name, 0, 0.0});
  LayerSummary& layer = layers.back();
  layer.count += tensor.count;
  layer.norm = std::hypot(layer.norm, tensor.norm);
}

}  // namespace

std::int64_t CheckpointSummary::num_parameters() const {
  std::int64_t count = 0;
  for (const TensorSummary& tensor : tensors) count += tensor.count;
  return count;
}

CheckpointSummary summarize(const std::string& directory) {
  check_is_model_directory(directory);
  CheckpointSummary summary{.config = read_model_config(directory),
                            .tensors = {},
                            .layers = {},
                            .training = std::nullopt};
  TensorFiles files = TensorFiles::open(directory, "model");
  for (const std::string& name : ordered_names(summary.config, files)) {
    const TensorFiles::Place& place = files.at(name);
    const double norm = is_real(place.entry->type) ? std::sqrt(sum_of_squares(place))
                                                   : std::numeric_limits<double>::quiet_NaN();
    summary.tensors.push_back({.name = name,
                               .type = place.entry->type,
                               .shape = place.entry->shape,
                               .count = place.entry->count(),
                               .norm = norm});
    add_to_layer(summary.layers, summary.tensors.back());
    summary.tensor_bytes += place.entry->bytes();
  }
  if (has_tensor_files(directory, "optimizer")) {
    const TensorFiles optimizer = TensorFiles::open(directory, "optimizer");
    for (const auto& [name, place] : optimizer.tensors()) {
      ++summary.num_optimizer_tensors;
      summary.tensor_bytes += place.entry->bytes();
    }
  }
  if (exists(directory + "/training.json", "")) {
    summary.training = read_training_record(directory);
  }
  return summary;
}

}  // namespace redspine
