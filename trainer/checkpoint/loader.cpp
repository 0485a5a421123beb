#include "trainer/checkpoint/loader.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <set>
#include <unordered_map>

#include "tensor/error.h"
#include "trainer/checkpoint/format/model_json.h"
#include "trainer/checkpoint/host_buffer.h"
#include "trainer/checkpoint/model_directory.h"
#include "trainer/checkpoint/setting_changes.h"

namespace redspine {
namespace {

// What is read at once: it stays in the cache until it is in its place.
constexpr std::int64_t kElementsAtOnce = std::int64_t{1} << 18;

// Tensors that do not fit: where many do not, more of them say nothing new.
constexpr std::size_t kMaxTold = 8;

Slab local_slab(const Parameter& parameter, StatePart part) {
  const ParameterSpec& spec = parameter.spec;
  Slab slab{.parameter_shape = spec.global_shape, .dim = spec.sharded_dim, .range = spec.local};
  if (part == StatePart::value) return slab;
  if (spec.sharded_dim == 1) {
    slab.rows = parameter.updated;
  } else {
    slab.range = {spec.local.begin + parameter.updated.begin,
                  spec.local.begin + parameter.updated.end};
  }
  return slab;
}

// One part of a stored tensor and where this rank's share of it goes.
struct Target {
  StoredRegion region;
  std::span<float> slab;
};

// Reads the rows of regions that lie side by side.
class RegionReader {
 public:
  RegionReader(const TensorFiles& files, HostBuffer& buffer) : files_(files), buffer_(buffer) {}

  void read(const std::string& name, const StoredTensor& tensor,
            std::span<const Target> targets) const {
    const Range rows = targets.front().region.rows;
    const Range columns{targets.front().region.columns.begin, targets.back().region.columns.end};
    const bool is_stored_so = tensor.orientation == Orientation::as_is && targets.size() == 1;
    if (is_stored_so && columns.size() == tensor.num_columns()) {
      files_.read(name, rows.begin * tensor.num_columns(), targets.front().slab);
      return;
    }
    const std::int64_t num_rows =
        std::max<std::int64_t>(1, kElementsAtOnce / std::max<std::int64_t>(1, columns.size()));
    for (std::int64_t row = rows.begin; row < rows.end; row += num_rows) {
      const Range piece{row, std::min(row + num_rows, rows.end)};
      const float* values = read_rows(name, tensor, {piece, columns}).data();
      for (const Target& target : targets) {
        copy_rows_to_slab(target.slab,
                          {.values = values + (target.region.columns.begin - columns.begin),
                           .row_stride = columns.size(),
                           .rows = piece},
                          tensor, target.region);
      }
    }
  }

 private:
  // To [rows][columns].
  std::span<const float> read_rows(const std::string& name, const StoredTensor& tensor,
                                   const StoredRegion& region) const {
    const std::span<float> values = buffer_.take(region.count());
    const std::int64_t width = tensor.num_columns();
    const std::int64_t row_size = region.columns.size();
    if (row_size == width) {
      files_.read(name, region.rows.begin * width, values);
      return values;
    }
    for (std::int64_t row = 0; row < region.rows.size(); ++row) {
      files_.read(name, (region.rows.begin + row) * width + region.columns.begin,
                  values.subspan(static_cast<std::size_t>(row * row_size),
                                 static_cast<std::size_t>(row_size)));
    }
    return values;
  }

  const TensorFiles& files_;
  HostBuffer& buffer_;
};

// Where each share is read to: its own place, or one in `passing` that is uploaded later.
void give_host_memory(std::vector<Target>& targets, const std::vector<TensorView>& places,
                      const Device& device, HostBuffer& passing) {
  std::int64_t count = 0;
  for (const Target& target : targets) count += target.region.count();
  std::span<float> rest = device.has_host_memory() ? std::span<float>() : passing.take(count);
  for (std::size_t i = 0; i < targets.size(); ++i) {
    const auto size = static_cast<std::size_t>(targets[i].region.count());
    targets[i].slab = device.has_host_memory() ? host_values(places[i]) : rest.first(size);
    if (!device.has_host_memory()) rest = rest.subspan(size);
  }
}

// How many of `targets` lie side by side, from the first on: they can be read as one.
std::size_t num_adjoining(std::span<const Target> targets) {
  std::size_t count = 1;
  while (count < targets.size() &&
         targets[count].region.columns.begin == targets[count - 1].region.columns.end) {
    ++count;
  }
  return count;
}

// One tensor that is to be read, and the flat buffer that has its parts.
struct Job {
  const TensorFiles* files;
  const StoredTensor* tensor;
  StatePart part;
  std::string name;
  TensorView flat;
};

class Loader {
 public:
  explicit Loader(const LoadTarget& target) : target_(target) {
    for (const Parameter& parameter : target.store.parameters()) {
      parameters_[parameter.spec.name] = &parameter;
    }
  }

  void add(const TensorFiles& files, std::span<const StoredTensor> tensors, StatePart part,
           TensorView flat) {
    for (const StoredTensor& tensor : tensors) {
      jobs_.push_back({&files, &tensor, part, prefix_of(part) + tensor.name, flat});
    }
  }

  /// Two at once where the device allows it: one waits for the disk, the other puts in place.
  void run() {
    std::future<void> other;
    if (target_.device.has_host_memory()) {
      other = std::async(std::launch::async, [this] { read_in_turn({}); });
    }
    read_in_turn(target_.keep_going);
    if (other.valid()) other.get();
  }

 private:
  struct Buffers {
    HostBuffer rows;
    HostBuffer passing;  // not used where the device's memory is the host's
  };

  void read_in_turn(const KeepGoing& keep_going) {
    Buffers buffers;
    try {
      for (std::size_t i = 0; (i = next_++) < jobs_.size();) {
        if (!goes_on(keep_going)) {
          next_ = jobs_.size();
          return;
        }
        read(jobs_[i], buffers);
      }
    } catch (...) {
      next_ = jobs_.size();
      throw;
    }
  }

  void read(const Job& job, Buffers& buffers) const {
    std::vector<Target> targets;
    std::vector<TensorView> places;
    for (const StoredPart& part : job.tensor->parts) {
      const Parameter& parameter = *parameters_.at(part.parameter);
      const StoredRegion region = region_of(*job.tensor, part, local_slab(parameter, job.part));
      if (region.count() == 0) continue;
      places.push_back(
          job.flat.slice(job.part == StatePart::value ? parameter.offset : parameter.moments_offset,
                         region.count()));
      targets.push_back({.region = region, .slab = {}});
    }
    if (targets.empty()) return;
    give_host_memory(targets, places, target_.device, buffers.passing);
    const RegionReader reader(*job.files, buffers.rows);
    for (std::size_t first = 0; first < targets.size();) {
      const std::size_t count = num_adjoining(std::span(targets).subspan(first));
      reader.read(job.name, *job.tensor, std::span(targets).subspan(first, count));
      first += count;
    }
    if (target_.device.has_host_memory()) return;
    for (std::size_t i = 0; i < places.size(); ++i) {
      target_.device.upload(places[i], host_view(std::span<const float>(targets[i].slab)));
    }
  }

  const LoadTarget& target_;
  std::unordered_map<std::string, const Parameter*> parameters_;
  std::vector<Job> jobs_;
  std::atomic<std::size_t> next_ = 0;
};

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

}  // namespace

void check_tensors(const TensorFiles& files, std::span<const StoredTensor> tensors,
                   StatePart part) {
  const std::string prefix = prefix_of(part);
  std::vector<std::string> wrong;
  std::set<std::string, std::less<>> expected;
  for (const StoredTensor& tensor : tensors) {
    const std::string name = prefix + tensor.name;
    expected.insert(name);
    const std::string shape = shape_text(tensor.shape.dims());
    if (!files.contains(name)) {
      wrong.push_back(
          fmt::format("{}: tensor {} of shape {}: is missing", files.directory(), name, shape));
      continue;
    }
    const TensorFiles::Place& place = files.at(name);
    if (place.entry->shape != tensor.shape.dims()) {
      wrong.push_back(
          fmt::format("{}: tensor {}: has the shape {}; the configuration's model has "
                      "{}",
                      place.file->path(), name, shape_text(place.entry->shape), shape));
    } else if (!is_real(place.entry->type)) {
      wrong.push_back(fmt::format("{}: tensor {}: is {}; legal: F32, F16, BF16", place.file->path(),
                                  name, name_of(place.entry->type)));
    }
  }
  for (const auto& [name, place] : files.tensors()) {
    if (!name.starts_with(prefix) || expected.contains(name)) continue;
    wrong.push_back(
        fmt::format("{}: tensor {} of shape {}: the configuration's model has no such "
                    "tensor",
                    place.file->path(), name, shape_text(place.entry->shape)));
  }
  if (wrong.size() > kMaxTold) {
    const std::size_t num_more = wrong.size() - kMaxTold;
    wrong.resize(kMaxTold);
    wrong.push_back(fmt::format("{}: {} more tensors do not fit the configuration's model",
                                files.directory(), num_more));
  }
  ConfigProblems problems;
  for (std::string& text : wrong) problems.add("", std::move(text));
  problems.throw_if_any();
}

void load_state(const std::string& directory, const ModelConfig& config,
                const TrainingTensors& tensors, const LoadTarget& target) {
  const std::vector<StoredTensor> stored = stored_tensors(config);
  const TensorFiles model = TensorFiles::open(directory, "model");
  const TensorFiles optimizer = TensorFiles::open(directory, "optimizer");
  check_tensors(model, stored, StatePart::value);
  check_tensors(optimizer, stored, StatePart::exp_avg);
  check_tensors(optimizer, stored, StatePart::exp_avg_sq);
  Loader loader(target);
  for (const StatePart part : kStateParts) {
    loader.add(part == StatePart::value ? model : optimizer, stored, part, view_of(tensors, part));
  }
  loader.run();
  target.store.refresh_working(target.device);
}

void check_weights(const std::string& directory, const ModelConfig& config) {
  check_is_model_directory(directory);
  ConfigProblems problems;
  for (const SettingChange& change : changed_options(read_model_config(directory), config)) {
    if (change.is_compatible) continue;
    problems.add(change.key, fmt::format("is {}, but {}/config.json says {}: {}", change.after,
                                         directory, change.before, change.effect));
  }
  // Which setting differs says more than each tensor that it changes.
  problems.throw_if_any();
  open_weights(directory, stored_tensors(config));
}

void load_weights(const std::string& directory, const ModelConfig& config,
                  const LoadTarget& target) {
  check_weights(directory, config);
  const std::vector<StoredTensor> stored = stored_tensors(config);
  const TensorFiles files = open_weights(directory, stored);
  Loader loader(target);
  loader.add(files, stored, StatePart::value, target.store.values());
  loader.run();
  target.store.refresh_working(target.device);
}

}  // namespace redspine
