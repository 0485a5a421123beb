#include "tensor/cuda/matmul_plans.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <initializer_list>

#include "tensor/cuda/check.h"
#include "tensor/error.h"

namespace redspine::cuda {
namespace {

void check_cublas(cublasStatus_t status, const char* call, const char* file = __builtin_FILE(),
                  int line = __builtin_LINE()) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw Error(fmt::format("{} failed: {} ({})", call, cublasLtGetStatusString(status),
                          cublasLtGetStatusName(status)),
              file, line);
}

cudaDataType_t library_type(DType dtype) { return dtype == DType::bf16 ? CUDA_R_16BF : CUDA_R_32F; }

cublasOperation_t library_operation(Transpose transpose) {
  return transpose == Transpose::yes ? CUBLAS_OP_T : CUBLAS_OP_N;
}

std::uint32_t alignment_of(std::initializer_list<const void*> operands) {
  std::uintptr_t bits = 256;
  for (const void* operand : operands) bits |= reinterpret_cast<std::uintptr_t>(operand);
  return static_cast<std::uint32_t>(bits & (~bits + 1));
}

ProductShape shape_of(const Product& product) {
  const TensorView& out = product.out.view;
  const ConstTensorView& a = product.a.view;
  return {.m = out.rows(),
          .n = out.cols(),
          .k = product.transpose_a == Transpose::yes ? a.rows() : a.cols(),
          .out_stride = product.out.stride,
          .a_stride = product.a.stride,
          .b_stride = product.b.stride,
          .transpose_a = product.transpose_a,
          .transpose_b = product.transpose_b,
          .input = a.dtype(),
          .output = out.dtype(),
          .epilogue = product.epilogue,
          .alignment = alignment_of({a.raw(), product.b.view.raw(), out.raw()}),
          .epilogue_alignment = alignment_of({product.bias.raw(), product.aux.raw()})};
}

cublasLtEpilogue_t library_epilogue(Epilogue epilogue) {
  switch (epilogue) {
    case Epilogue::none:
      return CUBLASLT_EPILOGUE_DEFAULT;
    case Epilogue::bias:
      return CUBLASLT_EPILOGUE_BIAS;
    case Epilogue::gelu:
      return CUBLASLT_EPILOGUE_GELU_AUX;
    case Epilogue::bias_gelu:
      return CUBLASLT_EPILOGUE_GELU_AUX_BIAS;
    case Epilogue::gelu_slope:
      return CUBLASLT_EPILOGUE_DGELU;
  }
  throw Error("unknown epilogue");
}

bool has_bias(Epilogue epilogue) {
  return epilogue == Epilogue::bias || epilogue == Epilogue::bias_gelu;
}
bool has_aux(Epilogue epilogue) { return epilogue != Epilogue::none && epilogue != Epilogue::bias; }

template <class Value>
void set(cublasLtMatmulDesc_t description, cublasLtMatmulDescAttributes_t attribute, Value value) {
  check_cublas(cublasLtMatmulDescSetAttribute(description, attribute, &value, sizeof(value)),
               "cublasLtMatmulDescSetAttribute");
}

template <class Value>
void set(cublasLtMatmulPreference_t preference, cublasLtMatmulPreferenceAttributes_t attribute,
         Value value) {
  check_cublas(cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof(value)),
               "cublasLtMatmulPreferenceSetAttribute");
}

// A row-major matrix, as the column-major one that its memory is.
template <class View>
cublasLtMatrixLayout_t make_layout(const MatrixRows<View>& matrix) {
  cublasLtMatrixLayout_t layout = nullptr;
  check_cublas(
      cublasLtMatrixLayoutCreate(&layout, library_type(matrix.view.dtype()),
                                 static_cast<std::uint64_t>(matrix.view.cols()),
                                 static_cast<std::uint64_t>(matrix.view.rows()), matrix.stride),
      "cublasLtMatrixLayoutCreate");
  return layout;
}

void set_pointers(cublasLtMatmulDesc_t description, const Product& product) {
  if (has_bias(product.epilogue)) {
    set(description, CUBLASLT_MATMUL_DESC_BIAS_POINTER, product.bias.raw());
  }
  if (has_aux(product.epilogue)) {
    set(description, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, product.aux.raw());
  }
}

struct DestroyPreference {
  void operator()(cublasLtMatmulPreference_t preference) const {
    cublasLtMatmulPreferenceDestroy(preference);
  }
};

}  // namespace

void MatmulPlans::DestroyDescription::operator()(cublasLtMatmulDesc_t description) const {
  cublasLtMatmulDescDestroy(description);
}

void MatmulPlans::DestroyDescription::operator()(cublasLtMatrixLayout_t layout) const {
  cublasLtMatrixLayoutDestroy(layout);
}

MatmulPlans::MatmulPlans() { check_cublas(cublasLtCreate(&library_), "cublasLtCreate"); }

MatmulPlans::~MatmulPlans() {
  plans_.clear();
  cublasLtDestroy(library_);
}

std::optional<MatmulPlans::Plan> MatmulPlans::make_plan(const Product& product) const {
  const ProductShape shape = shape_of(product);
  Plan plan{};
  // Sums in f32, and products of f32 in f32 as well: TF32 would be another kind of computation.
  cublasLtMatmulDesc_t description = nullptr;
  check_cublas(cublasLtMatmulDescCreate(&description, CUBLAS_COMPUTE_32F, CUDA_R_32F),
               "cublasLtMatmulDescCreate");
  plan.description.reset(description);
  set(description, CUBLASLT_MATMUL_DESC_TRANSA, library_operation(shape.transpose_b));
  set(description, CUBLASLT_MATMUL_DESC_TRANSB, library_operation(shape.transpose_a));
  set(description, CUBLASLT_MATMUL_DESC_EPILOGUE, library_epilogue(shape.epilogue));
  set_pointers(description, product);  // the library looks at them when it chooses
  if (has_aux(shape.epilogue)) set(description, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, shape.n);
  plan.first.reset(make_layout(product.b));
  plan.second.reset(make_layout(product.a));
  plan.out.reset(make_layout(product.out));

  cublasLtMatmulPreference_t created = nullptr;
  check_cublas(cublasLtMatmulPreferenceCreate(&created), "cublasLtMatmulPreferenceCreate");
  const std::unique_ptr<std::remove_pointer_t<cublasLtMatmulPreference_t>, DestroyPreference>
      preference(created);
  set(created, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, std::uint64_t{Scratch::kBytes});
  for (const auto operand :
       {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
    set(created, operand, shape.alignment);
  }
  // Where a sum is split, its parts meet in f32, and not in the type of the output.
  set(created, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
      std::uint32_t{CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE});

  cublasLtMatmulHeuristicResult_t result{};
  int num_results = 0;
  const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
      library_, description, plan.first.get(), plan.second.get(), plan.out.get(), plan.out.get(),
      created, 1, &result, &num_results);
  const bool has_none = status == CUBLAS_STATUS_NOT_SUPPORTED || num_results == 0;
  if (has_none && shape.epilogue != Epilogue::none) return std::nullopt;
  if (status != CUBLAS_STATUS_SUCCESS || has_none) {
    throw Error(fmt::format("cuBLASLt has no way to multiply [{}, {}] {} by [{}, {}] to {}: {}",
                            shape.m, shape.k, name_of(shape.input), shape.k, shape.n,
                            name_of(shape.output), cublasLtGetStatusName(status)));
  }
  plan.algorithm = result.algo;
  return plan;
}

const MatmulPlans::Plan* MatmulPlans::plan_for(const Product& product) {
  const ProductShape shape = shape_of(product);
  auto found = plans_.find(shape);
  if (found == plans_.end()) found = plans_.emplace(shape, make_plan(product)).first;
  return found->second ? &*found->second : nullptr;
}

bool MatmulPlans::run(const Product& product, Scratch& scratch, cudaStream_t stream) {
  const Plan* plan = plan_for(product);
  if (plan == nullptr) return false;
  cublasLtMatmulDesc_t description = plan->description.get();
  set_pointers(description, product);
  const float alpha = 1.0F;
  void* out = product.out.view.raw();
  check_cublas(
      cublasLtMatmul(library_, description, &alpha, product.b.view.raw(), plan->first.get(),
                     product.a.view.raw(), plan->second.get(), &product.beta, out, plan->out.get(),
                     out, plan->out.get(), &plan->algorithm, scratch.bytes(Scratch::kBytes),
                     Scratch::kBytes, stream),
      "cublasLtMatmul");
  return true;
}

}  // namespace redspine::cuda
