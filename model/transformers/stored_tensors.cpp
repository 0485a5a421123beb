#include "model/transformers/stored_tensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <utility>

#include "tensor/transpose_square.h"

namespace redspine {
namespace {

struct NamedShape {
  std::string name;
  Shape shape;
};

// The names of one family for the parts of a block, and for what is around the blocks.
struct Names {
  const char* block;
  const char* norm1;
  const char* output;
  const char* norm2;
  const char* gate;
  const char* up;
  const char* down;
  const char* embedding;
  const char* position;
  const char* final_norm;
  const char* head;
};

constexpr Names kGpt2Names = {.block = "transformer.h",
                              .norm1 = "ln_1",
                              .output = "attn.c_proj",
                              .norm2 = "ln_2",
                              .gate = "",
                              .up = "mlp.c_fc",
                              .down = "mlp.c_proj",
                              .embedding = "transformer.wte",
                              .position = "transformer.wpe",
                              .final_norm = "transformer.ln_f",
                              .head = "lm_head"};
constexpr Names kLlamaNames = {.block = "model.layers",
                               .norm1 = "input_layernorm",
                               .output = "self_attn.o_proj",
                               .norm2 = "post_attention_layernorm",
                               .gate = "mlp.gate_proj",
                               .up = "mlp.up_proj",
                               .down = "mlp.down_proj",
                               .embedding = "model.embed_tokens",
                               .position = "",
                               .final_norm = "model.norm",
                               .head = "lm_head"};
constexpr Names kOwnNames = {.block = "blocks",
                             .norm1 = "norm1",
                             .output = "attention.output",
                             .norm2 = "norm2",
                             .gate = "mlp.gate",
                             .up = "mlp.up",
                             .down = "mlp.down",
                             .embedding = "embedding",
                             .position = "position",
                             .final_norm = "final_norm",
                             .head = "head"};

const Names& names_of(StoredFamily family) {
  switch (family) {
    case StoredFamily::gpt2:
      return kGpt2Names;
    case StoredFamily::llama:
      return kLlamaNames;
    case StoredFamily::redspine:
      break;
  }
  return kOwnNames;
}

// Lists the stored tensors of a model in the order of the network.
class Listing {
 public:
  explicit Listing(const ModelConfig& config)
      : config_(config), family_(stored_family(config)), names_(names_of(family_)) {}

  std::vector<StoredTensor> list() {
    const std::int64_t hidden = config_.hidden_size;
    add_plain(names_.embedding, "embedding", {config_.vocab_size, hidden});
    if (config_.position == Position::learned) {
      add_plain(names_.position, "position", {config_.max_sequence_length, hidden});
    }
    for (std::int64_t layer = 0; layer < config_.num_layers; ++layer) add_block(layer);
    add_norm(names_.final_norm, "final_norm");
    if (!config_.tie_embeddings) {
      add_plain(names_.head, "head", {config_.vocab_size, hidden});
    }
    return std::move(tensors_);
  }

 private:
  void add_block(std::int64_t layer) {
    const std::string theirs = fmt::format("{}.{}.", names_.block, layer);
    const std::string ours = fmt::format("blocks.{}.", layer);
    const std::int64_t hidden = config_.hidden_size;
    add_norm(theirs + names_.norm1, ours + "norm1");
    add_attention(theirs, ours + "attention.");
    add_linear(theirs + names_.output, {{ours + "attention.output", {hidden, hidden}}});
    add_norm(theirs + names_.norm2, ours + "norm2");
    const Shape wide{config_.ffn_size, hidden};
    if (config_.activation == Activation::swiglu) {
      add_linear(theirs + names_.gate, {{ours + "mlp.gate", wide}});
    }
    add_linear(theirs + names_.up, {{ours + "mlp.up", wide}});
    add_linear(theirs + names_.down, {{ours + "mlp.down", {hidden, config_.ffn_size}}});
  }

  void add_attention(const std::string& theirs, const std::string& ours) {
    const std::int64_t hidden = config_.hidden_size;
    const Shape kv{config_.num_kv_heads * config_.head_size(), hidden};
    const NamedShape query{ours + "query", {hidden, hidden}};
    const NamedShape key{ours + "key", kv};
    const NamedShape value{ours + "value", kv};
    if (family_ == StoredFamily::gpt2) {
      add_linear(theirs + "attn.c_attn", {query, key, value});
      return;
    }
    const bool is_llama = family_ == StoredFamily::llama;
    for (const auto& [part, llama] : {std::pair{query, "self_attn.q_proj"},
                                      {key, "self_attn.k_proj"},
                                      {value, "self_attn.v_proj"}}) {
      add_linear(is_llama ? theirs + llama : part.name, {part});
    }
  }

  // One matrix for all of `linears`, side by side in the stored columns, and the same of biases.
  void add_linear(const std::string& name, const std::vector<NamedShape>& linears) {
    std::vector<NamedShape> weights;
    std::vector<NamedShape> biases;
    for (const NamedShape& linear : linears) {
      weights.push_back({linear.name + ".weight", linear.shape});
      biases.push_back({linear.name + ".bias", {linear.shape[0]}});
    }
    add(name + ".weight", weights,
        family_ == StoredFamily::gpt2 ? Orientation::transposed : Orientation::as_is);
    if (config_.bias) add(name + ".bias", biases, Orientation::as_is);
  }

  void add_norm(const std::string& name, const std::string& ours) {
    add(name + ".weight", {{ours + ".weight", {config_.hidden_size}}}, Orientation::as_is);
    if (config_.norm == NormKind::layernorm && config_.bias) {
      add(name + ".bias", {{ours + ".bias", {config_.hidden_size}}}, Orientation::as_is);
    }
  }

  void add_plain(const std::string& name, const std::string& ours, Shape shape) {
    add(name + ".weight", {{ours + ".weight", shape}}, Orientation::as_is);
  }

  void add(std::string name, const std::vector<NamedShape>& parameters, Orientation orientation) {
    const auto columns_of = [&](const Shape& shape) {
      return orientation == Orientation::transposed ? shape[0] : shape[shape.rank() - 1];
    };
    std::vector<StoredPart> parts;
    std::int64_t end = 0;
    for (const NamedShape& parameter : parameters) {
      const std::int64_t begin = end;
      end += columns_of(parameter.shape);
      parts.push_back({parameter.name, parameter.shape, {begin, end}});
    }
    const Shape& first = parameters.front().shape;
    Shape shape{end};
    if (first.rank() == 2) {
      shape = {orientation == Orientation::transposed ? first[1] : first[0], end};
    }
    tensors_.push_back({std::move(name), shape, orientation, std::move(parts)});
  }

  const ModelConfig& config_;
  StoredFamily family_;
  const Names& names_;
  std::vector<StoredTensor> tensors_;
};

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
  return Listing(config).list();
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
