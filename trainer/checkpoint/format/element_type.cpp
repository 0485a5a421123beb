#include "trainer/checkpoint/format/element_type.h"

#include <array>
#include <bit>
#include <cassert>
#include <cstring>

#include "tensor/bfloat16.h"

namespace redspine {
namespace {

struct Description {
  std::string_view name;
  std::int64_t bytes;
};

// In the order of the enumerators.
constexpr std::array<Description, 13> kTypes = {{{"BOOL", 1},
                                                 {"U8", 1},
                                                 {"I8", 1},
                                                 {"U16", 2},
                                                 {"I16", 2},
                                                 {"F16", 2},
                                                 {"BF16", 2},
                                                 {"U32", 4},
                                                 {"I32", 4},
                                                 {"F32", 4},
                                                 {"U64", 8},
                                                 {"I64", 8},
                                                 {"F64", 8}}};

const Description& description_of(ElementType type) {
  return kTypes[static_cast<std::size_t>(type)];
}

constexpr std::uint32_t kF32Infinity = 0x7F800000;
constexpr int kF32MantissaBits = 23;
constexpr int kF16MantissaBits = 10;
constexpr int kExponentShift = kF32MantissaBits - kF16MantissaBits;

float from_f16(std::uint16_t half) {
  const std::uint32_t sign = (half & 0x8000U) << 16;
  const std::uint32_t magnitude = half & 0x7FFFU;
  if (magnitude >= 0x7C00) {  // infinite or NaN
    return std::bit_cast<float>(sign | kF32Infinity | (magnitude & 0x3FFU) << kExponentShift);
  }
  // As f32 the same bits mean 2^-112 of the value, subnormals included.
  const float value = std::bit_cast<float>(magnitude << kExponentShift) * 0x1p112F;
  return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(value));
}

std::uint16_t load_u16(const std::byte* bytes) {
  std::uint16_t value = 0;
  std::memcpy(&value, bytes, sizeof(value));
  return value;
}

// The upper `32 - num_dropped` bits, rounded to nearest, ties to even.
std::uint32_t round_off(std::uint32_t bits, int num_dropped) {
  const std::uint32_t half = (1U << (num_dropped - 1)) - 1;
  return (bits + half + ((bits >> num_dropped) & 1U)) >> num_dropped;
}

}  // namespace

std::int64_t bytes_of(ElementType type) { return description_of(type).bytes; }
std::string_view name_of(ElementType type) { return description_of(type).name; }

std::optional<ElementType> element_type(std::string_view name) {
  for (std::size_t i = 0; i < kTypes.size(); ++i) {
    if (kTypes[i].name == name) return static_cast<ElementType>(i);
  }
  return std::nullopt;
}

std::string element_type_names() {
  std::string names;
  for (const Description& type : kTypes) {
    if (!names.empty()) names += ", ";
    names += type.name;
  }
  return names;
}

bool is_real(ElementType type) {
  return type == ElementType::f32 || type == ElementType::f16 || type == ElementType::bf16;
}

void widen(std::span<float> values, std::span<const std::byte> bytes, ElementType type) {
  assert(is_real(type));
  assert(bytes.size() == values.size() * static_cast<std::size_t>(bytes_of(type)));
  if (type == ElementType::f32) {
    if (!values.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
    return;
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::uint16_t half = load_u16(bytes.data() + 2 * i);
    values[i] = type == ElementType::f16
                    ? from_f16(half)
                    : std::bit_cast<float>(static_cast<std::uint32_t>(half) << 16);
  }
}

std::uint16_t to_f16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000U);
  const std::uint32_t magnitude = bits & 0x7FFFFFFFU;
  if (magnitude > kF32Infinity) return static_cast<std::uint16_t>(sign | 0x7E00U);
  // Adding 0.5 to a value below 2^-14 leaves its multiple of 2^-24, rounded, in the last bits.
  const auto small = std::bit_cast<float>(magnitude);
  if (small < 0x1p-14F) {
    const std::uint32_t rounded = std::bit_cast<std::uint32_t>(small + 0.5F) & 0x7FFU;
    return static_cast<std::uint16_t>(sign | rounded);
  }
  const std::uint32_t rebiased = magnitude - (112U << kF32MantissaBits);
  const std::uint32_t rounded =
      magnitude >= kF32Infinity ? 0x7C00U : round_off(rebiased, kExponentShift);
  return static_cast<std::uint16_t>(sign | (rounded > 0x7C00U ? 0x7C00U : rounded));
}

std::uint16_t to_bf16(float value) { return BFloat16(value).bits; }

}  // namespace redspine
