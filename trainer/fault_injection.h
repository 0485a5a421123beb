// A fault on purpose: one bit of a weight, a moment, a gradient or an activation flips on one rank,
// as by a faulty memory. For tests of what notices it. Local.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "model/block_observer.h"
#include "tensor/enum_words.h"

namespace redspine {

enum class FaultPlace { weight, exp_avg, exp_avg_sq, gradient, activation };
template <>
inline constexpr auto kEnumWords<FaultPlace> = std::to_array<EnumWord<FaultPlace>>({
    {FaultPlace::weight, "weight"},
    {FaultPlace::exp_avg, "exp_avg"},
    {FaultPlace::exp_avg_sq, "exp_avg_sq"},
    {FaultPlace::gradient, "gradient"},
    {FaultPlace::activation, "activation"},
});

struct BitFlip {
  // Flipped right before its update, when gradients are added up; an activation in the first
  // micro-batch, right before its block's backward pass.
  std::int64_t step;
  int rank;  // of the world
  FaultPlace place;
  std::string tensor;    // a parameter's name; of an activation "blocks.LAYER." and its own
  std::int64_t element;  // of this rank's share
  int bit;               // 0 to 31, from the lowest

  /// "STEP:RANK:PLACE:TENSOR:ELEMENT:BIT", such as "3:1:weight:final_norm.bias:0:31" or
  /// "3:1:activation:blocks.0.qkv:7:20". ConfigError under `key` for any other text.
  static BitFlip parse(std::string_view text, const std::string& key);
  std::string to_string() const;
};

/// Flips it in `flat`, the whole buffer of its place. Error where this rank has no such element.
void flip_bit(const BitFlip& flip, const ParameterStore& store, TensorView flat, Device& device);

/// Flips a bit of an activation as its block's backward pass begins.
class ActivationFlip final : public BlockObserver {
 public:
  /// `device` outlives it.
  ActivationFlip(BitFlip flip, Device& device) : flip_(std::move(flip)), device_(device) {}

  /// Error where `flip` names an element that this rank does not have.
  void before_backward(const BlockPass& pass) override;
  void after_backward(const BlockPass&) override {}

 private:
  BitFlip flip_;
  Device& device_;
};

}  // namespace redspine
