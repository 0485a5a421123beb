// A kernel that cannot keep its values in registers: kernel_resources.py has to say so.

constexpr int kCount = 64;

__global__ void __launch_bounds__(1024, 2) spilling_kernel(float* values) {
  float kept[kCount];
#pragma unroll
  for (int i = 0; i < kCount; ++i) kept[i] = values[i * blockDim.x + threadIdx.x];
  __syncthreads();
#pragma unroll
  for (int i = 0; i < kCount; ++i) values[i * blockDim.x + threadIdx.x] = kept[kCount - 1 - i];
}
