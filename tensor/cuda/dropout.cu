#include <numeric>

#include "tensor/cuda/cuda_kernels.h"
#include "tensor/cuda/elementwise.h"
#include "tensor/dropout.h"

namespace redspine::cuda {
namespace {

template <class T>
struct Drop {
  T* out;
  const T* x;
  const std::int64_t* samples;
  std::int64_t sample_size;
  std::int64_t first_element;  // of what is here of each sample
  DropoutRule rule;

  template <int width>
  __device__ void apply(std::int64_t i) const {
    const std::int64_t row = i / sample_size;
    const std::int64_t element = first_element + i - row * sample_size;
    const std::int64_t sample = samples[row];
    Floats<width> v = load<width>(x + i);
    if constexpr (width == 1) {
      const PhiloxCounter bits = philox4x32(rule.key, element_counter(sample, element));
      // By shifts: an index that varies would put `bits` into memory.
      const std::uint64_t low = std::uint64_t{bits[1]} << 32 | bits[0];
      const std::uint64_t high = std::uint64_t{bits[3]} << 32 | bits[2];
      const std::uint64_t pair = element % 4 < 2 ? low : high;
      v.values[0] *= rule.factor(static_cast<std::uint32_t>(pair >> (element % 2 * 32)));
    } else {
#pragma unroll
      for (int begin = 0; begin < width; begin += 4) {
        const PhiloxCounter bits = philox4x32(rule.key, element_counter(sample, element + begin));
#pragma unroll
        for (std::size_t j = 0; j < 4; ++j) v.values[begin + j] *= rule.factor(bits[j]);
      }
    }
    store(out + i, v);
  }
};

}  // namespace

void CudaKernels::run(const Dropout& op) const {
  const DropoutRule rule(op.dropout);
  if (!rule.active()) {
    if (op.out.raw() != op.x.raw()) {
      check_cuda(cudaMemcpyAsync(op.out.raw(), op.x.raw(), op.x.bytes(), cudaMemcpyDeviceToDevice,
                                 stream_),
                 "cudaMemcpyAsync");
    }
    return;
  }
  const std::int64_t sample_size = op.x.dim(1) * op.x.dim(2);
  const std::int64_t first_element = op.first_position * op.x.dim(2);
  with_type(op.x.dtype(), [&]<class T>() {
    const Drop<T> drop{
        elements<T>(op.out), elements<T>(op.x), elements<std::int64_t>(op.dropout.samples_B),
        sample_size,         first_element,     rule};
    // No access may reach from one sample into the next, nor begin in the midst of a counter's
    // four.
    const std::int64_t whole = std::gcd(sample_size, first_element);
    for_each_element<T>(stream_, drop, op.x.count(), access_to_rows<T>(whole, op.out, op.x));
  });
}

}  // namespace redspine::cuda
