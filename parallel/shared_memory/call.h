// What a rank tells the others of the collective that it is in, through the memory that they share:
// it has to be that of all of them. A plain value.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "parallel/group/process_group.h"
#include "parallel/partition.h"
#include "parallel/shared_memory/progress.h"
#include "parallel/sum_tree.h"
#include "tensor/view.h"

namespace redspine {

struct alignas(kCacheLineBytes) SharedMemoryCall {
  enum class Kind : std::uint8_t {
    all_reduce,
    all_reduce_in_order,
    reduce_scatter,
    reduce_scatter_in_order,
    all_gather,
    broadcast
  };

  Kind kind;
  DType dtype;
  ReduceOp op = ReduceOp::sum;
  int root = 0;
  std::size_t num_bytes;
  std::uint64_t shares = 0;  // hash_of() these, of an order, or of both

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
      case Kind::reduce_scatter_in_order:
        return fmt::format("a reduce-scatter in a given order {}", size);
      case Kind::all_gather:
        return fmt::format("an all-gather {}", size);
      case Kind::broadcast:
        return fmt::format("a broadcast {} from rank {}", size, root);
    }
    return {};
  }
};

namespace detail {

// FNV-1a, a number at a time.
inline constexpr std::uint64_t kHashStart = 0xcbf29ce484222325;
constexpr std::uint64_t hash_on(std::uint64_t hash, std::int64_t number) {
  return (hash ^ static_cast<std::uint64_t>(number)) * 0x100000001b3;
}

}  // namespace detail

/// Tells shares apart, by their bounds; with an order, the two together.
inline std::uint64_t hash_of(std::span<const Range> shares,
                             std::uint64_t hash = detail::kHashStart) {
  for (const Range& share : shares) hash = detail::hash_on(hash, share.end);
  return hash;
}
inline std::uint64_t hash_of(const SumOrder& order) {
  std::uint64_t hash = detail::kHashStart;
  for (const int summands : order.num_summands) hash = detail::hash_on(hash, summands);
  for (const int merges : order.num_merges) hash = detail::hash_on(hash, merges);
  return hash;
}

}  // namespace redspine
