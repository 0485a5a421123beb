// The `model:` section of a run's configuration: what the network computes, not how it is split.
//
// A plain value, local to a rank and equal on all of them. The defaults are GPT-2 small; `preset`
// gives those of a family. validate() knows this section alone; trainer/config.h checks it against
// the others.
#pragma once

#include <cstdint>
#include <optional>

#include "tensor/enum_words.h"
#include "tensor/error.h"
#include "tensor/kernels.h"

namespace redspine {

enum class Family { gpt2, llama };
template <>
inline constexpr auto kEnumWords<Family> = std::to_array<EnumWord<Family>>({
    {Family::gpt2, "gpt2"},
    {Family::llama, "llama"},
});

enum class Position { learned, rope };
template <>
inline constexpr auto kEnumWords<Position> = std::to_array<EnumWord<Position>>({
    {Position::learned, "learned"},
    {Position::rope, "rope"},
});

enum class NormKind { layernorm, rmsnorm };
template <>
inline constexpr auto kEnumWords<NormKind> = std::to_array<EnumWord<NormKind>>({
    {NormKind::layernorm, "layernorm"},
    {NormKind::rmsnorm, "rmsnorm"},
});

enum class Activation { gelu_tanh, gelu, swiglu };
template <>
inline constexpr auto kEnumWords<Activation> = std::to_array<EnumWord<Activation>>({
    {Activation::gelu_tanh, "gelu_tanh", {"gelu_new", "gelu_pytorch_tanh"}},
    {Activation::gelu, "gelu", {"gelu"}},
    {Activation::swiglu, "swiglu", {"silu"}},  // of the gate
});

/// What the product before it computes as well; none for an MLP with a gate, a third matrix, whose
/// activation is multiplied with what `up` gives.
constexpr std::optional<GeluKind> gelu_kind(Activation activation) {
  switch (activation) {
    case Activation::gelu_tanh:
      return GeluKind::tanh;
    case Activation::gelu:
      return GeluKind::exact;
    case Activation::swiglu:
      return std::nullopt;
  }
  __builtin_unreachable();
}
constexpr bool is_gated(Activation activation) { return !gelu_kind(activation); }

/// Ways to reach beyond the length that the rotary frequencies were trained at.
enum class RopeScaling {
  none,
  linear,  // position interpolation, arXiv 2306.15595
  ntk,     // a larger theta instead of shorter positions
  yarn,    // arXiv 2309.00071
  llama3,  // the frequency bands of Llama 3.1
};
template <>
inline constexpr auto kEnumWords<RopeScaling> = std::to_array<EnumWord<RopeScaling>>({
    {RopeScaling::none, "none", {"default"}},
    {RopeScaling::linear, "linear", {"linear"}},
    {RopeScaling::ntk, "ntk"},  // nothing but another rope_theta there
    {RopeScaling::yarn, "yarn", {"yarn"}},
    {RopeScaling::llama3, "llama3", {"llama3"}},
});

/// Rotary positions. A value that would do nothing is a problem where it is not the default.
struct RopeConfig {
  double theta = 10000.0;  // base of the geometric series of wavelengths
  RopeScaling scaling = RopeScaling::none;
  double factor = 1.0;                  // how many times longer than original_length; >= 1
  std::int64_t original_length = 1024;  // tokens; the length the unscaled frequencies were made for
  double beta_fast = 32.0;              // yarn: above this many turns a dimension is not scaled
  double beta_slow = 1.0;               // yarn: below this many turns it is scaled in full
  double low_freq_factor = 1.0;         // llama3: original_length / this = longest kept wavelength
  double high_freq_factor = 4.0;        // llama3: original_length / this = shortest scaled one
  std::optional<double> attention_factor;  // yarn: scale of cos and sin; unset: 0.1 ln(factor) + 1
};

struct ModelConfig {
  Family family = Family::gpt2;  // presets for the keys below; any key that is given wins
  std::int64_t num_layers = 12;  // transformer blocks
  std::int64_t hidden_size = 768;
  std::int64_t num_heads = 12;      // query heads
  std::int64_t num_kv_heads = 12;   // divides num_heads; fewer: grouped-query attention
  std::int64_t ffn_size = 3072;     // width inside the MLP; for swiglu that of gate and of up each
  std::int64_t vocab_size = 50257;  // token ids are below this; any number suits any layout
  std::int64_t max_sequence_length = 1024;  // tokens; the rows of learned positions
  Position position = Position::learned;
  RopeConfig rope;
  NormKind norm = NormKind::layernorm;
  double norm_epsilon = 1e-5;
  Activation activation = Activation::gelu_tanh;
  bool bias = true;            // biases of all linear layers (never of the head) and of layernorm
  bool tie_embeddings = true;  // the head uses the token embedding's weights
  double dropout = 0.0;  // probability, of embeddings, attention and residual branches; 0 = off

  /// What `family` presets, at the sizes of GPT-2 small.
  static ModelConfig preset(Family family);

  std::int64_t head_size() const { return hidden_size / num_heads; }

  /// Adds what is wrong with this section, under full keys ("model.num_heads").
  void validate(ConfigProblems& problems) const;
};

/// The MLP width that goes with a hidden size where none is given: 4 x hidden for gpt2; for llama
/// 8/3 x hidden, so that three gated matrices weigh what two would, rounded up to 256.
std::int64_t default_ffn_size(Family family, std::int64_t hidden_size);

}  // namespace redspine
