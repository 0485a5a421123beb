#include "tensor/digest.h"

#include <fmt/format.h>

#include <charconv>

#include "tensor/philox.h"

namespace redspine {
namespace {

constexpr std::size_t kNumDigits = 32;

}  // namespace

std::string Digest::text() const { return fmt::format("{:016x}{:016x}", high, low); }

std::optional<Digest> Digest::parse(std::string_view text) {
  if (text.size() != kNumDigits || text.find_first_not_of("0123456789abcdef") != text.npos) {
    return std::nullopt;
  }
  const auto half = [&](std::size_t begin) {
    std::uint64_t value = 0;
    std::from_chars(text.data() + begin, text.data() + begin + kNumDigits / 2, value, 16);
    return value;
  };
  return Digest{.low = half(kNumDigits / 2), .high = half(0)};
}

DigestKey digest_key(std::string_view tensor, const Shape& shape) {
  std::uint64_t hash = 0;
  const auto add = [&hash](std::uint64_t value) { hash = mix64(hash ^ value); };
  for (const char c : tensor) add(static_cast<unsigned char>(c));
  for (const std::int64_t dim : shape.dims()) add(~static_cast<std::uint64_t>(dim));
  return {.start = mix64(hash ^ 1), .mask = static_cast<std::uint32_t>(mix64(hash ^ 2))};
}

}  // namespace redspine
