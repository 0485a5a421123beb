#include "data/tokenizer/added_tokens.h"

#include <algorithm>
#include <iterator>
#include <tuple>
#include <utility>

#include "data/tokenizer/unicode_classes.h"
#include "data/tokenizer/utf8.h"

namespace redspine {
namespace {

constexpr std::size_t kMaxCodePointSize = 4;  // bytes

unsigned char first_byte(const AddedToken& token) {
  return static_cast<unsigned char>(token.name.front());
}

bool is_text(const AddedToken& token, SpecialTokens special_tokens) {
  return token.kind == AddedToken::Kind::special && special_tokens == SpecialTokens::as_text;
}

/// Bytes of the first code point of `text`; 0 where it is empty or begins with other bytes.
std::size_t first_size(std::string_view text) {
  if (valid_utf8_prefix(text.substr(0, kMaxCodePointSize)) == 0) return 0;
  return code_point_at(text, 0).length;
}

/// The same of its last one.
std::size_t last_size(std::string_view text) {
  for (std::size_t size = 1; size <= std::min(kMaxCodePointSize, text.size()); ++size) {
    if (first_size(text.substr(text.size() - size)) == size) return size;
  }
  return 0;
}

bool is_space(std::string_view code_point) {
  return UnicodeClasses::table().of(code_point_at(code_point, 0).value) == CharClass::space;
}

bool is_of_word(std::string_view code_point) {
  return is_word_character(code_point_at(code_point, 0).value);
}

bool begins_with_word(std::string_view text) {
  const std::size_t size = first_size(text);
  return size > 0 && is_of_word(text.substr(0, size));
}

bool ends_with_word(std::string_view text) {
  const std::size_t size = last_size(text);
  return size > 0 && is_of_word(text.substr(text.size() - size));
}

/// Where the white space at the end of `text` begins.
std::size_t trailing_space(std::string_view text) {
  for (std::size_t end = text.size();;) {
    const std::size_t size = last_size(text.substr(0, end));
    if (size == 0 || !is_space(text.substr(end - size, size))) return end;
    end -= size;
  }
}

/// Where the white space at its beginning ends.
std::size_t leading_space(std::string_view text) {
  for (std::size_t end = 0;;) {
    const std::size_t size = first_size(text.substr(end));
    if (size == 0 || !is_space(text.substr(end, size))) return end;
    end += size;
  }
}

/// The tokens of one pass; none where all of them would be passed over.
template <class Predicate>
std::vector<AddedToken> searched(const std::vector<AddedToken>& tokens,
                                 SpecialTokens special_tokens, const Predicate& is_of_pass) {
  std::vector<AddedToken> found;
  std::copy_if(tokens.begin(), tokens.end(), std::back_inserter(found), is_of_pass);
  const bool are_all_text = std::all_of(found.begin(), found.end(), [&](const AddedToken& token) {
    return is_text(token, special_tokens);
  });
  return are_all_text ? std::vector<AddedToken>{} : found;
}

bool may_cross(const AddedToken& token) {
  return token.is_single_word || token.takes_left_space || token.takes_right_space ||
         token.name.find_first_of(" \n", 1) != std::string::npos;
}

}  // namespace

NameSearch::NameSearch(std::vector<AddedToken> tokens, SpecialTokens special_tokens)
    : tokens_(std::move(tokens)), special_tokens_(special_tokens) {
  std::sort(tokens_.begin(), tokens_.end(), [](const AddedToken& a, const AddedToken& b) {
    return std::tuple(first_byte(a), b.name.size()) < std::tuple(first_byte(b), a.name.size());
  });
  for (const AddedToken& token : tokens_) ++first_[first_byte(token) + std::size_t{1}];
  for (std::size_t byte = 0; byte < 256; ++byte) first_[byte + 1] += first_[byte];
}

void NameSearch::split(std::string_view text, std::vector<Part>& parts) const {
  std::size_t done = 0;
  for (Match match = find(text, 0); match.token != nullptr; match = find(text, match.end)) {
    if (is_passed_over(text, match)) continue;
    std::size_t begin = match.begin;
    std::size_t end = match.end;
    if (match.token->takes_left_space)
      begin = std::max(trailing_space(text.substr(0, begin)), done);
    if (match.token->takes_right_space) end += leading_space(text.substr(end));
    if (done < begin) parts.push_back({text.substr(done, begin - done), nullptr});
    // A name within white space that was taken already is a token all the same, and what was taken
    // after it is text again: so `tokenizers` have it. Empty is one that takes what is taken.
    if (begin < end) parts.push_back({text.substr(begin, end - begin), match.token});
    done = end;
  }
  if (done < text.size()) parts.push_back({text.substr(done), nullptr});
}

bool NameSearch::may_cross_a_cut() const {
  return std::any_of(tokens_.begin(), tokens_.end(), may_cross);
}

NameSearch::Match NameSearch::find(std::string_view text, std::size_t begin) const {
  if (tokens_.empty()) return {text.size(), text.size(), nullptr};
  for (; begin < text.size(); ++begin) {
    const std::size_t byte = static_cast<unsigned char>(text[begin]);
    for (std::size_t i = first_[byte]; i < first_[byte + 1]; ++i) {
      const std::string& name = tokens_[i].name;
      if (text.substr(begin).starts_with(name)) return {begin, begin + name.size(), &tokens_[i]};
    }
  }
  return {text.size(), text.size(), nullptr};
}

bool NameSearch::is_passed_over(std::string_view text, const Match& match) const {
  if (is_text(*match.token, special_tokens_)) return true;
  return match.token->is_single_word &&
         (ends_with_word(text.substr(0, match.begin)) || begins_with_word(text.substr(match.end)));
}

AddedTokens::AddedTokens(const std::vector<AddedToken>& tokens, SpecialTokens special_tokens)
    : in_text_(searched(tokens, special_tokens,
                        [](const AddedToken& token) { return !token.is_normalized; }),
               special_tokens),
      in_normalized_(searched(tokens, special_tokens,
                              [](const AddedToken& token) { return token.is_normalized; }),
                     special_tokens),
      may_cross_a_cut_(in_text_.may_cross_a_cut() || in_normalized_.may_cross_a_cut()) {}

std::vector<AddedTokens::Part> AddedTokens::split(std::string_view text) const {
  std::vector<Part> between;
  in_text_.split(text, between);
  std::vector<Part> parts;
  for (const Part& part : between) {
    if (part.token != nullptr) {
      parts.push_back(part);
    } else {
      in_normalized_.split(part.text, parts);
    }
  }
  return parts;
}

}  // namespace redspine
