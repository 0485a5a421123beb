// The kernels of the CPU: OpenMP over rows, columns or blocks, and vectorised loops inside.
//
// Each runs in the calling thread and its OpenMP team (the calling thread's default number), and
// has returned when its outputs are complete. Work is cut into pieces whose bounds do not depend on
// the number of threads, so neither do results. Stateless: one object serves any number of threads.
#pragma once

#include "tensor/kernels.h"

namespace redspine {

class CpuKernels final : public Kernels {
 public:
#define REDSPINE_RUN(Operation) void run(const Operation& op) const override;
  REDSPINE_FOR_EACH_OPERATION(REDSPINE_RUN)
#undef REDSPINE_RUN
};

}  // namespace redspine
