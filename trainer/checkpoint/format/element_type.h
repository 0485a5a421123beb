// The element types of safetensors files, and their way to f32. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace redspine {

enum class ElementType : std::uint8_t {
  boolean,
  u8,
  i8,
  u16,
  i16,
  f16,
  bf16,
  u32,
  i32,
  f32,
  u64,
  i64,
  f64
};

std::int64_t bytes_of(ElementType type);
/// As a header spells it: "F32".
std::string_view name_of(ElementType type);
/// Nothing for a name that is none of these.
std::optional<ElementType> element_type(std::string_view name);
/// All names, for errors.
std::string element_type_names();

/// Whether widen() can read it: f16, bf16 or f32.
bool is_real(ElementType type);
/// Little-endian elements of a real type to f32, exactly. `bytes` holds values.size() of them.
void widen(std::span<float> values, std::span<const std::byte> bytes, ElementType type);

/// Rounded to nearest, ties to even; what is too large becomes infinite, NaN stays NaN.
std::uint16_t to_f16(float value);
std::uint16_t to_bf16(float value);

}  // namespace redspine
