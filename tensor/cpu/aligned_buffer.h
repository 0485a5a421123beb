// Scratch memory of a thread, aligned for vectors. Contents are undefined at first.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>

namespace redspine {

class AlignedBuffer {
 public:
  explicit AlignedBuffer(std::int64_t num_floats)
      : memory_(static_cast<float*>(std::aligned_alloc(kAlignment, bytes(num_floats)))) {
    if (memory_ == nullptr) throw std::bad_alloc();
  }

  float* data() const { return memory_.get(); }

 private:
  static constexpr std::size_t kAlignment = 64;
  static std::size_t bytes(std::int64_t num_floats) {
    const auto needed = static_cast<std::size_t>(num_floats) * sizeof(float);
    return (needed + kAlignment - 1) / kAlignment * kAlignment;
  }
  struct Free {
    void operator()(float* memory) const { std::free(memory); }
  };

  std::unique_ptr<float[], Free> memory_;
};

}  // namespace redspine
