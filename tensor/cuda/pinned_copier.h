// Copies between the memory of the host and that of a device through page-locked memory of its own,
// in pieces, so that the host's side may be any memory and one piece travels while the next is
// filled. Work goes to one stream. Used from one thread; local.
#pragma once

#include <cuda_runtime.h>

#include <array>
#include <cstddef>

#include "tensor/cuda/handles.h"

namespace redspine::cuda {

class PinnedCopier {
 public:
  /// `stream` must outlive the copier, and be idle when the copier ends.
  explicit PinnedCopier(cudaStream_t stream);
  ~PinnedCopier();
  PinnedCopier(const PinnedCopier&) = delete;
  PinnedCopier& operator=(const PinnedCopier&) = delete;

  /// Has read `from_host` when it returns.
  void upload(void* to, const void* from_host, std::size_t bytes);
  /// Has written `to_host` when it returns.
  void download(void* to_host, const void* from, std::size_t bytes);

 private:
  static constexpr std::size_t kPieceBytes = std::size_t{2} << 20;

  struct Slot {
    std::byte* memory = nullptr;
    EventOwner is_free;  // what the stream did with it last
  };
  Slot& next_slot();

  cudaStream_t stream_;
  std::byte* memory_ = nullptr;
  std::array<Slot, 2> slots_;
  std::size_t next_ = 0;
};

}  // namespace redspine::cuda
