// Attention in bf16 by cuDNN's fused scaled-dot-product kernels, forward and backward. Heads are
// read and written where they lie in packed rows, by strides. cuDNN is opened when the device is,
// so that the program also starts, with its own kernels, on a machine that has none.
#include <cudnn_frontend.h>
#include <dlfcn.h>
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <unordered_map>
#include <utility>

#include "tensor/cuda/access.h"
#include "tensor/cuda/fused_attention.h"
#include "tensor/error.h"

namespace cudnn_frontend {
void* cudnn_dlhandle = nullptr;  // NOLINT: the frontend declares it, and calls cuDNN through it
}

namespace redspine::cuda {
namespace {

namespace fe = cudnn_frontend;

enum Uid : std::int64_t { kQ = 1, kK, kV, kO, kStatistics, kDO, kDQ, kDK, kDV };

using Graph = fe::graph::Graph;
using TensorDescription = std::shared_ptr<fe::graph::Tensor_attributes>;

// All that a graph depends on.
struct Geometry {
  std::int64_t batch;
  std::int64_t length;
  std::int64_t num_heads;
  std::int64_t num_kv_heads;
  std::int64_t head_size;

  auto operator<=>(const Geometry&) const = default;

  Geometry(const HeadLayout& heads, const ConstTensorView& qkv)
      : batch(qkv.dim(0)),
        length(qkv.dim(1)),
        num_heads(heads.num_heads),
        num_kv_heads(heads.num_kv_heads),
        head_size(heads.head_size) {}

  float score_scale() const { return 1.0F / std::sqrt(static_cast<float>(head_size)); }
  std::int64_t packed_row() const { return (num_heads + 2 * num_kv_heads) * head_size; }
};

// Query heads share key and value heads by equal groups of neighbours, or all share one.
bool has_whole_groups(const HeadLayout& heads) {
  return heads.num_kv_heads == 1 || (heads.first_query % heads.queries_per_kv == 0 &&
                                     heads.num_heads == heads.num_kv_heads * heads.queries_per_kv);
}

// What the library is made for. Its dropout would drop other elements than ours.
template <class... Views>
bool fits(const HeadLayout& heads, const DropoutKey& dropout, const ConstTensorView& qkv,
          const Views&... views) {
  constexpr std::int64_t kMaxHeadSize = 128;
  return qkv.dtype() == DType::bf16 && qkv.count() != 0 && dropout.probability == 0.0F &&
         heads.head_size <= kMaxHeadSize && has_whole_groups(heads) &&
         access_to_rows<BFloat>(heads.head_size, qkv, views...) == Access::full;
}

// [B, heads, T, K] of a tensor whose rows are `row_size` long.
fe::graph::Tensor_attributes heads_in_rows(const Geometry& g, Uid uid, std::int64_t num_heads,
                                           std::int64_t row_size) {
  return fe::graph::Tensor_attributes()
      .set_uid(uid)
      .set_dim({g.batch, num_heads, g.length, g.head_size})
      .set_stride({g.length * row_size, g.head_size, row_size, 1});
}

fe::graph::Tensor_attributes packed_heads(const Geometry& g, Uid uid, std::int64_t num_heads) {
  return heads_in_rows(g, uid, num_heads, g.packed_row());
}

fe::graph::Tensor_attributes context_heads(const Geometry& g, Uid uid) {
  return heads_in_rows(g, uid, g.num_heads, g.num_heads * g.head_size);
}

fe::graph::Tensor_attributes statistics(const Geometry& g) {
  return fe::graph::Tensor_attributes()
      .set_uid(kStatistics)
      .set_dim({g.batch, g.num_heads, g.length, 1})
      .set_stride({g.num_heads * g.length, g.length, 1, 1})
      .set_data_type(fe::DataType_t::FLOAT);
}

void make_output(const TensorDescription& tensor, const fe::graph::Tensor_attributes& like) {
  tensor->set_output(true)
      .set_uid(like.get_uid())
      .set_dim(like.get_dim())
      .set_stride(like.get_stride())
      .set_data_type(like.get_data_type() == fe::DataType_t::NOT_SET ? fe::DataType_t::BFLOAT16
                                                                     : like.get_data_type());
}

std::unique_ptr<Graph> empty_graph() {
  auto graph = std::make_unique<Graph>();
  graph->set_io_data_type(fe::DataType_t::BFLOAT16)
      .set_intermediate_data_type(fe::DataType_t::FLOAT)
      .set_compute_data_type(fe::DataType_t::FLOAT);
  return graph;
}

std::unique_ptr<Graph> forward_graph(const Geometry& g) {
  auto graph = empty_graph();
  const auto [context, log_sum_exp] =
      graph->sdpa(graph->tensor(packed_heads(g, kQ, g.num_heads)),
                  graph->tensor(packed_heads(g, kK, g.num_kv_heads)),
                  graph->tensor(packed_heads(g, kV, g.num_kv_heads)),
                  fe::graph::SDPA_attributes()
                      .set_name("attention")
                      .set_generate_stats(true)
                      .set_causal_mask(true)
                      .set_attn_scale(g.score_scale()));
  make_output(context, context_heads(g, kO));
  make_output(log_sum_exp, statistics(g));
  return graph;
}

std::unique_ptr<Graph> backward_graph(const Geometry& g) {
  auto graph = empty_graph();
  const auto [dq, dk, dv] = graph->sdpa_backward(
      graph->tensor(packed_heads(g, kQ, g.num_heads)),
      graph->tensor(packed_heads(g, kK, g.num_kv_heads)),
      graph->tensor(packed_heads(g, kV, g.num_kv_heads)), graph->tensor(context_heads(g, kO)),
      graph->tensor(context_heads(g, kDO)), graph->tensor(statistics(g)),
      fe::graph::SDPA_backward_attributes()
          .set_name("attention_backward")
          .set_causal_mask(true)
          .set_deterministic_algorithm(true)
          .set_attn_scale(g.score_scale()));
  make_output(dq, packed_heads(g, kDQ, g.num_heads));
  make_output(dk, packed_heads(g, kDK, g.num_kv_heads));
  make_output(dv, packed_heads(g, kDV, g.num_kv_heads));
  return graph;
}

// Where the parts of packed rows begin.
struct PackedParts {
  BFloat* query;
  BFloat* key;
  BFloat* value;

  PackedParts(const void* packed, const Geometry& g)
      : query(static_cast<BFloat*>(const_cast<void*>(packed))),  // the library takes no const
        key(query + g.num_heads * g.head_size),
        value(key + g.num_kv_heads * g.head_size) {}
};

class CudnnAttention final : public FusedAttention {
 public:
  CudnnAttention(cudnnHandle_t library, Scratch& scratch) : library_(library), scratch_(scratch) {}
  ~CudnnAttention() override { fe::detail::destroy_handle(library_); }

  bool run(const Attention& op) override {
    if (!fits(op.heads, op.dropout, op.qkv, op.context)) return false;
    const Geometry geometry(op.heads, op.qkv);
    const PackedParts in(op.qkv.raw(), geometry);
    return execute(find(forward_, geometry, forward_graph),
                   {{kQ, in.query},
                    {kK, in.key},
                    {kV, in.value},
                    {kO, op.context.raw()},
                    {kStatistics, op.log_sum_exp_BhT.raw()}});
  }

  bool run(const AttentionBackward& op) override {
    if (!fits(op.heads, op.dropout, op.qkv, op.context, op.dcontext, op.dqkv)) return false;
    const Geometry geometry(op.heads, op.qkv);
    const PackedParts in(op.qkv.raw(), geometry);
    const PackedParts out(op.dqkv.raw(), geometry);
    return execute(find(backward_, geometry, backward_graph),
                   {{kQ, in.query},
                    {kK, in.key},
                    {kV, in.value},
                    {kO, const_cast<void*>(op.context.raw())},
                    {kDO, const_cast<void*>(op.dcontext.raw())},
                    {kStatistics, const_cast<void*>(op.log_sum_exp_BhT.raw())},
                    {kDQ, out.query},
                    {kDK, out.key},
                    {kDV, out.value}});
  }

 private:
  // Null for what the library cannot compute.
  using Graphs = std::map<Geometry, std::unique_ptr<Graph>>;

  template <class Make>
  Graph* find(Graphs& graphs, const Geometry& geometry, Make make) {
    const auto [place, is_new] = graphs.try_emplace(geometry);
    if (is_new) {
      auto graph = make(geometry);
      if (graph->build(library_, {fe::HeurMode_t::A}).is_good()) place->second = std::move(graph);
    }
    return place->second.get();
  }

  bool execute(Graph* graph, std::unordered_map<std::int64_t, void*> tensors) {
    if (graph == nullptr) return false;
    std::int64_t bytes = 0;
    check(graph->get_workspace_size(bytes), "the workspace");
    void* workspace = scratch_.bytes(static_cast<std::size_t>(bytes));
    check(graph->execute(library_, tensors, workspace), "the execution");
    return true;
  }

  // What it has planned it must do: other kernels would hide that something is wrong, and how slow.
  static void check(fe::error_t error, const char* what) {
    if (error.is_bad()) {
      throw Error(fmt::format("cuDNN attention: {} failed: {}", what, error.get_message()));
    }
  }

  cudnnHandle_t library_;
  Scratch& scratch_;
  Graphs forward_;
  Graphs backward_;
};

}  // namespace

std::unique_ptr<FusedAttention> make_fused_attention(cudaStream_t stream, Scratch& scratch) {
  if (fe::cudnn_dlhandle == nullptr) {
    fe::cudnn_dlhandle = dlopen("libcudnn.so.9", RTLD_NOW | RTLD_GLOBAL);
  }
  if (fe::cudnn_dlhandle == nullptr) return nullptr;
  cudnnHandle_t library = nullptr;
  if (fe::detail::create_handle(&library) != CUDNN_STATUS_SUCCESS) return nullptr;
  auto attention = std::make_unique<CudnnAttention>(library, scratch);
  if (fe::detail::set_stream(library, stream) != CUDNN_STATUS_SUCCESS) return nullptr;
  return attention;
}

}  // namespace redspine::cuda
