#include "trainer/fault_injection.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "tensor/error.h"
#include "tensor/printable.h"
#include "tensor/tensor.h"

namespace redspine {
namespace {

constexpr std::size_t kNumFields = 6;

std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> fields;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(':', begin), text.size());
    fields.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return fields;
}

std::optional<std::int64_t> number_of(std::string_view text, std::int64_t max) {
  std::int64_t number = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_whole = failure == std::errc() && end == text.data() + text.size();
  return is_whole && number >= 0 && number <= max ? std::optional(number) : std::nullopt;
}

std::optional<FaultPlace> place_of(std::string_view text) {
  for (const EnumWord<FaultPlace>& word : enum_words<FaultPlace>()) {
    if (word.text == text) return word.value;
  }
  return std::nullopt;
}

[[noreturn]] void reject(const BitFlip& flip) {
  throw Error(fmt::format("this rank has no element {} of {}", flip.element, flip.tensor));
}

void flip_element(TensorView element, int bit, Device& device) {
  float value = 0.0F;
  device.download(host_view(std::span<float>(&value, 1)), element);
  value = std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) ^ (std::uint32_t{1} << bit));
  device.upload(element, host_view(std::span<const float>(&value, 1)));
}

// Where an element lies in a buffer of this place; nothing where this rank does not have it.
std::optional<std::int64_t> position_of(const BitFlip& flip, const Parameter& parameter) {
  switch (flip.place) {
    case FaultPlace::weight:
    case FaultPlace::gradient:
      if (flip.element >= parameter.value.count()) return std::nullopt;
      return parameter.offset + flip.element;
    case FaultPlace::exp_avg:
    case FaultPlace::exp_avg_sq: {
      const std::int64_t row_size = parameter.row_size();
      const std::int64_t first = parameter.updated.begin * row_size;
      if (flip.element < first || flip.element >= parameter.updated.end * row_size) break;
      return parameter.moments_offset + flip.element - first;
    }
    case FaultPlace::activation:
      break;  // in no such buffer
  }
  return std::nullopt;
}

// Without elements for a name that is none.
TensorView activation_of(const BlockPass& pass, std::string_view name) {
  auto& [first, second] = pass.saved;
  if (name == "input") return pass.x_nD;
  if (name == "normed1") return first.normed1_nD;
  if (name == "qkv") return first.attention.qkv;
  if (name == "context") return first.attention.context;
  if (name == "mid") return second.mid_nD;
  if (name == "normed2") return second.normed2_nD;
  if (name == "up") return second.mlp.up_BTf;
  if (name == "hidden") return second.mlp.hidden_BTf;
  if (name == "output_gradient") return pass.dresidual_nD;
  return {};
}

}  // namespace

BitFlip BitFlip::parse(std::string_view text, const std::string& key) {
  constexpr std::int64_t kMaxCount = std::numeric_limits<std::int64_t>::max();
  constexpr std::int64_t kMaxRank = std::numeric_limits<int>::max();
  const std::vector<std::string_view> fields = split(text);
  if (fields.size() == kNumFields) {
    const auto step = number_of(fields[0], kMaxCount);
    const auto rank = number_of(fields[1], kMaxRank);
    const auto place = place_of(fields[2]);
    const auto element = number_of(fields[4], kMaxCount);
    const auto bit = number_of(fields[5], 31);
    if (step && rank && place && element && bit) {
      return {.step = *step,
              .rank = static_cast<int>(*rank),
              .place = *place,
              .tensor = std::string(fields[3]),
              .element = *element,
              .bit = static_cast<int>(*bit)};
    }
  }
  throw ConfigError(key, fmt::format("is {}; legal: STEP:RANK:PLACE:TENSOR:ELEMENT:BIT with "
                                     "weight, exp_avg, exp_avg_sq, gradient or activation as the "
                                     "place and a bit from 0 to 31",
                                     excerpt(text)));
}

std::string BitFlip::to_string() const {
  return fmt::format("bit {} of element {} of the {} of {}", bit, element, word_of(place), tensor);
}

void flip_bit(const BitFlip& flip, const ParameterStore& store, TensorView flat, Device& device) {
  const auto parameter = std::find_if(
      store.parameters().begin(), store.parameters().end(),
      [&flip](const Parameter& candidate) { return candidate.spec.name == flip.tensor; });
  const auto position =
      parameter == store.parameters().end() ? std::nullopt : position_of(flip, *parameter);
  if (!position) reject(flip);
  flip_element(flat.slice(*position, 1), flip.bit, device);
}

void ActivationFlip::before_backward(const BlockPass& pass) {
  const std::string prefix = Block::prefix(static_cast<std::int64_t>(pass.block));
  if (!flip_.tensor.starts_with(prefix)) return;
  const TensorView activation = activation_of(pass, flip_.tensor.substr(prefix.size()));
  if (flip_.element >= activation.count()) reject(flip_);
  flip_element(activation.reshape({activation.count()}).slice(flip_.element, 1), flip_.bit,
               device_);
}

}  // namespace redspine
