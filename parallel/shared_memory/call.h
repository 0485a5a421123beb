// What a rank tells the others of the collective that it is in, through the memory that they share:
// it has to be that of all of them. A plain value.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "parallel/group/process_group.h"
#include "parallel/shared_memory/progress.h"
#include "tensor/view.h"

namespace redspine {

struct alignas(kCacheLineBytes) SharedMemoryCall {
  enum class Kind : std::uint8_t {
    all_reduce,
    all_reduce_in_order,
    reduce_scatter,
    all_gather,
    broadcast
  };

  Kind kind;
  DType dtype;
  ReduceOp op = ReduceOp::sum;
  int root = 0;
  std::size_t num_bytes;
  std::uint64_t shares = 0;  // their hash

  bool operator==(const SharedMemoryCall&) const = default;
  std::string to_string() const {
    const char* op_name = op == ReduceOp::sum ? "sum" : "max";
    const std::string size = fmt::format("of {} bytes of {}", num_bytes, name_of(dtype));
    switch (kind) {
      case Kind::all_reduce:
        return fmt::format("an all-reduce ({}) {}", op_name, size);
      case Kind::all_reduce_in_order:
        return fmt::format("an all-reduce in a given order {}", size);
      case Kind::reduce_scatter:
        return fmt::format("a reduce-scatter ({}) {}", op_name, size);
      case Kind::all_gather:
        return fmt::format("an all-gather {}", size);
      case Kind::broadcast:
        return fmt::format("a broadcast {} from rank {}", size, root);
    }
    return {};
  }
};

}  // namespace redspine
