// A fault on purpose: one bit of a weight, a moment or a gradient flips on one rank, as by a faulty
// memory. For tests of what notices it. Local.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "model/parameters.h"
#include "tensor/enum_words.h"

namespace redspine {

enum class FaultPlace { weight, exp_avg, exp_avg_sq, gradient };
template <>
inline constexpr auto kEnumWords<FaultPlace> = std::to_array<EnumWord<FaultPlace>>({
    {FaultPlace::weight, "weight"},
    {FaultPlace::exp_avg, "exp_avg"},
    {FaultPlace::exp_avg_sq, "exp_avg_sq"},
    {FaultPlace::gradient, "gradient"},
});

struct BitFlip {
  std::int64_t step;  // flipped right before its update, when gradients are added up
  int rank;           // of the world
  FaultPlace place;
  std::string parameter;
  std::int64_t element;  // of this rank's share
  int bit;               // 0 to 31, from the lowest

  /// "STEP:RANK:PLACE:PARAMETER:ELEMENT:BIT", such as "3:1:weight:final_norm.bias:0:31".
  /// ConfigError under `key` for any other text.
  static BitFlip parse(std::string_view text, const std::string& key);
  std::string to_string() const;
};

/// Flips it in `flat`, which is laid out as the store's buffers. Error where this rank has no such
/// element.
void flip_bit(const BitFlip& flip, const ParameterStore& store, TensorView flat, Device& device);

}  // namespace redspine
