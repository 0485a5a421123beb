// Any text as one of a checkpoint's JSON files, the first byte says which: an error with a name, or
// something that is written and read back as the same.

#include <cstdlib>
#include <string>
#include <string_view>

#include "tensor/error.h"
#include "trainer/checkpoint/format/manifest.h"
#include "trainer/checkpoint/format/model_json.h"
#include "trainer/checkpoint/format/training_json.h"

namespace redspine {
namespace {

constexpr const char* kPath = "DIR/file.json";

void read(char kind, std::string_view json) {
  switch (kind) {
    case 'm': {
      const Manifest manifest = manifest_from_json(json, kPath);
      if (manifest_from_json(manifest_to_json(manifest), kPath) != manifest) std::abort();
      break;
    }
    case 't': {
      const TrainingRecord record = training_from_json(json, kPath);
      const TrainingRecord again = training_from_json(training_to_json(record), kPath);
      if (again.progress != record.progress || again.settings != record.settings) std::abort();
      break;
    }
    case 'c': {
      const ModelConfig config = model_from_json(json, kPath);
      model_from_json(model_to_json(config), kPath);
      break;
    }
    default:
      break;
  }
}

}  // namespace
}  // namespace redspine

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);
  try {
    redspine::read(text.front(), text.substr(1));
  } catch (const redspine::ConfigError& error) {
    if (std::string(error.what()).find(redspine::kPath) == std::string::npos) std::abort();
  }
  return 0;
}
