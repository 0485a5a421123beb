// The functions of cuBLASLt.

#include <cublasLt.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <type_traits>

#include "tests/cuda_on_host/block.h"
#include "tests/cuda_on_host/device_memory.h"
#include "tests/cuda_on_host/device_queue.h"
#include "tests/cuda_on_host/matmul_problem.h"
#include "tests/cuda_on_host/poison.h"

namespace on_host {
namespace {

// What an algorithm of the heuristic asks for, if it is granted that much.
constexpr std::uint64_t kWorkspaceBytes = std::uint64_t{64} << 10;

// An algorithm remembers what it was made for, and is refused for anything else.
struct Algorithm {
  std::uint64_t problem;
  std::uint64_t workspace_bytes;
  std::array<std::uint32_t, 4> alignment;
  std::uint32_t epilogue_alignment;  // of the bias and the auxiliary matrix that it was shown
};
static_assert(sizeof(Algorithm) <= sizeof(cublasLtMatmulAlgo_t));

template <class T>
cublasStatus_t set(T& attribute, const void* value, std::size_t bytes) {
  if (value == nullptr || bytes != sizeof(T)) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(&attribute, value, sizeof(T));
  return CUBLAS_STATUS_SUCCESS;
}

bool is_aligned(const void* pointer, std::size_t bytes) {
  return reinterpret_cast<std::uintptr_t>(pointer) % bytes == 0;
}

// Of what an epilogue reads or writes besides, as far as vector accesses care.
std::uint32_t epilogue_alignment(const cublasLtMatmulDescOpaque_t& description) {
  std::uintptr_t bits = 256;
  if (has_bias(description.epilogue)) bits |= reinterpret_cast<std::uintptr_t>(description.bias);
  if (has_aux(description.epilogue)) bits |= reinterpret_cast<std::uintptr_t>(description.aux);
  return static_cast<std::uint32_t>(bits & (~bits + 1));
}

struct Reach {
  const char* name;
  const void* memory;
  std::size_t bytes;
};

// A real device would fault, or read and write what is none of its business.
void check_reach(const Reach& reach) {
  if (!device_memory().holds(reach.memory, reach.bytes)) {
    throw KernelFault(fmt::format("cublasLtMatmul: the {} bytes of {} are not within an allocation",
                                  reach.bytes, reach.name));
  }
}

void check_reaches(const MatmulProblem& problem, const MatmulOperands& operands) {
  check_reach({"A", operands.a, extent(problem.a)});
  check_reach({"B", operands.b, extent(problem.b)});
  if (operands.beta != 0.0F) check_reach({"C", operands.c, extent(problem.c)});
  check_reach({"D", operands.d, extent(problem.d)});
  const cublasLtMatmulDescOpaque_t& description = problem.description;
  if (has_bias(description.epilogue) || has_bias_gradient(description.epilogue)) {
    const std::int64_t count =
        description.epilogue == CUBLASLT_EPILOGUE_BGRADB ? problem.n() : problem.m();
    check_reach(
        {"the bias", description.bias, static_cast<std::size_t>(count) * size_of(problem.d.type)});
  }
  if (has_aux(description.epilogue)) {
    Layout aux = problem.d;
    aux.ld = description.aux_ld;
    check_reach({"the auxiliary matrix", description.aux, extent(aux)});
  }
}

}  // namespace
}  // namespace on_host

using on_host::Algorithm;
using on_host::MatmulOperands;
using on_host::MatmulProblem;

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  *handle = new cublasLtContext;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}

std::size_t cublasLtGetVersion() { return 130000; }

const char* cublasLtGetStatusName(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_SUCCESS:
      return "CUBLAS_STATUS_SUCCESS";
    case CUBLAS_STATUS_NOT_INITIALIZED:
      return "CUBLAS_STATUS_NOT_INITIALIZED";
    case CUBLAS_STATUS_ALLOC_FAILED:
      return "CUBLAS_STATUS_ALLOC_FAILED";
    case CUBLAS_STATUS_INVALID_VALUE:
      return "CUBLAS_STATUS_INVALID_VALUE";
    case CUBLAS_STATUS_ARCH_MISMATCH:
      return "CUBLAS_STATUS_ARCH_MISMATCH";
    case CUBLAS_STATUS_EXECUTION_FAILED:
      return "CUBLAS_STATUS_EXECUTION_FAILED";
    case CUBLAS_STATUS_INTERNAL_ERROR:
      return "CUBLAS_STATUS_INTERNAL_ERROR";
    case CUBLAS_STATUS_NOT_SUPPORTED:
      return "CUBLAS_STATUS_NOT_SUPPORTED";
  }
  return "a status that the stand-in does not know";
}

const char* cublasLtGetStatusString(cublasStatus_t status) { return cublasLtGetStatusName(status); }

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType type,
                                          std::uint64_t rows, std::uint64_t cols, std::int64_t ld) {
  *layout = new cublasLtMatrixLayoutOpaque_t{.type = type,
                                             .rows = static_cast<std::int64_t>(rows),
                                             .cols = static_cast<std::int64_t>(cols),
                                             .ld = ld};
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  delete layout;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* description,
                                        cublasComputeType_t compute_type,
                                        cudaDataType_t scale_type) {
  if (compute_type != CUBLAS_COMPUTE_32F || scale_type != CUDA_R_32F) {
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  *description = new cublasLtMatmulDescOpaque_t;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t description) {
  delete description;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t description,
                                              cublasLtMatmulDescAttributes_t attribute,
                                              const void* value, std::size_t bytes) {
  switch (attribute) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
      return on_host::set(description->transpose_a, value, bytes);
    case CUBLASLT_MATMUL_DESC_TRANSB:
      return on_host::set(description->transpose_b, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
      return on_host::set(description->epilogue, value, bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
      return on_host::set(description->bias, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER:
      return on_host::set(description->aux, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD:
      return on_host::set(description->aux_ld, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE:
      return on_host::set(description->aux_type, value, bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE:
      return on_host::set(description->bias_type, value, bytes);
  }
  return CUBLAS_STATUS_NOT_SUPPORTED;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  *preference = new cublasLtMatmulPreferenceOpaque_t;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  delete preference;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void* value, std::size_t bytes) {
  switch (attribute) {
    case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES:
      return on_host::set(preference->workspace_bytes, value, bytes);
    case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK:
      return on_host::set(preference->reduction_schemes, value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES:
      return on_host::set(preference->alignment[0], value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES:
      return on_host::set(preference->alignment[1], value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES:
      return on_host::set(preference->alignment[2], value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES:
      return on_host::set(preference->alignment[3], value, bytes);
  }
  return CUBLAS_STATUS_NOT_SUPPORTED;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle,
                                              cublasLtMatmulDesc_t description,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int num_wanted,
                                              cublasLtMatmulHeuristicResult_t results[],
                                              int* num_found) {
  *num_found = 0;
  if (handle == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (num_wanted < 1) return CUBLAS_STATUS_INVALID_VALUE;
  const MatmulProblem problem{*description, *a, *b, *c, *d};
  const cublasStatus_t status = check(problem);
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  // For tests of what is done where a library has no epilogues for a product.
  if (description->epilogue != CUBLASLT_EPILOGUE_DEFAULT &&
      std::getenv("REDSPINE_ON_HOST_NO_EPILOGUES") != nullptr) {
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  const Algorithm algorithm{
      .problem = problem.hash(),
      .workspace_bytes = std::min(preference->workspace_bytes, on_host::kWorkspaceBytes),
      .alignment = preference->alignment,
      .epilogue_alignment = on_host::epilogue_alignment(*description)};
  cublasLtMatmulHeuristicResult_t& result = results[0];
  result = {};
  std::memcpy(&result.algo, &algorithm, sizeof algorithm);
  result.workspaceSize = algorithm.workspace_bytes;
  result.state = CUBLAS_STATUS_SUCCESS;
  result.wavesCount = 1.0F;
  *num_found = 1;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t description,
                              const void* alpha, const void* a, cublasLtMatrixLayout_t a_layout,
                              const void* b, cublasLtMatrixLayout_t b_layout, const void* beta,
                              const void* c, cublasLtMatrixLayout_t c_layout, void* d,
                              cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t* algo,
                              void* workspace, std::size_t workspace_bytes, cudaStream_t stream) {
  if (handle == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  const MatmulProblem problem{*description, *a_layout, *b_layout, *c_layout, *d_layout};
  const cublasStatus_t status = check(problem);
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  if (algo == nullptr) return CUBLAS_STATUS_NOT_SUPPORTED;  // not imitated: ask the heuristic
  Algorithm algorithm{};
  std::memcpy(&algorithm, algo, sizeof algorithm);
  if (algorithm.problem != problem.hash()) return CUBLAS_STATUS_INVALID_VALUE;
  if (workspace_bytes < algorithm.workspace_bytes || !on_host::is_aligned(workspace, 16)) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  if (!on_host::is_aligned(a, algorithm.alignment[0]) ||
      !on_host::is_aligned(b, algorithm.alignment[1]) ||
      !on_host::is_aligned(c, algorithm.alignment[2]) ||
      !on_host::is_aligned(d, algorithm.alignment[3]) ||
      on_host::epilogue_alignment(*description) < algorithm.epilogue_alignment) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  // In place or not at all: C and D of the same memory must be the same matrix.
  if (c == d && !(problem.c == problem.d)) return CUBLAS_STATUS_INVALID_VALUE;

  MatmulOperands operands{};
  std::memcpy(&operands.alpha, alpha, sizeof operands.alpha);
  std::memcpy(&operands.beta, beta, sizeof operands.beta);
  operands.a = a;
  operands.b = b;
  operands.c = c;
  operands.d = d;
  const cudaError_t error = on_host::DeviceQueue::instance().give(
      stream, [problem, operands, workspace, used = algorithm.workspace_bytes] {
        on_host::check_reaches(problem, operands);
        if (used > 0) {
          on_host::check_reach({"the workspace", workspace, used});
          std::memset(workspace, on_host::kPoison, used);  // whoever else uses it now, loses
        }
        on_host::compute(problem, operands);
        return true;
      });
  return error == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}
