#include "launch/commands/token_file_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <span>
#include <vector>

#include "data/files/document_index.h"
#include "data/files/token_file.h"
#include "data/io/output.h"
#include "tensor/error.h"
#include "tensor/printable.h"

namespace redspine {
namespace {

constexpr std::int64_t kAnyVocab = std::int64_t{1} << 31;
constexpr std::int64_t kNumFirstTokens = 32;
constexpr std::size_t kBlockLength = std::size_t{1} << 16;  // tokens read at once

const char* name_of(TokenType type) {
  switch (type) {
    case TokenType::u8:
      return "u8";
    case TokenType::i8:
      return "i8";
    case TokenType::i16:
      return "i16";
    case TokenType::i32:
      return "i32";
    case TokenType::i64:
      return "i64";
    case TokenType::u16:
      return "u16";
    case TokenType::u32:
      return "u32";
  }
  __builtin_unreachable();
}

const char* name_of(TokenFormat format) {
  switch (format) {
    case TokenFormat::megatron:
      return "Megatron pair";
    case TokenFormat::llmc:
      return "llm.c file";
    case TokenFormat::raw_u16:
    case TokenFormat::raw_u32:
      return "headerless file";
    case TokenFormat::automatic:
      break;  // no open file is that
  }
  __builtin_unreachable();
}

void inspect(const TokenFile& file, const std::string& name, const Tokenizer* tokenizer) {
  print_out("{}: {} of {}, {}, {}\n", name, name_of(file.format()), name_of(file.type()),
            counted(file.num_tokens(), "token"), counted(file.num_bytes(), "byte"));
  if (file.format() == TokenFormat::megatron) {
    const DocumentIndex index = DocumentIndex::open(name, file.key());
    print_out("  {} in {}, {:.1f} tokens per document\n",
              counted(index.num_documents(), "document"),
              counted(index.num_sequences(), "sequence"),
              static_cast<double>(file.num_tokens()) / static_cast<double>(index.num_documents()));
  }
  std::vector<std::int32_t> tokens(
      static_cast<std::size_t>(std::min(kNumFirstTokens, file.num_tokens())));
  file.read(0, tokens, kAnyVocab);
  print_out("  first ids: {}{}\n", fmt::join(tokens, " "),
            file.num_tokens() > kNumFirstTokens ? " ..." : "");
  if (tokenizer != nullptr) print_out("  as text: {}\n", printable(tokenizer->decode(tokens)));
}

void scan_ids(const TokenFile& file, std::int64_t vocab_size) {
  std::vector<std::int32_t> block(kBlockLength);
  for (std::int64_t offset = 0; offset < file.num_tokens();) {
    const auto count =
        std::min(static_cast<std::int64_t>(kBlockLength), file.num_tokens() - offset);
    file.read(offset, std::span(block).first(static_cast<std::size_t>(count)), vocab_size);
    offset += count;
  }
}

}  // namespace

void inspect_token_files(const TokenFileSet& files, const Tokenizer* tokenizer) {
  for (const std::string& name : find_token_files(files.path, files.format, files.option)) {
    inspect(TokenFile::open(name, files.format, files.option), name, tokenizer);
  }
}

bool verify_token_files(const TokenFileSet& files, std::int64_t vocab_size) {
  bool is_sound = true;
  for (const std::string& name : find_token_files(files.path, files.format, files.option)) {
    try {
      const TokenFile file = TokenFile::open(name, files.format, "");
      if (file.format() == TokenFormat::megatron) DocumentIndex::open(name, "").check_all();
      scan_ids(file, vocab_size);
      print_out("{}: sound: {} tokens, all ids below {}\n", name, file.num_tokens(), vocab_size);
    } catch (const std::exception& error) {
      print_error("{}\n", error.what());
      is_sound = false;
    }
  }
  return is_sound;
}

}  // namespace redspine
