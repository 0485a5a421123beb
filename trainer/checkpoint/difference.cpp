#include "trainer/checkpoint/difference.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <set>
#include <sstream>

#include "data/io/file.h"
#include "trainer/checkpoint/format/model_json.h"
#include "trainer/checkpoint/format/training_json.h"
#include "trainer/checkpoint/model_directory.h"
#include "trainer/checkpoint/training_state.h"

namespace redspine {
namespace {

constexpr std::int64_t kElementsAtOnce = std::int64_t{1} << 20;

// Widening to f32 keeps different numbers different, so bits of f32 tell whether values are equal.
TensorDifference compare_values(const std::string& name, const TensorFiles::Place& first,
                                const TensorFiles::Place& second) {
  TensorDifference difference{.name = name, .relation = Relation::equal};
  if (first.entry->shape != second.entry->shape) {
    difference.relation = Relation::other_shape;
    return difference;
  }
  std::vector<float> a;
  std::vector<float> b;
  double largest = 0.0;
  for (std::int64_t begin = 0; begin < first.entry->count(); begin += kElementsAtOnce) {
    const std::int64_t count = std::min(kElementsAtOnce, first.entry->count() - begin);
    a.resize(static_cast<std::size_t>(count));
    b.resize(a.size());
    first.file->read_floats(*first.entry, begin, a);
    second.file->read_floats(*second.entry, begin, b);
    for (std::size_t i = 0; i < a.size(); ++i) {
      if (std::isfinite(a[i])) largest = std::max(largest, std::abs(static_cast<double>(a[i])));
      if (std::bit_cast<std::uint32_t>(a[i]) == std::bit_cast<std::uint32_t>(b[i])) continue;
      difference.relation = Relation::different;
      const double distance = std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
      difference.max_absolute =
          std::max(difference.max_absolute,
                   std::isfinite(distance) ? distance : std::numeric_limits<double>::infinity());
    }
  }
  if (difference.max_absolute > 0.0) difference.max_relative = difference.max_absolute / largest;
  return difference;
}

void compare_files(const TensorFiles& first, const TensorFiles& second,
                   const std::vector<std::string>& order, DirectoryDifference& result) {
  std::vector<std::string> names;
  std::set<std::string> seen;
  const auto add = [&](const std::string& name) {
    if ((first.contains(name) || second.contains(name)) && seen.insert(name).second) {
      names.push_back(name);
    }
  };
  for (const std::string& name : order) add(name);
  for (const auto& [name, place] : first.tensors()) add(name);
  for (const auto& [name, place] : second.tensors()) add(name);
  for (const std::string& name : names) {
    if (!second.contains(name)) {
      result.tensors.push_back({.name = name, .relation = Relation::only_first});
    } else if (!first.contains(name)) {
      result.tensors.push_back({.name = name, .relation = Relation::only_second});
    } else {
      result.tensors.push_back(compare_values(name, first.at(name), second.at(name)));
    }
  }
}

void compare_configs(const ModelConfig& first, const ModelConfig& second,
                     DirectoryDifference& result) {
  const auto lines_of = [](const ModelConfig& config) {
    std::vector<std::string> lines;
    std::istringstream text(model_to_json(config));
    for (std::string line; std::getline(text, line);) {
      if (line.ends_with(',')) line.pop_back();
      const std::size_t begin = line.find_first_not_of(' ');
      lines.push_back(begin == std::string::npos ? line : line.substr(begin));
    }
    return lines;
  };
  const std::vector<std::string> a = lines_of(first);
  const std::vector<std::string> b = lines_of(second);
  const auto report = [&](const std::vector<std::string>& these,
                          const std::vector<std::string>& those, const char* whose) {
    for (const std::string& line : these) {
      if (std::find(those.begin(), those.end(), line) == those.end()) {
        result.settings.push_back(fmt::format("config.json of the {}: {}", whose, line));
      }
    }
  };
  report(a, b, "first");
  report(b, a, "second");
}

void compare_progress(const std::string& first, const std::string& second,
                      DirectoryDifference& result) {
  const TrainingProgress a = read_training_record(first).progress;
  const TrainingProgress b = read_training_record(second).progress;
  const auto compare = [&](const char* key, std::int64_t x, std::int64_t y) {
    if (x != y) result.settings.push_back(fmt::format("training.json: {}: {}, {}", key, x, y));
  };
  compare("step", a.step, b.step);
  compare("samples_consumed", a.samples_consumed, b.samples_consumed);
  compare("tokens_consumed", a.tokens_consumed, b.tokens_consumed);
  compare("num_updates", a.num_updates, b.num_updates);
}

/// Whether both have it; if one alone has, says so.
bool both_have(const std::string& what, const std::string& first, bool in_first,
               const std::string& second, bool in_second, DirectoryDifference& result) {
  if (in_first != in_second) {
    result.not_compared.push_back(fmt::format("{}: only in {}", what, in_first ? first : second));
  }
  return in_first && in_second;
}

}  // namespace

bool DirectoryDifference::is_equal() const {
  return settings.empty() &&
         std::all_of(tensors.begin(), tensors.end(), [](const TensorDifference& tensor) {
           return tensor.relation == Relation::equal;
         });
}

DirectoryDifference compare_directories(const std::string& first, const std::string& second) {
  const ModelDirectory a = open_model(first);
  const ModelDirectory b = open_model(second);
  DirectoryDifference result;
  compare_configs(a.config, b.config, result);
  std::vector<std::string> order;
  for (const StoredTensor& tensor : a.tensors) order.push_back(tensor.name);
  for (const StoredTensor& tensor : b.tensors) order.push_back(tensor.name);
  compare_files(a.files, b.files, order, result);
  if (both_have("the optimizer's state", first, has_tensor_files(first, "optimizer"), second,
                has_tensor_files(second, "optimizer"), result)) {
    std::vector<std::string> moments;
    for (const StatePart part : {StatePart::exp_avg, StatePart::exp_avg_sq}) {
      for (const std::string& name : order) moments.push_back(prefix_of(part) + name);
    }
    compare_files(TensorFiles::open(first, "optimizer"), TensorFiles::open(second, "optimizer"),
                  moments, result);
  }
  const auto has_record = [](const std::string& directory) {
    return exists(directory + "/training.json", "");
  };
  if (both_have("training.json", first, has_record(first), second, has_record(second), result)) {
    compare_progress(first, second, result);
  }
  return result;
}

}  // namespace redspine
