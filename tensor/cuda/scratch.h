// Device memory for what a kernel keeps between two launches on one stream: partial sums, and the
// workspace of library calls. Owned by the kernels; contents last until the next use. Local.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

namespace redspine::cuda {

class Scratch {
 public:
  /// What products are lent, and enough for the partial sums of norms of up to 8192 columns.
  static constexpr std::size_t kBytes = std::size_t{32} << 20;

  explicit Scratch(cudaStream_t stream);
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  /// Memory of at least `bytes`, aligned to 256 bytes. Grows where it must, and then waits for the
  /// stream: in the first step at most, since a run's shapes do not change.
  void* bytes(std::size_t bytes);
  template <class T>
  T* elements(std::int64_t count) {
    return static_cast<T*>(bytes(static_cast<std::size_t>(count) * sizeof(T)));
  }

 private:
  cudaStream_t stream_;
  void* memory_ = nullptr;
  std::size_t size_bytes_ = 0;
};

}  // namespace redspine::cuda
