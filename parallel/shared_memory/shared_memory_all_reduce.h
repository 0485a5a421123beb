// All-reduce between ranks of one host through memory that they share: each rank reduces its share
// of a piece for all. Copies are those of memory alone, and pieces stay in the caches.
//
// Construction is collective over the group, and so are the calls, by one thread at a time;
// destruction is local. A rank that waits sleeps; one that died is the launcher's to notice, which
// ends those who wait.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "parallel/group/process_group.h"
#include "parallel/shared_memory/shared_memory.h"
#include "tensor/view.h"

namespace redspine {

class SharedMemoryAllReduce {
 public:
  /// Null on every rank where the ranks are on several hosts, or where one cannot have the memory.
  static std::unique_ptr<SharedMemoryAllReduce> make(const ProcessGroup& group);

  /// In place, in host memory; ranks are added in ascending order, bf16 in f32 and rounded once.
  /// Throws Error where the ranks' calls differ in their length.
  void all_reduce(TensorView values, ReduceOp op);

 private:
  struct Header;
  SharedMemoryAllReduce(std::unique_ptr<SharedMemory> memory, int rank, int size);

  struct Piece {
    TensorView values;
    std::uint64_t number;  // over all calls, from 1
  };
  Header& header() const;
  // What a rank gives of a piece, and what all of them get.
  std::byte* contribution_of(int rank, std::uint64_t number) const;
  std::byte* result(std::uint64_t number) const;
  void copy_share(const Piece& piece, int rank, std::byte* to, const std::byte* from) const;

  // The three parts of each piece's way: this rank's values to the others, its share added up for
  // all, and the others' shares back.
  void give(const Piece& piece);
  void reduce(const Piece& piece, ReduceOp op);
  void take(const Piece& piece) const;

  std::unique_ptr<SharedMemory> memory_;
  int rank_;
  int size_;
  std::uint64_t num_pieces_ = 0;  // so far
};

}  // namespace redspine
