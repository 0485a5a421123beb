// Reads a small safetensors file whole into memory, for tests: an oracle that shares no code with
// the trainer's own reader. Local; the result owns its values. Throws std::runtime_error, naming
// the file, where it is not what the format asks for.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace redspine::testing {

/// F32 tensors fill `values`, I32 tensors fill `integers`, the other stays empty. Row-major.
struct StoredTensor {
  std::vector<std::int64_t> shape;
  std::vector<float> values;
  std::vector<std::int32_t> integers;
};

using StoredTensors = std::map<std::string, StoredTensor>;

/// Every tensor of the file by its name. Other element types than F32 and I32 are an error.
StoredTensors read_safetensors(const std::filesystem::path& path);

}  // namespace redspine::testing
