#include "tests/support/safetensors.h"

#include <bit>
#include <cstring>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace redspine::testing {
namespace {

// The file is little-endian, and values are copied as they lie.
static_assert(std::endian::native == std::endian::little);

template <typename Element>
std::vector<Element> copy_elements(const char* first, std::size_t num_bytes) {
  std::vector<Element> elements(num_bytes / sizeof(Element));
  if (num_bytes > 0) {
    std::memcpy(elements.data(), first, num_bytes);
  }
  return elements;
}

StoredTensor read_tensor(const nlohmann::json& entry, const std::string& data) {
  StoredTensor tensor;
  tensor.shape = entry.at("shape").get<std::vector<std::int64_t>>();
  std::uint64_t num_bytes = sizeof(float);
  for (const std::int64_t dim : tensor.shape) {
    num_bytes *= static_cast<std::uint64_t>(dim);
  }
  const auto begin = entry.at("data_offsets").at(0).get<std::uint64_t>();
  const auto end = entry.at("data_offsets").at(1).get<std::uint64_t>();
  if (begin > end || end > data.size() || end - begin != num_bytes) {
    throw std::runtime_error("data_offsets do not fit the shape or the file: " + entry.dump());
  }
  const auto type = entry.at("dtype").get<std::string>();
  if (type == "F32") {
    tensor.values = copy_elements<float>(data.data() + begin, num_bytes);
  } else if (type == "I32") {
    tensor.integers = copy_elements<std::int32_t>(data.data() + begin, num_bytes);
  } else {
    throw std::runtime_error("element type " + type + ", expected F32 or I32");
  }
  return tensor;
}

StoredTensors parse(const std::string& bytes) {
  std::uint64_t header_size = 0;
  if (bytes.size() < sizeof header_size) {
    throw std::runtime_error("too short for a header");
  }
  std::memcpy(&header_size, bytes.data(), sizeof header_size);
  if (header_size > bytes.size() - sizeof header_size) {
    throw std::runtime_error("the header is longer than the file");
  }
  const auto header = nlohmann::json::parse(bytes.substr(sizeof header_size, header_size));
  const std::string data = bytes.substr(sizeof header_size + header_size);
  StoredTensors tensors;
  for (const auto& [name, entry] : header.items()) {
    if (name != "__metadata__") {
      tensors.emplace(name, read_tensor(entry, data));
    }
  }
  return tensors;
}

}  // namespace

StoredTensors read_safetensors(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  try {
    return parse(bytes);
  } catch (const std::exception& error) {
    throw std::runtime_error(path.string() + ": " + error.what());
  }
}

}  // namespace redspine::testing
