#include "trainer/checkpoint/file_digests.h"

#include <algorithm>
#include <cstdint>
#include <map>

#include "parallel/group/failure.h"
#include "trainer/checkpoint/format/model_json.h"
#include "trainer/checkpoint/loader.h"
#include "trainer/checkpoint/state_digests.h"
#include "trainer/checkpoint/stored_digest.h"

namespace redspine {
namespace {

constexpr std::int64_t kElementsAtOnce = std::int64_t{1} << 20;

Digest digest_of_stored(const TensorFiles& files, const StoredTensor& tensor, StatePart part) {
  const std::string name = prefix_of(part) + tensor.name;
  StoredDigest digest(tensor, part);
  std::vector<float> values;
  for (std::int64_t first = 0; first < tensor.shape.count(); first += kElementsAtOnce) {
    values.resize(
        static_cast<std::size_t>(std::min(kElementsAtOnce, tensor.shape.count() - first)));
    files.read(name, first, values);
    digest.add(first, values);
  }
  return digest.sum();
}

// Tensors of all parts, [part][stored tensor]; those that other ranks read are zero.
std::vector<Digest> read_share(const std::string& directory,
                               const std::vector<StoredTensor>& tensors, int rank, int num_ranks) {
  const TensorFiles model = TensorFiles::open(directory, "model");
  const TensorFiles optimizer = TensorFiles::open(directory, "optimizer");
  std::vector<Digest> digests;
  for (const StatePart part : kStateParts) {
    const TensorFiles& files = part == StatePart::value ? model : optimizer;
    check_tensors(files, tensors, part);
    for (const StoredTensor& tensor : tensors) {
      const bool is_mine =
          digests.size() % static_cast<std::size_t>(num_ranks) == static_cast<std::size_t>(rank);
      digests.push_back(is_mine ? digest_of_stored(files, tensor, part) : Digest{});
    }
  }
  return digests;
}

}  // namespace

StateDigests digests_of_files(const std::string& directory, const ProcessGroup& group) {
  std::vector<StoredTensor> tensors;
  std::vector<std::uint64_t> halves;
  run_together(group, [&] {
    tensors = stored_tensors(read_model_config(directory));
    for (const Digest& digest : read_share(directory, tensors, group.rank(), group.size())) {
      halves.insert(halves.end(), {digest.low, digest.high});
    }
  });
  group.sum(halves);
  StateDigests result;
  auto half = halves.begin();
  for (const StatePart part : kStateParts) {
    for (const StoredTensor& tensor : tensors) {
      const std::uint64_t low = *half++;
      const Digest digest{.low = low, .high = *half++};
      result.tensors[prefix_of(part) + tensor.name] = digest;
      total_of(result, part) += digest;
    }
  }
  return result;
}

std::vector<std::string> different_tensors(const ModelConfig& config, const StateDigests& first,
                                           const StateDigests& second) {
  std::vector<std::string> names;
  const std::vector<StoredTensor> tensors = stored_tensors(config);
  for (const StatePart part : kStateParts) {
    for (const StoredTensor& tensor : tensors) {
      const std::string name = prefix_of(part) + tensor.name;
      if (first.tensors.at(name) != second.tensors.at(name)) names.push_back(name);
    }
  }
  return names;
}

}  // namespace redspine
