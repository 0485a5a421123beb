#include "data/tokenizer/regex_splitter.h"

#include <fmt/format.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>

#include "tensor/error.h"

namespace redspine {
namespace {

constexpr std::size_t kFirstStackSize = std::size_t{32} << 10;  // bytes, of compiled matching
constexpr std::size_t kMaxStackSize = std::size_t{8} << 20;

struct Free {
  void operator()(pcre2_code* code) const { pcre2_code_free(code); }
  void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
  void operator()(pcre2_match_context* context) const { pcre2_match_context_free(context); }
  void operator()(pcre2_jit_stack* stack) const { pcre2_jit_stack_free(stack); }
};

std::string message_of(int code) {
  std::string message(256, '\0');
  const int length =
      pcre2_get_error_message(code, reinterpret_cast<PCRE2_UCHAR*>(message.data()), message.size());
  message.resize(static_cast<std::size_t>(std::max(length, 0)));
  return message;
}

/// PCRE2's own \s takes in U+180E too.
std::string with_unicode_spaces(std::string_view pattern) {
  std::string result;
  for (std::size_t at = 0; at < pattern.size(); ++at) {
    if (pattern[at] != '\\' || at + 1 == pattern.size()) {
      result += pattern[at];
      continue;
    }
    const char escaped = pattern[++at];
    if (escaped == 's') {
      result += "\\p{White_Space}";
    } else if (escaped == 'S') {
      result += "\\P{White_Space}";
    } else {
      result += {'\\', escaped};
    }
  }
  return result;
}

std::unique_ptr<pcre2_code, Free> compile(std::string_view pattern, const std::string& key) {
  const std::string translated = with_unicode_spaces(pattern);
  int error = 0;
  PCRE2_SIZE offset = 0;
  std::unique_ptr<pcre2_code, Free> code(
      pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated.data()), translated.size(),
                    PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C | PCRE2_DOLLAR_ENDONLY, &error,
                    &offset, nullptr));
  if (!code) {
    throw ConfigError(key, fmt::format("pattern \"{}\": at byte {} of \"{}\": {}", pattern, offset,
                                       translated, message_of(error)));
  }
  // Where there is no compiler for this machine, matching is interpreted and slower.
  pcre2_jit_compile(code.get(), PCRE2_JIT_COMPLETE);
  return code;
}

class RegexSplitter final : public Splitter {
 public:
  RegexSplitter(std::string_view pattern, const std::string& key)
      : code_(compile(pattern, key)),
        data_(pcre2_match_data_create_from_pattern(code_.get(), nullptr)),
        context_(pcre2_match_context_create(nullptr)),
        stack_(pcre2_jit_stack_create(kFirstStackSize, kMaxStackSize, nullptr)) {
    pcre2_jit_stack_assign(context_.get(), nullptr, stack_.get());
  }

  std::size_t piece_end(std::string_view text, std::size_t begin) override {
    if (begin == 0 || begin > match_begin_) match(text, begin);
    return begin < match_begin_ ? match_begin_ : match_end_;
  }

  /// A pattern may look at anything.
  std::size_t cut_point(std::string_view /*text*/) const override { return 0; }

 private:
  /// Finds the next match that is not empty; beyond the last one, the end of the text stands for
  /// it.
  void match(std::string_view text, std::size_t begin) {
    int result = run(text, begin, 0);
    if (result == PCRE2_ERROR_JIT_STACKLIMIT) result = run(text, begin, PCRE2_NO_JIT);
    if (result == PCRE2_ERROR_NOMATCH) {
      match_begin_ = match_end_ = text.size();
      return;
    }
    if (result < 0) {
      throw Error(
          fmt::format("a text of {} bytes: matching the pre-tokenizer's pattern at byte {} "
                      "failed: {}",
                      text.size(), begin, message_of(result)));
    }
    const PCRE2_SIZE* place = pcre2_get_ovector_pointer(data_.get());
    match_begin_ = place[0];
    match_end_ = place[1];
  }

  int run(std::string_view text, std::size_t begin, std::uint32_t options) {
    return pcre2_match(code_.get(), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), begin,
                       options | PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY, data_.get(), context_.get());
  }

  std::unique_ptr<pcre2_code, Free> code_;
  std::unique_ptr<pcre2_match_data, Free> data_;
  std::unique_ptr<pcre2_match_context, Free> context_;
  std::unique_ptr<pcre2_jit_stack, Free> stack_;
  std::size_t match_begin_ = 0;  // of the match that piece_end() last looked up
  std::size_t match_end_ = 0;
};

}  // namespace

std::unique_ptr<Splitter> make_regex_splitter(std::string_view pattern, const std::string& key) {
  return std::make_unique<RegexSplitter>(pattern, key);
}

}  // namespace redspine
