#include "tensor/cuda/pinned_copier.h"

#include <algorithm>
#include <cstring>

#include "tensor/cuda/check.h"

namespace redspine::cuda {

PinnedCopier::PinnedCopier(cudaStream_t stream) : stream_(stream) {
  for (Slot& slot : slots_) slot.is_free = make_event();
  void* memory = nullptr;
  check_cuda(cudaHostAlloc(&memory, kPieceBytes * slots_.size(), cudaHostAllocDefault),
             "cudaHostAlloc");
  memory_ = static_cast<std::byte*>(memory);
  for (std::size_t i = 0; i < slots_.size(); ++i) slots_[i].memory = memory_ + i * kPieceBytes;
}

PinnedCopier::~PinnedCopier() { cudaFreeHost(memory_); }

PinnedCopier::Slot& PinnedCopier::next_slot() {
  Slot& slot = slots_[next_++ % slots_.size()];
  check_cuda(cudaEventSynchronize(slot.is_free.get()), "cudaEventSynchronize");
  return slot;
}

void PinnedCopier::upload(void* to, const void* from_host, std::size_t bytes) {
  for (std::size_t begin = 0; begin < bytes; begin += kPieceBytes) {
    const std::size_t count = std::min(kPieceBytes, bytes - begin);
    Slot& slot = next_slot();
    std::memcpy(slot.memory, static_cast<const std::byte*>(from_host) + begin, count);
    check_cuda(cudaMemcpyAsync(static_cast<std::byte*>(to) + begin, slot.memory, count,
                               cudaMemcpyHostToDevice, stream_),
               "cudaMemcpyAsync to the device");
    check_cuda(cudaEventRecord(slot.is_free.get(), stream_), "cudaEventRecord");
  }
}

void PinnedCopier::download(void* to_host, const void* from, std::size_t bytes) {
  const auto request = [&](Slot& slot, std::size_t begin) {
    check_cuda(
        cudaMemcpyAsync(slot.memory, static_cast<const std::byte*>(from) + begin,
                        std::min(kPieceBytes, bytes - begin), cudaMemcpyDeviceToHost, stream_),
        "cudaMemcpyAsync to the host");
    check_cuda(cudaEventRecord(slot.is_free.get(), stream_), "cudaEventRecord");
  };
  if (bytes == 0) return;
  Slot* arriving = &next_slot();
  request(*arriving, 0);
  for (std::size_t begin = 0; begin < bytes; begin += kPieceBytes) {
    Slot* following = nullptr;
    if (begin + kPieceBytes < bytes) {
      following = &next_slot();
      request(*following, begin + kPieceBytes);
    }
    check_cuda(cudaEventSynchronize(arriving->is_free.get()), "cudaEventSynchronize");
    std::memcpy(static_cast<std::byte*>(to_host) + begin, arriving->memory,
                std::min(kPieceBytes, bytes - begin));
    arriving = following;
  }
}

}  // namespace redspine::cuda
