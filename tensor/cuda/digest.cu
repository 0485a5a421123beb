#include <cstdint>
#include <vector>

#include "tensor/cuda/check.h"
#include "tensor/cuda/digest.h"
#include "tensor/cuda/elementwise.h"
#include "tensor/cuda/parts.h"
#include "tensor/cuda/reduce.h"

namespace redspine::cuda {
namespace {

constexpr int kThreads = 256;
constexpr std::int64_t kElementsPerBlock = std::int64_t{1} << 15;

struct DigestPart {
  const std::uint32_t* bits;
  std::int64_t count;
  DigestPlace place;
  Digest* digest;
};

__device__ void store_sum(Digest* to, Digest digest) {
  auto& shared = *shared_memory<ReductionShared<std::uint64_t>>();
  digest.low = reduce_block(digest.low, shared.per_warp, Plus{});
  digest.high = reduce_block(digest.high, shared.per_warp, Plus{});
  if (threadIdx.x == 0) *to = digest;
}

__global__ void __launch_bounds__(kThreads)
    digest_kernel(Digest* partials, const __grid_constant__ PartTable<DigestPart> table) {
  const int p = table.part_of(blockIdx.x);
  const DigestPart& part = table.parts[p];
  const std::int64_t begin = (blockIdx.x - table.first_blocks[p]) * kElementsPerBlock;
  const std::int64_t end = min(begin + kElementsPerBlock, part.count);
  Digest sum;
  for (std::int64_t i = begin + std::int64_t{threadIdx.x}; i < end; i += kThreads) {
    sum += digest_of_element(part.bits[i], digest_counter(part.place.key, index_of(part.place, i)),
                             part.place.key.mask);
  }
  store_sum(partials + blockIdx.x, sum);
}

// One block for each part.
__global__ void __launch_bounds__(kThreads)
    add_digests_kernel(const Digest* partials, unsigned num_blocks,
                       const __grid_constant__ PartTable<DigestPart> table) {
  const int p = static_cast<int>(blockIdx.x);
  const unsigned end = p + 1 < table.num_parts ? table.first_blocks[p + 1] : num_blocks;
  Digest sum;
  for (unsigned block = table.first_blocks[p] + threadIdx.x; block < end; block += kThreads) {
    sum += partials[block];
  }
  store_sum(table.parts[p].digest, sum);
}

}  // namespace

void write_digests(cudaStream_t stream, Scratch& scratch, const AdamW& op) {
  const auto* bits = elements<std::uint32_t>(ConstTensorView(op.parameter));
  auto* digest = elements<Digest>(op.digests);
  std::vector<DigestPart> parts;
  std::int64_t num_partials = 0;
  for (const AdamWPart& part : op.parts) {
    if (part.count > 0) {
      parts.push_back(
          {.bits = bits + part.begin, .count = part.count, .place = part.place, .digest = digest});
      num_partials += divide_up(part.count, kElementsPerBlock);
    }
    ++digest;
  }
  // Those of parts without elements.
  check_cuda(cudaMemsetAsync(op.digests.raw(), 0, op.digests.bytes(), stream), "cudaMemsetAsync");
  if (parts.empty()) return;
  auto* next = scratch.elements<Digest>(num_partials);
  constexpr std::size_t kSharedBytes = sizeof(ReductionShared<std::uint64_t>);
  for_each_table(std::span<const DigestPart>(parts), kElementsPerBlock,
                 [&](const PartTable<DigestPart>& table, unsigned num_blocks) {
                   launch(stream, {num_blocks, kThreads, kSharedBytes}, digest_kernel, next, table);
                   launch(stream, {static_cast<unsigned>(table.num_parts), kThreads, kSharedBytes},
                          add_digests_kernel, next, num_blocks, table);
                   next += num_blocks;
                 });
}

}  // namespace redspine::cuda
