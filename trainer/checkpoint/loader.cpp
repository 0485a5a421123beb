#include "trainer/checkpoint/loader.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <unordered_map>

#include "tensor/error.h"
#include "trainer/checkpoint/host_buffer.h"
#include "trainer/checkpoint/model_json.h"

namespace redspine {
namespace {

// Reads the rows and columns of `region` to values [rows][columns].
void read_region(const TensorFiles& files, const std::string& name, const StoredTensor& tensor,
                 const StoredRegion& region, std::span<float> values) {
  const std::int64_t width = tensor.num_columns();
  const std::int64_t row_size = region.columns.size();
  if (row_size == width) {
    files.read(name, region.rows.begin * width, values);
    return;
  }
  for (std::int64_t row = 0; row < region.rows.size(); ++row) {
    files.read(name, (region.rows.begin + row) * width + region.columns.begin,
               values.subspan(static_cast<std::size_t>(row * row_size),
                              static_cast<std::size_t>(row_size)));
  }
}

Slab local_slab(const ParameterSpec& spec) {
  return {.parameter_shape = spec.global_shape, .dim = spec.sharded_dim, .range = spec.local};
}

// Under our names, whoever wrote them, and each checked.
TensorFiles open_weights(const std::string& directory, const std::vector<StoredTensor>& stored) {
  TensorFiles files = TensorFiles::open(directory, "model");
  std::vector<std::string> names;
  names.reserve(stored.size());
  for (const StoredTensor& tensor : stored) names.push_back(tensor.name);
  files.adapt_to(names);
  check_tensors(files, stored, StatePart::value);
  return files;
}

std::string_view name_of(Activation activation) {
  switch (activation) {
    case Activation::gelu_tanh:
      break;
    case Activation::gelu:
      return "gelu";
    case Activation::swiglu:
      return "swiglu";
  }
  return "gelu_tanh";
}

}  // namespace

void check_tensors(const TensorFiles& files, std::span<const StoredTensor> tensors,
                   StatePart part) {
  const std::string prefix = prefix_of(part);
  Mistakes mistakes;
  std::set<std::string, std::less<>> expected;
  for (const StoredTensor& tensor : tensors) {
    const std::string name = prefix + tensor.name;
    expected.insert(name);
    const std::string shape = shape_text(tensor.shape.dims());
    if (!files.contains(name)) {
      mistakes.add(
          "", fmt::format("{}: tensor {} of shape {}: is missing", files.directory(), name, shape));
      continue;
    }
    const TensorFiles::Place& place = files.at(name);
    if (place.entry->shape != tensor.shape.dims()) {
      mistakes.add("",
                   fmt::format("{}: tensor {}: has the shape {}; the configuration's model "
                               "has {}",
                               place.file->path(), name, shape_text(place.entry->shape), shape));
    } else if (!is_real(place.entry->type)) {
      mistakes.add("", fmt::format("{}: tensor {}: is {}; legal: F32, F16, BF16",
                                   place.file->path(), name, name_of(place.entry->type)));
    }
  }
  for (const auto& [name, place] : files.tensors()) {
    if (!name.starts_with(prefix) || expected.contains(name)) continue;
    mistakes.add("", fmt::format("{}: tensor {} of shape {}: the configuration's model has no such "
                                 "tensor",
                                 place.file->path(), name, shape_text(place.entry->shape)));
  }
  mistakes.throw_if_any();
}

void load_part(const TensorFiles& files, std::span<const StoredTensor> tensors, StatePart part,
               const ParameterStore& store, TensorView flat, Device& device) {
  std::unordered_map<std::string, const Parameter*> parameters;
  for (const Parameter& parameter : store.parameters()) {
    parameters[parameter.spec.name] = &parameter;
  }
  HostBuffer region_buffer;
  HostBuffer slab_buffer;
  for (const StoredTensor& tensor : tensors) {
    const std::string name = prefix_of(part) + tensor.name;
    for (const StoredPart& stored : tensor.parts) {
      const Parameter& parameter = *parameters.at(stored.parameter);
      const StoredRegion region = region_of(tensor, stored, local_slab(parameter.spec));
      const std::span<float> slab = slab_buffer.take(region.count());
      if (tensor.orientation == Orientation::as_is) {
        read_region(files, name, tensor, region, slab);
      } else {
        const std::span<float> values = region_buffer.take(region.count());
        read_region(files, name, tensor, region, values);
        copy_region_to_slab(slab, values, tensor, region);
      }
      device.upload(flat.slice(parameter.offset, region.count()),
                    host_view(std::span<const float>(slab)));
    }
  }
}

void load_state(const std::string& directory, const ModelConfig& config,
                const ParameterStore& store, const TrainingTensors& tensors, Device& device) {
  const std::vector<StoredTensor> stored = stored_tensors(config);
  const TensorFiles model = TensorFiles::open(directory, "model");
  const TensorFiles optimizer = TensorFiles::open(directory, "optimizer");
  check_tensors(model, stored, StatePart::value);
  check_tensors(optimizer, stored, StatePart::exp_avg);
  check_tensors(optimizer, stored, StatePart::exp_avg_sq);
  for (const StatePart part : kStateParts) {
    load_part(part == StatePart::value ? model : optimizer, stored, part, store,
              view_of(tensors, part), device);
  }
  store.refresh_working(device);
}

void check_weights(const std::string& directory, const ModelConfig& config) {
  open_weights(directory, stored_tensors(config));
  const ModelConfig theirs = read_model_config(directory);
  Mistakes mistakes;
  const auto compare = [&](const char* key, const auto& ours, const auto& saved) {
    if (ours == saved) return;
    mistakes.add("",
                 fmt::format("{}: is {}, but {}/config.json says {}", key, ours, directory, saved));
  };
  compare("model.num_heads", config.num_heads, theirs.num_heads);
  compare("model.num_kv_heads", config.num_kv_heads, theirs.num_kv_heads);
  compare("model.norm_epsilon", config.norm_epsilon, theirs.norm_epsilon);
  compare("model.activation", name_of(config.activation), name_of(theirs.activation));
  mistakes.throw_if_any();
}

void load_weights(const std::string& directory, const ModelConfig& config,
                  const ParameterStore& store, Device& device) {
  check_weights(directory, config);
  const std::vector<StoredTensor> stored = stored_tensors(config);
  load_part(open_weights(directory, stored), stored, StatePart::value, store, store.values(),
            device);
  store.refresh_working(device);
}

}  // namespace redspine
