#include "tests/support/scratch.h"

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <numeric>
#include <system_error>

#include "tensor/error.h"

namespace redspine {

Scratch::Scratch()
    : folder_((std::filesystem::temp_directory_path() / "redspine_test_XXXXXX").string()) {
  if (::mkdtemp(folder_.data()) == nullptr) throw Error("making " + folder_ + " failed");
}

Scratch::~Scratch() {
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

std::string Scratch::write(std::string_view name, std::string_view bytes) const {
  std::string path = *this / name;
  std::ofstream stream(path, std::ios::binary);
  stream.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  return path;
}

std::string read_file(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

std::string MegatronIndex::bytes() const {
  std::vector<std::int64_t> offsets;
  std::vector<std::int64_t> documents = {0};
  std::int64_t offset = 0;
  for (const std::int32_t length : lengths) {
    offsets.push_back(offset);
    offset += length * token_size;
    documents.push_back(static_cast<std::int64_t>(offsets.size()));
  }
  const std::vector<std::uint64_t> counts = {lengths.size(), documents.size()};
  return magic + bytes_of<std::uint64_t>({version}) + bytes_of<std::uint8_t>({type_code}) +
         bytes_of(counts) + bytes_of(lengths) + bytes_of(offsets) + bytes_of(documents);
}

std::vector<std::uint16_t> counting(std::size_t count, int first) {
  std::vector<std::uint16_t> ids(count);
  std::iota(ids.begin(), ids.end(), static_cast<std::uint16_t>(first));
  return ids;
}

std::string config_error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no ConfigError was thrown";
}

std::string error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "no Error was thrown";
}

}  // namespace redspine
