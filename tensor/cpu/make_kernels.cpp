// The one function of a compilation of the kernels that others call. REDSPINE_KERNEL_SET, its
// namespace, is given by the build (tensor/CMakeLists.txt).

#include <memory>

#include "tensor/cpu/cpu_kernels.h"

namespace redspine::REDSPINE_KERNEL_SET {

std::unique_ptr<const Kernels> make_kernels();  // defined once for each set, called by its name

std::unique_ptr<const Kernels> make_kernels() { return std::make_unique<CpuKernels>(); }

}  // namespace redspine::REDSPINE_KERNEL_SET
