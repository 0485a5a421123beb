// What tests of files share: a folder of their own, token files of each format made by hand (not by
// the code under test), and the text of the error that a call ends with.
#pragma once

#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace redspine {

/// A new folder, removed at the end.
class Scratch {
 public:
  Scratch();
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  const std::string& folder() const { return folder_; }
  /// A path in the folder.
  std::string operator/(std::string_view name) const { return folder_ + "/" + std::string(name); }
  /// Writes a file and returns its path.
  std::string write(std::string_view name, std::string_view bytes) const;

 private:
  std::string folder_;
};

std::string read_file(const std::string& path);

/// Little-endian bytes of numbers, one after another.
template <typename T>
std::string bytes_of(const std::vector<T>& values) {
  std::string bytes(values.size() * sizeof(T), '\0');
  if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

/// A .idx for sequences of these lengths, a document each.
struct MegatronIndex {
  std::string magic{"MMIDIDX\0\0", 9};
  std::uint64_t version = 1;
  std::uint8_t type_code = 8;
  std::int64_t token_size = 2;  // bytes
  std::vector<std::int32_t> lengths;

  std::string bytes() const;
};

/// llm.c's file: header and ids.
template <typename T>
std::string llmc_bytes(std::int32_t magic, std::int32_t version, const std::vector<T>& ids) {
  std::vector<std::int32_t> header(256, 0);
  header[0] = magic;
  header[1] = version;
  header[2] = static_cast<std::int32_t>(ids.size());
  return bytes_of(header) + bytes_of(ids);
}

/// The ids first, first + 1, ..., as u16.
std::vector<std::uint16_t> counting(std::size_t count, int first = 0);

/// what() of the ConfigError that `call` throws, one problem per line; says so if there is none.
std::string config_error_of(const std::function<void()>& call);
/// The same for Error.
std::string error_of(const std::function<void()>& call);

}  // namespace redspine
