#include "model/transformers/stored_tensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <iterator>
#include <utility>

#include "model/block.h"
#include "model/model_spec.h"
#include "tensor/transpose_square.h"

namespace redspine {
namespace {

// A module of ours, without the name of its block, and what a family calls it. Several of ours
// under one name lie side by side in its columns.
struct StoredName {
  std::string_view own;
  std::string_view stored;
  Orientation of_matrix = Orientation::as_is;
};

constexpr StoredName kGpt2Names[] = {
    {"embedding", "transformer.wte"},
    {"position", "transformer.wpe"},
    {"norm1", "ln_1"},
    {"attention.query", "attn.c_attn", Orientation::transposed},
    {"attention.key", "attn.c_attn", Orientation::transposed},
    {"attention.value", "attn.c_attn", Orientation::transposed},
    {"attention.output", "attn.c_proj", Orientation::transposed},
    {"norm2", "ln_2"},
    {"mlp.up", "mlp.c_fc", Orientation::transposed},
    {"mlp.down", "mlp.c_proj", Orientation::transposed},
    {"final_norm", "transformer.ln_f"},
    {"head", "lm_head"},
};
constexpr StoredName kLlamaNames[] = {
    {"embedding", "model.embed_tokens"},
    {"norm1", "input_layernorm"},
    {"attention.query", "self_attn.q_proj"},
    {"attention.key", "self_attn.k_proj"},
    {"attention.value", "self_attn.v_proj"},
    {"attention.output", "self_attn.o_proj"},
    {"norm2", "post_attention_layernorm"},
    {"mlp.gate", "mlp.gate_proj"},
    {"mlp.up", "mlp.up_proj"},
    {"mlp.down", "mlp.down_proj"},
    {"final_norm", "model.norm"},
    {"head", "lm_head"},
};

// How one family stores what a model declares.
struct Naming {
  std::span<const StoredName> modules;  // none: each under its own name, as it is
  const char* block;                    // before the number of a block
};

Naming naming_of(StoredFamily family) {
  switch (family) {
    case StoredFamily::gpt2:
      return {kGpt2Names, "transformer.h"};
    case StoredFamily::llama:
      return {kLlamaNames, "model.layers"};
    case StoredFamily::redspine:
      return {{}, "blocks"};
  }
  __builtin_unreachable();
}

StoredName stored_name(const Naming& naming, std::string_view module) {
  if (naming.modules.empty()) return {module, module};
  const auto found = std::find_if(naming.modules.begin(), naming.modules.end(),
                                  [&](const StoredName& name) { return name.own == module; });
  if (found == naming.modules.end()) throw Error(fmt::format("{} has no stored name", module));
  return *found;
}

// Lays a parameter beside the parts that the tensor has.
void add_part(StoredTensor& tensor, const ParameterSpec& parameter) {
  const Shape& shape = parameter.global_shape;
  const bool is_transposed = tensor.orientation == Orientation::transposed;
  const std::int64_t begin = tensor.parts.empty() ? 0 : tensor.num_columns();
  const std::int64_t end = begin + (is_transposed ? shape[0] : shape[shape.rank() - 1]);
  tensor.shape = shape.rank() == 1 ? Shape{end} : Shape{is_transposed ? shape[1] : shape[0], end};
  tensor.parts.push_back({parameter.name, shape, {begin, end}});
}

std::vector<StoredTensor> stored_layer(const LayerSpec& layer, const Naming& naming) {
  std::vector<StoredTensor> tensors;
  for (const ParameterSpec& parameter : layer.parameters) {
    const std::string_view own = parameter.name;
    const std::size_t dot = own.rfind('.');
    const StoredName module = stored_name(naming, own.substr(0, dot));
    const std::string name = fmt::format("{}{}", module.stored, own.substr(dot));
    auto tensor = std::find_if(tensors.begin(), tensors.end(),
                               [&](const StoredTensor& other) { return other.name == name; });
    if (tensor == tensors.end()) {
      const bool is_matrix = parameter.global_shape.rank() == 2;
      tensors.push_back({.name = name,
                         .shape = {0},
                         .orientation = is_matrix ? module.of_matrix : Orientation::as_is,
                         .parts = {}});
      tensor = std::prev(tensors.end());
    }
    add_part(*tensor, parameter);
  }
  return tensors;
}

struct Matrix {
  std::int64_t num_rows;
  std::int64_t num_columns;
  std::int64_t row_stride;
};

// to[row][column] = from[column][row], in tiles of whole cache lines on both sides.
void transpose(float* to, const Matrix& shape, const float* from, std::int64_t from_stride) {
  constexpr std::int64_t kTile = 16;
  constexpr int kSquare = 8;
  const auto transpose_tile = [&](Range rows, Range columns) {
    for (std::int64_t row = rows.begin; row < rows.end; row += kSquare) {
      for (std::int64_t column = columns.begin; column < columns.end; column += kSquare) {
        transpose_square<kSquare>(to + row * shape.row_stride + column, shape.row_stride,
                                  from + column * from_stride + row, from_stride);
      }
    }
  };
  const auto transpose_rest = [&](Range rows, Range columns) {
    for (std::int64_t row = rows.begin; row < rows.end; ++row) {
      for (std::int64_t column = columns.begin; column < columns.end; ++column) {
        to[row * shape.row_stride + column] = from[column * from_stride + row];
      }
    }
  };
  for (std::int64_t row = 0; row < shape.num_rows; row += kTile) {
    const Range rows{row, std::min(row + kTile, shape.num_rows)};
    for (std::int64_t column = 0; column < shape.num_columns; column += kTile) {
      const Range columns{column, std::min(column + kTile, shape.num_columns)};
      const bool is_whole = rows.size() == kTile && columns.size() == kTile;
      is_whole ? transpose_tile(rows, columns) : transpose_rest(rows, columns);
    }
  }
}

void copy_rows(float* to, const Matrix& shape, const float* from, std::int64_t from_stride) {
  for (std::int64_t row = 0; row < shape.num_rows; ++row) {
    std::copy_n(from + row * from_stride, shape.num_columns, to + row * shape.row_stride);
  }
}

}  // namespace

StoredFamily stored_family(const ModelConfig& config) {
  if (transformers_word_of(config.activation).empty()) return StoredFamily::redspine;
  const bool is_gpt2 = config.position == Position::learned && config.norm == NormKind::layernorm &&
                       !is_gated(config.activation) && config.bias &&
                       config.num_kv_heads == config.num_heads;
  if (is_gpt2) return StoredFamily::gpt2;
  const bool is_llama = config.position == Position::rope && config.norm == NormKind::rmsnorm &&
                        is_gated(config.activation);
  return is_llama ? StoredFamily::llama : StoredFamily::redspine;
}

std::vector<StoredTensor> stored_tensors(const ModelConfig& config) {
  const ModelSpec model = model_spec(config);
  const Naming naming = naming_of(stored_family(config));
  std::vector<StoredTensor> tensors = stored_layer(model.embedding, naming);
  const std::vector<StoredTensor> block = stored_layer(model.block, naming);
  for (std::int64_t layer = 0; layer < model.num_blocks; ++layer) {
    const std::string prefix = Block::prefix(layer);
    for (StoredTensor tensor : block) {
      tensor.name = fmt::format("{}.{}.{}", naming.block, layer, tensor.name);
      for (StoredPart& part : tensor.parts) part.parameter.insert(0, prefix);
      tensors.push_back(std::move(tensor));
    }
  }
  for (const LayerSpec* layer : {&model.final_norm, &model.head}) {
    for (StoredTensor& tensor : stored_layer(*layer, naming)) tensors.push_back(std::move(tensor));
  }
  return tensors;
}

StoredRegion region_of(const StoredTensor& tensor, const StoredPart& part, const Slab& slab) {
  if (part.shape.rank() == 1) {
    return {
        .rows = {0, 1},
        .columns = {part.columns.begin + slab.range.begin, part.columns.begin + slab.range.end}};
  }
  Range rows{0, part.shape[0]};
  Range columns{0, part.shape[1]};
  (slab.dim == 0 ? rows : columns) = slab.range;
  if (slab.rows) rows = *slab.rows;
  if (tensor.orientation == Orientation::transposed) std::swap(rows, columns);
  return {.rows = rows,
          .columns = {part.columns.begin + columns.begin, part.columns.begin + columns.end}};
}

void copy_slab_to_stored(std::span<float> stored, std::span<const float> slab_values,
                         const StoredTensor& tensor, const StoredRegion& region) {
  assert(static_cast<std::int64_t>(stored.size()) == tensor.shape.count());
  assert(static_cast<std::int64_t>(slab_values.size()) == region.count());
  const std::int64_t width = tensor.num_columns();
  float* to = stored.data() + region.rows.begin * width + region.columns.begin;
  const Matrix shape{region.rows.size(), region.columns.size(), width};
  if (tensor.orientation == Orientation::transposed) {
    transpose(to, shape, slab_values.data(), shape.num_rows);
  } else {
    copy_rows(to, shape, slab_values.data(), shape.num_columns);
  }
}

void copy_rows_to_slab(std::span<float> slab_values, const StoredRows& from,
                       const StoredTensor& tensor, const StoredRegion& region) {
  assert(static_cast<std::int64_t>(slab_values.size()) == region.count());
  assert(from.rows.begin >= region.rows.begin && from.rows.end <= region.rows.end);
  const std::int64_t first = from.rows.begin - region.rows.begin;
  const std::int64_t num_columns = region.columns.size();
  if (tensor.orientation == Orientation::transposed) {
    transpose(slab_values.data() + first, {num_columns, from.rows.size(), region.rows.size()},
              from.values, from.row_stride);
  } else {
    copy_rows(slab_values.data() + first * num_columns,
              {from.rows.size(), num_columns, num_columns}, from.values, from.row_stride);
  }
}

}  // namespace redspine
