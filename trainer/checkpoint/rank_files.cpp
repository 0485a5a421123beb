#include "trainer/checkpoint/rank_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

namespace redspine {
namespace {

// A piece stays in the cache from the hash of it to the copy that the system takes.
constexpr std::size_t kBytesAtOnce = std::size_t{256} << 10;

}  // namespace

RankFiles::RankFiles(const std::string& folder, const SavePlan& plan,
                     const std::vector<PlannedTensor>& mine) {
  std::map<std::string, std::vector<SafetensorsTensor>> tensors;
  for (const PlannedTensor& planned : mine) {
    const std::string& file = plan.file_of(planned);
    file_of_stem_[stem_of(planned.part)] = file;
    tensors[file].push_back({planned.name(), ElementType::f32, planned.tensor->shape.dims()});
  }
  for (const auto& [file, entries] : tensors) {
    writers_.try_emplace(file, fmt::format("{}/{}", folder, file), entries);
  }
}

void RankFiles::write(const PlannedTensor& planned, std::span<const float> values) {
  const std::string& file = file_of_stem_.at(stem_of(planned.part));
  SafetensorsWriter& writer = writers_.at(file);
  ContentHash hash;
  for (auto bytes = std::as_bytes(values); !bytes.empty();) {
    const auto piece = bytes.first(std::min(bytes.size(), kBytesAtOnce));
    hash.add(piece);
    writer.write(piece);
    bytes = bytes.subspan(piece.size());
  }
  files_[file].tensors[planned.name()] = hash.text();
}

std::map<std::string, ManifestFile> RankFiles::finish() {
  for (auto& [name, writer] : writers_) {
    writer.finish();
    files_[name].bytes = writer.file_bytes();
    files_[name].hash = hash_text(writer.header_bytes());
  }
  return files_;
}

}  // namespace redspine
