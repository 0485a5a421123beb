#include "launch/config/scalars.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <limits>

#include "data/tokenizer/utf8.h"
#include "tensor/printable.h"

namespace redspine {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::string_view without_sign(std::string_view text) {
  if (!text.empty() && (text.front() == '-' || text.front() == '+')) text.remove_prefix(1);
  return text;
}

std::string_view after_digits(std::string_view text) {
  while (!text.empty() && is_digit(text.front())) text.remove_prefix(1);
  return text;
}

bool is_whole_number(std::string_view text) {
  text = without_sign(text);
  return !text.empty() && after_digits(text).empty();
}

/// The numbers of YAML 1.2's core schema in base ten: "1", "1.", ".5", "1e-4", "1.e-4", "-2.5E+3".
bool is_number(std::string_view text) {
  text = without_sign(text);
  const std::string_view after_whole = after_digits(text);
  std::size_t num_digits = text.size() - after_whole.size();
  text = after_whole;
  if (!text.empty() && text.front() == '.') {
    text.remove_prefix(1);
    const std::string_view after_fraction = after_digits(text);
    num_digits += text.size() - after_fraction.size();
    text = after_fraction;
  }
  if (num_digits == 0) return false;
  if (text.empty()) return true;
  if (text.front() != 'e' && text.front() != 'E') return false;
  text.remove_prefix(1);
  return is_whole_number(text);
}

/// A plain scalar that YAML reads as something else than text.
bool is_null(std::string_view text) {
  return text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL";
}
bool is_boolean_word(std::string_view text) {
  return text == "true" || text == "false" || text == "True" || text == "False" || text == "TRUE" ||
         text == "FALSE";
}

template <class Number>
std::optional<std::string> store_whole(Scalar scalar, Number& value) {
  if (!scalar.plain || !is_whole_number(scalar.text)) return "";
  std::string_view digits = scalar.text;
  if (digits.front() == '+') digits.remove_prefix(1);
  // YAML 1.1 reads a leading zero as octal and YAML 1.2 does not.
  const std::string_view magnitude = without_sign(digits);
  if (magnitude.size() > 1 && magnitude.front() == '0') return "leading zeros are ambiguous";
  Number number = 0;
  const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (result.ec != std::errc()) {
    return fmt::format("outside {} to {}", std::numeric_limits<Number>::min(),
                       std::numeric_limits<Number>::max());
  }
  value = number;
  return std::nullopt;
}

std::optional<std::string> store_number(Scalar scalar, double& value) {
  if (!scalar.plain || !is_number(scalar.text)) return "";
  std::string_view text = scalar.text;
  if (text.front() == '+') text.remove_prefix(1);
  double number = 0.0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), number);
  if (result.ec != std::errc()) return "too large or too small for a double";
  value = number;
  return std::nullopt;
}

// Each returns nothing if the scalar was stored, else the reason: empty where the kind is wrong.
struct Storer {
  Scalar scalar;

  std::optional<std::string> operator()(std::int64_t* value) const {
    return store_whole(scalar, *value);
  }
  std::optional<std::string> operator()(std::uint64_t* value) const {
    return store_whole(scalar, *value);
  }
  std::optional<std::string> operator()(double* value) const {
    return store_number(scalar, *value);
  }
  std::optional<std::string> operator()(std::optional<double>* value) const {
    double number = 0.0;
    std::optional<std::string> reason = store_number(scalar, number);
    if (!reason) *value = number;
    return reason;
  }
  std::optional<std::string> operator()(bool* value) const {
    if (!scalar.plain || (scalar.text != "true" && scalar.text != "false")) return "";
    *value = scalar.text == "true";
    return std::nullopt;
  }
  std::optional<std::string> operator()(std::string* value) const {
    if (scalar.plain) {
      if (is_null(scalar.text)) return "";
      if (is_number(scalar.text) || is_boolean_word(scalar.text)) {
        return fmt::format("as text it is written {}", excerpt(scalar.text));
      }
    }
    // It would be found out by the first save, which writes it as JSON, or not at all.
    if (std::string problem = problem_in_name(scalar.text); !problem.empty()) return problem;
    *value = scalar.text;
    return std::nullopt;
  }
  std::optional<std::string> operator()(const Choice& choice) const {
    const auto found = std::find(choice.words.begin(), choice.words.end(), scalar.text);
    if (found == choice.words.end()) return "";
    choice.set(static_cast<std::size_t>(found - choice.words.begin()));
    return std::nullopt;
  }
  std::optional<std::string> operator()(std::vector<DataFileConfig>* /*files*/) const { return ""; }
  std::optional<std::string> operator()(const FieldList& /*list*/) const { return ""; }
};

struct Legal {
  std::string operator()(const std::int64_t* /*value*/) const {
    return "a whole number in digits alone, like 1000 (not 1e3, not 1000.0)";
  }
  std::string operator()(const std::uint64_t* /*value*/) const {
    return "a whole number of at least 0 in digits alone, like 1000 (not 1e3, not 1000.0)";
  }
  std::string operator()(const double* /*value*/) const {
    return "a finite number, like 0.1 or 1e-4, without quotes";
  }
  std::string operator()(const std::optional<double>* /*value*/) const {
    return (*this)(static_cast<const double*>(nullptr));
  }
  std::string operator()(const bool* /*value*/) const { return "true or false, without quotes"; }
  std::string operator()(const std::string* /*value*/) const { return "text in UTF-8"; }
  std::string operator()(const Choice& choice) const {
    return fmt::format("{}", fmt::join(choice.words, ", "));
  }
  std::string operator()(const std::vector<DataFileConfig>* /*files*/) const {
    return "a list of files, like [{path: data/train, weight: 1.0}]";
  }
  std::string operator()(const FieldList& list) const { return std::string(list.legal); }
};

}  // namespace

std::string describe(Scalar scalar) {
  if (!scalar.plain) return fmt::format("the quoted text {}", excerpt(scalar.text));
  if (is_null(scalar.text)) return "no value";
  if (is_number(scalar.text)) {
    return fmt::format("the number {}", one_line(scalar.text, kMaxExcerpt));
  }
  if (is_boolean_word(scalar.text)) return fmt::format("the boolean {}", scalar.text);
  return fmt::format("the text {}", excerpt(scalar.text));
}

std::string legal_values(const FieldValue& value) { return std::visit(Legal{}, value); }

std::optional<std::string> store(Scalar scalar, const FieldValue& value) {
  const std::optional<std::string> reason = std::visit(Storer{scalar}, value);
  if (!reason) return std::nullopt;
  return fmt::format("read {}{}{}; legal: {}", describe(scalar), reason->empty() ? "" : ": ",
                     *reason, legal_values(value));
}

}  // namespace redspine
