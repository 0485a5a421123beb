// Many arrays worked on by one launch: a table of them among the kernel's parameters, where a block
// finds the part that it is for. Host code that makes tables, device code that reads them; local.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "tensor/cuda/elementwise.h"

namespace redspine::cuda {

/// `Part` has a count of elements, which is not 0.
template <class Part>
struct PartTable {
  // Parameters of all kernels may take 4 KiB; the rest is for those beside the table.
  static constexpr int kMaxParts = static_cast<int>(3584 / (sizeof(Part) + sizeof(unsigned)));

  Part parts[kMaxParts];
  unsigned first_blocks[kMaxParts];  // of each part, ascending from 0
  int num_parts = 0;

  /// The part that a block of the launch works on.
  __device__ int part_of(unsigned block) const {
    int first = 0;
    int end = num_parts;
    while (end - first > 1) {
      const int middle = (first + end) / 2;
      (first_blocks[middle] <= block ? first : end) = middle;
    }
    return first;
  }
};

/// launch_table(table, num_blocks) for as many tables as all `parts` take, where a block works on
/// `elements_per_block` elements of one part.
template <class Part, class LaunchTable>
void for_each_table(std::span<const Part> parts, std::int64_t elements_per_block,
                    const LaunchTable& launch_table) {
  using Table = PartTable<Part>;
  while (!parts.empty()) {
    Table table{};
    unsigned num_blocks = 0;
    const auto here = parts.first(std::min<std::size_t>(parts.size(), Table::kMaxParts));
    for (const Part& part : here) {
      table.parts[table.num_parts] = part;
      table.first_blocks[table.num_parts++] = num_blocks;
      num_blocks += static_cast<unsigned>(divide_up(part.count, elements_per_block));
    }
    launch_table(table, num_blocks);
    parts = parts.subspan(here.size());
  }
}

}  // namespace redspine::cuda
