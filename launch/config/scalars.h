// Strict reading of scalars: a value is taken only where no reader could take it for another.
// Knows no YAML library: text, and whether it was written without quotes.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "launch/config/fields.h"

namespace redspine {

struct Scalar {
  std::string_view text;
  bool plain = true;  // written without quotes
};

/// How a scalar is named to its author: `the number 1.5`, `the quoted text "3"`.
std::string describe(Scalar scalar);

/// What `value` may be: "a whole number, in digits alone", "auto, cpu or cuda".
std::string legal_values(const FieldValue& value);

/// Stores the scalar if it is one that `value` may be. Otherwise nothing is stored and the problem
/// comes back: what was read, and what is legal.
std::optional<std::string> store(Scalar scalar, const FieldValue& value);

}  // namespace redspine
