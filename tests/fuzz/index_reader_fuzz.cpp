// libFuzzer: any bytes as the .idx of a pair, and as an llm.c file, end in a reader that works or
// in an error with a name.

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "data/files/document_index.h"
#include "data/files/token_file.h"
#include "tensor/error.h"

namespace redspine {
namespace {

constexpr std::int64_t kVocabSize = 50257;

std::string make_folder() {
  std::string folder = (std::filesystem::temp_directory_path() / "redspine_fuzz_XXXXXX").string();
  if (::mkdtemp(folder.data()) == nullptr) std::abort();
  return folder;
}

void write(const std::string& path, std::span<const std::byte> bytes) {
  File::create(path).write(bytes);
}

void read_all(const TokenFile& file) {
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(file.num_tokens()));
  file.read(0, tokens, kVocabSize);
  for (const std::int32_t token : tokens) {
    if (token < 0 || token >= kVocabSize) std::abort();
  }
}

/// What document_at() says must hold, whatever the index says.
void look_up(const DocumentIndex& index, std::int64_t num_tokens) {
  for (std::int64_t token = 0; token < num_tokens; ++token) {
    const DocumentIndex::Document document = index.document_at(token);
    if (document.begin > token || document.end <= token || document.number < 0 ||
        document.number >= index.num_documents()) {
      std::abort();
    }
  }
}

template <typename Action>
void allow_errors(const Action& action) {
  try {
    action();
  } catch (const ConfigError&) {
  } catch (const Error&) {
  }
}

}  // namespace
}  // namespace redspine

/// The first byte is the number of token bytes; then the .idx, and after it the .bin.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace redspine;
  static const std::string folder = make_folder();
  if (size == 0) return 0;
  const std::size_t bin_size = std::min<std::size_t>(data[0], size - 1);
  const auto bytes = std::as_bytes(std::span(data, size)).subspan(1);
  const auto index_bytes = bytes.first(bytes.size() - bin_size);
  write(folder + "/p.idx", index_bytes);
  write(folder + "/p.bin", bytes.last(bin_size));
  write(folder + "/llmc", index_bytes);
  allow_errors([&] {
    const DocumentIndex index = DocumentIndex::open(folder + "/p", "");
    allow_errors([&] { index.check_all(); });
    allow_errors([&] { look_up(index, static_cast<std::int64_t>(bin_size)); });
    read_all(TokenFile::open(folder + "/p", TokenFormat::megatron, ""));
  });
  allow_errors([&] { read_all(TokenFile::open(folder + "/llmc", TokenFormat::llmc, "")); });
  return 0;
}
