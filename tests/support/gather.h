// Whole parameters, put together from the shares of the tensor ranks, for comparisons in tests.
#pragma once

#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "model/parameters.h"
#include "parallel/group/process_group.h"

namespace redspine::testing {

struct WholeTensor {
  Shape shape;
  std::vector<float> values;
};
using WholeTensors = std::map<std::string, WholeTensor>;

/// Which of a parameter's buffers to gather.
using ViewOf = TensorView Parameter::*;

/// Every parameter's value or gradient on every rank; collective over `tensor`. Rows that several
/// ranks hold come from the rank that owns them.
inline WholeTensors gather(const ParameterStore& store, ViewOf view, const ProcessGroup& tensor,
                           Device& device) {
  WholeTensors whole;
  for (const Parameter& parameter : store.parameters()) {
    const ParameterSpec& spec = parameter.spec;
    const TensorView local = parameter.*view;
    std::vector<float> values(static_cast<std::size_t>(local.count()));
    device.download(host_view(std::span<float>(values)), local.reshape({local.count()}));

    // A message: the local range, the owned range, then the values.
    const Range ranges[2] = {spec.local, spec.owned};
    std::string message(reinterpret_cast<const char*>(ranges), sizeof(ranges));
    message.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));

    WholeTensor& target = whole.insert({spec.name, {spec.global_shape, {}}}).first->second;
    target.values.resize(static_cast<std::size_t>(spec.global_shape.count()));
    const std::int64_t cols = spec.global_shape.rank() == 1 ? 1 : spec.global_shape[1];
    for (const std::string& part : tensor.all_gather(message)) {
      Range from[2];
      std::memcpy(from, part.data(), sizeof(from));
      const auto [held, owned] = std::pair(from[0], from[1]);
      std::vector<float> share((part.size() - sizeof(from)) / sizeof(float));
      std::memcpy(share.data(), part.data() + sizeof(from), share.size() * sizeof(float));
      const bool by_rows = spec.sharded_dim == 0;
      const std::int64_t share_cols = by_rows ? cols : held.size();
      const std::int64_t share_rows = by_rows ? held.size() : spec.global_shape[0];
      for (std::int64_t r = 0; r < share_rows; ++r) {
        for (std::int64_t c = 0; c < share_cols; ++c) {
          const std::int64_t row = by_rows ? held.begin + r : r;
          const std::int64_t col = by_rows ? c : held.begin + c;
          const std::int64_t along = by_rows ? row : col;
          if (along < owned.begin || along >= owned.end) continue;
          target.values[static_cast<std::size_t>(row * cols + col)] =
              share[static_cast<std::size_t>(r * share_cols + c)];
        }
      }
    }
  }
  return whole;
}

}  // namespace redspine::testing
