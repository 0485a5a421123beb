#include "data/tokenizer/splitter.h"

#include "data/tokenizer/pattern_splitter.h"
#include "data/tokenizer/regex_splitter.h"

namespace redspine {

std::unique_ptr<Splitter> make_splitter(std::string_view pattern, const std::string& key) {
  std::unique_ptr<Splitter> splitter = make_pattern_splitter(pattern);
  return splitter ? std::move(splitter) : make_regex_splitter(pattern, key);
}

}  // namespace redspine
