// Brings the shares of stored tensors from the ranks that have them to the ranks that write them,
// in rounds of a tensor for each. Collective over the ranks that have shares: of values the tensor
// axis, of moments that are shared out over the data axis the world.
#pragma once

#include <deque>
#include <functional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "model/transformers/stored_tensors.h"
#include "parallel/group/process_group.h"
#include "trainer/checkpoint/host_buffer.h"
#include "trainer/checkpoint/training_state.h"

namespace redspine {

/// The elements of `from` in host memory: in place, or copied off a device to the buffer.
using Fetch = std::function<std::span<const float>(ConstTensorView from, HostBuffer& buffer)>;

/// In place where the device's memory is the host's.
Fetch fetch_from(Device& device);

class TensorGather {
 public:
  /// Values, which a rank has of all that it holds, or moments, which it has of what it updates.
  enum class Of { values, moments };

  /// The first two are borrowed. `ranks` is for this object's use alone.
  TensorGather(const ParameterStore& parameters, const ProcessGroup& ranks, Of of);

  /// What a rank writes, and the buffer in which all ranks have their shares of it.
  struct Wanted {
    const StoredTensor* tensor = nullptr;  // null: nothing
    ConstTensorView flat = {};             // as TrainingTensors has it
  };
  /// The whole of what this rank writes in this round: `of_ranks`, [rank]. The result is valid
  /// until the next call or change of a buffer: a tensor that lies in host memory as it is stored
  /// is not copied.
  std::span<const float> gather(std::span<const Wanted> of_ranks, const Fetch& fetch);

 private:
  // What a rank gives of a parameter, over the whole of it.
  struct Given {
    Range range;  // of its sharded dim
    Range rows;   // of these where columns are sharded
  };

  Slab slab_of(std::size_t parameter, const Given& given) const;
  ConstTensorView own_share(std::size_t parameter, ConstTensorView flat) const;

  const ParameterStore& parameters_;
  const ProcessGroup& ranks_;
  Of of_;
  std::unordered_map<std::string, std::size_t> index_;  // by name
  std::vector<std::vector<Given>> given_;               // [rank][parameter]
  HostBuffer whole_;
  HostBuffer received_;             // what has to be put in place
  std::deque<HostBuffer> passing_;  // what is sent, where it is no host memory; then what is kept
};

}  // namespace redspine
