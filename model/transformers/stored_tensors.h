// What the tensors of a checkpoint are called and how they lie, seen from the parameters: the names
// and orientation of `transformers` where it knows the model, the parameters' own otherwise. Pure
// arithmetic on a configuration; local.
//
// A stored tensor is a matrix (a vector: one row) whose columns belong to one or more parameters,
// side by side. GPT-2 keeps [in, out], so its matrices are transposed, and has query, key and value
// in one tensor.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/config.h"
#include "parallel/partition.h"
#include "tensor/view.h"

namespace redspine {

/// Whose model a configuration describes. Only the options count, not `model.family`: a llama with
/// LayerNorm is nobody's but ours.
enum class StoredFamily { gpt2, llama, redspine };
/// Its `model_type` in config.json.
template <>
inline constexpr auto kEnumWords<StoredFamily> = std::to_array<EnumWord<StoredFamily>>({
    {StoredFamily::gpt2, "gpt2"},
    {StoredFamily::llama, "llama"},
    {StoredFamily::redspine, "redspine"},
});
StoredFamily stored_family(const ModelConfig& config);

enum class Orientation { as_is, transposed };

/// A parameter's place in a stored tensor.
struct StoredPart {
  std::string parameter;  // "blocks.3.attention.query.weight"
  Shape shape;            // of the whole parameter: [n] or [rows, cols]
  Range columns;          // of the stored tensor
};

struct StoredTensor {
  std::string name;  // "transformer.h.3.attn.c_attn.weight"
  Shape shape;       // as stored
  Orientation orientation = Orientation::as_is;
  std::vector<StoredPart> parts;  // they fill the columns, in order

  std::int64_t num_rows() const { return shape.rank() == 1 ? 1 : shape[0]; }
  std::int64_t num_columns() const { return shape[shape.rank() - 1]; }
};

/// Every tensor of the model, in the order of the network; each parameter in exactly one of them.
/// A tied head is no parameter and so not stored.
std::vector<StoredTensor> stored_tensors(const ModelConfig& config);

/// A share of one parameter, as a rank holds it: `range` of `dim`, everything of the other dim, or
/// of columns some of the rows.
struct Slab {
  Shape parameter_shape;
  int dim;
  Range range;
  std::optional<Range> rows = {};  // where dim is 1

  Shape shape() const {
    const Shape shape = parameter_shape.with(dim, range.size());
    return rows ? shape.with(0, rows->size()) : shape;
  }
  std::int64_t count() const { return shape().count(); }
};

/// A rectangle of a stored tensor.
struct StoredRegion {
  Range rows;
  Range columns;

  std::int64_t count() const { return rows.size() * columns.size(); }
};

/// Where a slab of `part` lies in its stored tensor.
StoredRegion region_of(const StoredTensor& tensor, const StoredPart& part, const Slab& slab);

/// Copies a slab's values to their place in the whole stored tensor.
void copy_slab_to_stored(std::span<float> stored, std::span<const float> slab_values,
                         const StoredTensor& tensor, const StoredRegion& region);

/// Rows of a region, as they were read: perhaps with more columns around the region's own.
struct StoredRows {
  const float* values;      // of the region, in the first of the rows
  std::int64_t row_stride;  // elements from a row to the next
  Range rows;               // of the stored tensor
};
/// Copies some rows of a region to their place in the slab that it holds.
void copy_rows_to_slab(std::span<float> slab_values, const StoredRows& from,
                       const StoredTensor& tensor, const StoredRegion& region);

}  // namespace redspine
