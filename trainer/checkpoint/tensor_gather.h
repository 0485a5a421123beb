// Brings the shares of one stored tensor from the tensor ranks that own them to the rank that
// writes it. Collective over the tensor axis.
#pragma once

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
  /// Both borrowed. `tensor_axis` is for this object's use alone.
  TensorGather(const ParameterStore& parameters, const ProcessGroup& tensor_axis);

  /// The whole of `tensor` on tensor rank `to`, an empty result elsewhere. `flat` is laid out as
  /// the store's buffers. The result is valid until the next call or change of `flat`: a tensor
  /// that lies in host memory as it is stored is not copied.
  std::span<const float> gather(const StoredTensor& tensor, ConstTensorView flat,
                                const Fetch& fetch, int to);

 private:
  struct Held {
    Range local;
    Range owned;
  };

  const ParameterStore& parameters_;
  const ProcessGroup& tensor_axis_;
  std::unordered_map<std::string, std::size_t> index_;  // by name
  std::vector<std::vector<Held>> held_;                 // [tensor rank][parameter]
  HostBuffer whole_;
  HostBuffer share_;
};

}  // namespace redspine
