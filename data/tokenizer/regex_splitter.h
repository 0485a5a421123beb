// Any other pattern as a pre-tokenizer, by PCRE2: compiled to machine code where it can be, with a
// stack that is bounded whatever the text.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "data/tokenizer/splitter.h"

namespace redspine {

/// Matches are pieces, and so is what lies between two of them. \s is Unicode's White_Space, as in
/// other regex engines. ConfigError under `key` if PCRE2 does not accept `pattern`.
std::unique_ptr<Splitter> make_regex_splitter(std::string_view pattern, const std::string& key);

}  // namespace redspine
