// Collectives between ranks of one host through memory that they share: a vector goes through it in
// pieces, which stay in the caches, and of a reduction each rank adds up a part for all. Copies are
// those of memory alone.
//
// Construction is collective over the group; destruction is local. A rank that waits sleeps; one
// that died is the launcher's to notice, which ends those who wait. A call that differs from the
// other ranks' throws Error, which says how.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "parallel/group/host_collectives.h"
#include "parallel/group/process_group.h"
#include "parallel/shared_memory/call.h"
#include "parallel/shared_memory/shared_memory.h"
#include "tensor/view.h"

namespace redspine {

class SharedMemoryCollectives final : public HostCollectives {
 public:
  /// Null on every rank where the ranks are on several hosts, or where one cannot have the memory.
  static std::unique_ptr<SharedMemoryCollectives> make(const ProcessGroup& group);

  /// Ranks are added in ascending order, bf16 in f32 and rounded once, by both reductions.
  void all_reduce(TensorView values, ReduceOp op) override;
  void all_reduce_in_order(TensorView out, std::span<const ConstTensorView> summands,
                           const SumOrder& order) override;
  void reduce_scatter(TensorView values, std::span<const Range> shares, ReduceOp op) override;
  void reduce_scatter_in_order(TensorView out, std::span<const ConstTensorView> summands,
                               std::span<const Range> shares, const SumOrder& order) override;
  void all_gather(TensorView values, std::span<const Range> shares) override;
  void broadcast(TensorView values, int root) override;

 private:
  static constexpr int kMaxRanks = 64;
  using Call = SharedMemoryCall;
  struct Header;
  // Of every rank's share a part, which lie one after another in the buffers.
  struct Piece {
    std::uint64_t number;                         // over all calls, from 1
    std::array<Range, kMaxRanks> parts;           // [rank]
    std::array<std::int64_t, kMaxRanks> offsets;  // [rank]: of its part in the buffers
    std::int64_t num_elements;                    // of all parts
  };
  // Whose parts a rank puts into its buffer.
  enum class Given { own, of_others };

  SharedMemoryCollectives(std::unique_ptr<SharedMemory> memory, int rank, int size);

  Header& header() const;
  // What a rank gives of a piece, and the sums of all.
  std::byte* contribution_of(int rank, std::uint64_t number) const;
  std::byte* result(std::uint64_t number) const;

  template <class PartOfRank>
  Piece cut(std::uint64_t number, const PartOfRank& part_of_rank) const;
  template <class Give, class Work>
  void pass_shares(std::span<const Range> shares, std::int64_t most, const Call& call,
                   const Give& give_piece, const Work& work);
  void gather(TensorView values, std::span<const Range> shares, const Call& call);
  template <class Give, class Reduce>
  void pass_sums(TensorView values, std::int64_t most, const Call& call, const Give& give_piece,
                 const Reduce& reduce_piece);

  // The steps of a piece's way.
  void give(const Piece& piece, ConstTensorView values, Given given, const Call& call) const;
  void give_all(const Piece& piece, std::span<const ConstTensorView> of_piece, Given given,
                const Call& call) const;
  void await(const Piece& piece, const Call& call) const;
  void reduce(const Piece& piece, TensorView values, ReduceOp op, std::byte* result) const;
  void reduce_in_order(const Piece& piece, TensorView out,
                       std::span<const ConstTensorView> summands, const SumOrder& order,
                       std::byte* result) const;
  void consumed(const Piece& piece) const;
  void take(const Piece& piece, int rank, TensorView values, const std::byte* buffer) const;

  std::unique_ptr<SharedMemory> memory_;
  int rank_;
  int size_;
  std::uint64_t num_pieces_ = 0;  // so far
};

}  // namespace redspine
