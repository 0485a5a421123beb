#include "trainer/checkpoint/summary.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "data/io/file.h"
#include "trainer/checkpoint/format/model_json.h"
#include "trainer/checkpoint/model_directory.h"
#include "trainer/checkpoint/stored_digest.h"

namespace redspine {
namespace {

constexpr std::int64_t kElementsAtOnce = std::int64_t{1} << 20;
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

struct Content {
  double sum_of_squares = 0.0;
  std::optional<Digest> digest;
};

/// Of a tensor that is that of the model, or none of its tensors.
Content read_content(const TensorFiles::Place& place, const NamedTensor* named) {
  Content content;
  std::optional<StoredDigest> digest;
  if (named != nullptr && place.entry->shape == named->tensor->shape.dims()) {
    digest.emplace(*named->tensor, named->part);
  }
  std::vector<float> values;
  for (std::int64_t first = 0; first < place.entry->count(); first += kElementsAtOnce) {
    values.resize(
        static_cast<std::size_t>(std::min(kElementsAtOnce, place.entry->count() - first)));
    place.file->read_floats(*place.entry, first, values);
    for (const float value : values) {
      content.sum_of_squares += static_cast<double>(value) * static_cast<double>(value);
    }
    if (digest) digest->add(first, values);
  }
  if (digest) content.digest = digest->sum();
  return content;
}

/// Adds up the digests of a part's tensors; gives them once all are there.
class DigestSum {
 public:
  explicit DigestSum(std::size_t num_tensors) : num_missing_(num_tensors) {}

  void add(const std::optional<Digest>& digest) {
    if (!digest) return;
    sum_ += *digest;
    --num_missing_;
  }
  std::optional<Digest> result() const {
    return num_missing_ == 0 ? std::optional(sum_) : std::nullopt;
  }

 private:
  std::size_t num_missing_;
  Digest sum_;
};

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
  const StoredTensors known(summary.config);
  DigestSum weights(known.num_tensors());
  for (const std::string& name : ordered_names(summary.config, files)) {
    const TensorFiles::Place& place = files.at(name);
    TensorSummary& tensor =
        summary.tensors.emplace_back(TensorSummary{.name = name,
                                                   .type = place.entry->type,
                                                   .shape = place.entry->shape,
                                                   .count = place.entry->count(),
                                                   .norm = kNaN});
    if (is_real(tensor.type)) {
      const Content content = read_content(place, known.find(name));
      tensor.norm = std::sqrt(content.sum_of_squares);
      tensor.digest = content.digest;
    }
    weights.add(tensor.digest);
    add_to_layer(summary.layers, summary.tensors.back());
    summary.tensor_bytes += place.entry->bytes();
  }
  if (has_tensor_files(directory, "optimizer")) {
    const TensorFiles optimizer = TensorFiles::open(directory, "optimizer");
    DigestSum exp_avg(known.num_tensors());
    DigestSum exp_avg_sq(known.num_tensors());
    for (const auto& [name, place] : optimizer.tensors()) {
      ++summary.num_optimizer_tensors;
      summary.tensor_bytes += place.entry->bytes();
      const NamedTensor* named = known.find(name);
      if (named == nullptr || !is_real(place.entry->type)) continue;
      (named->part == StatePart::exp_avg ? exp_avg : exp_avg_sq)
          .add(read_content(place, named).digest);
    }
    summary.exp_avg_digest = exp_avg.result();
    summary.exp_avg_sq_digest = exp_avg_sq.result();
  }
  summary.weights_digest = weights.result();
  if (exists(directory + "/training.json", "")) {
    summary.training = read_training_record(directory);
  }
  return summary;
}

}  // namespace redspine
