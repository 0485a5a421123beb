// The functions of cuBLASLt that are used, by those of the library that this machine has.

#include <cublasLt.h>

#include <string>

#include "tensor/loaded_library.h"

namespace {

using redspine::call;
using redspine::LoadedLibrary;

const LoadedLibrary& library() {
  static const LoadedLibrary opened("libcublasLt.so." + std::to_string(CUBLAS_VER_MAJOR),
                                    "run.device", "cpu");
  return opened;
}

}  // namespace

extern "C" {

const char* cublasLtGetStatusName(cublasStatus_t status) {
  return call<&cublasLtGetStatusName>(library, "cublasLtGetStatusName", status);
}

const char* cublasLtGetStatusString(cublasStatus_t status) {
  return call<&cublasLtGetStatusString>(library, "cublasLtGetStatusString", status);
}

std::size_t cublasLtGetVersion() {
  return call<&cublasLtGetVersion>(library, "cublasLtGetVersion");
}

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  return call<&cublasLtCreate>(library, "cublasLtCreate", handle);
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  return call<&cublasLtDestroy>(library, "cublasLtDestroy", handle);
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* product, cublasComputeType_t compute,
                                        cudaDataType_t scale) {
  return call<&cublasLtMatmulDescCreate>(library, "cublasLtMatmulDescCreate", product, compute,
                                         scale);
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t product) {
  return call<&cublasLtMatmulDescDestroy>(library, "cublasLtMatmulDescDestroy", product);
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t product,
                                              cublasLtMatmulDescAttributes_t attribute,
                                              const void* value, std::size_t bytes) {
  return call<&cublasLtMatmulDescSetAttribute>(library, "cublasLtMatmulDescSetAttribute", product,
                                               attribute, value, bytes);
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType type,
                                          std::uint64_t rows, std::uint64_t cols,
                                          std::int64_t stride) {
  return call<&cublasLtMatrixLayoutCreate>(library, "cublasLtMatrixLayoutCreate", layout, type,
                                           rows, cols, stride);
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  return call<&cublasLtMatrixLayoutDestroy>(library, "cublasLtMatrixLayoutDestroy", layout);
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  return call<&cublasLtMatmulPreferenceCreate>(library, "cublasLtMatmulPreferenceCreate",
                                               preference);
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  return call<&cublasLtMatmulPreferenceDestroy>(library, "cublasLtMatmulPreferenceDestroy",
                                                preference);
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void* value, std::size_t bytes) {
  return call<&cublasLtMatmulPreferenceSetAttribute>(
      library, "cublasLtMatmulPreferenceSetAttribute", preference, attribute, value, bytes);
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(
    cublasLtHandle_t handle, cublasLtMatmulDesc_t product, cublasLtMatrixLayout_t a,
    cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
    cublasLtMatmulPreference_t preference, int max_found,
    cublasLtMatmulHeuristicResult_t* results,  // [max_found]
    int* num_found) {
  return call<&cublasLtMatmulAlgoGetHeuristic>(library, "cublasLtMatmulAlgoGetHeuristic", handle,
                                               product, a, b, c, d, preference, max_found, results,
                                               num_found);
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t product,
                              const void* alpha, const void* a, cublasLtMatrixLayout_t a_layout,
                              const void* b, cublasLtMatrixLayout_t b_layout, const void* beta,
                              const void* c, cublasLtMatrixLayout_t c_layout, void* d,
                              cublasLtMatrixLayout_t d_layout,
                              const cublasLtMatmulAlgo_t* algorithm, void* workspace,
                              std::size_t workspace_bytes, cudaStream_t stream) {
  return call<&cublasLtMatmul>(library, "cublasLtMatmul", handle, product, alpha, a, a_layout, b,
                               b_layout, beta, c, c_layout, d, d_layout, algorithm, workspace,
                               workspace_bytes, stream);
}

}  // extern "C"
