#include "launch/run/trained_model.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>
#include <utility>

#include "data/io/file.h"
#include "data/tokenizer/tokenizer.h"
#include "launch/config/yaml_binder.h"
#include "launch/job/agree.h"
#include "tensor/error.h"
#include "trainer/checkpoint/format/model_json.h"
#include "trainer/checkpoint/model_directory.h"

namespace redspine {
namespace {

constexpr const char* kBytes = "bytes";

/// The value of a setting as text; empty where there is none.
std::string setting_of(const TrainedModel& model, const std::string& key) {
  if (!model.training) return "";
  for (const Setting& setting : model.training->settings) {
    if (setting.key != key) continue;
    if (std::optional<std::string> text = yaml_scalar(setting.value)) return *std::move(text);
    throw ConfigError("--checkpoint",
                      fmt::format("{}/training.json: config: {}: is {}, which is no YAML value",
                                  model.directory, key, setting.value));
  }
  return "";
}

/// 0 where the text is none.
std::int64_t whole_number(const std::string& text) {
  std::int64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

}  // namespace

int TrainedModel::num_leaves(const Device& device, Precision precision) const {
  const bool is_exact = setting_of(*this, "run.exact") == "true";
  if (!is_exact || device.kind() != DeviceKind::cpu || precision != Precision::fp32) return 0;
  return static_cast<int>(whole_number(setting_of(*this, "run.exact_leaves")));
}

std::int64_t TrainedModel::sequence_length() const {
  const std::int64_t length = whole_number(setting_of(*this, "batch.sequence_length"));
  return length > 0 && length < config.max_sequence_length ? length : config.max_sequence_length;
}

TrainedModel read_trained_model(const std::string& directory) {
  try {
    check_is_model_directory(directory);
    TrainedModel model{
        .directory = directory, .config = read_model_config(directory), .training = std::nullopt};
    if (exists(directory + "/training.json", "--checkpoint")) {
      model.training = read_training_record(directory);
    }
    return model;
  } catch (const ConfigError& error) {
    throw under_key("--checkpoint", error);
  }
}

std::string tokenizer_name(const TrainedModel& model, const std::string& choice) {
  if (!choice.empty()) return choice;
  std::string trained_with = setting_of(model, "data.tokenizer");
  if (!trained_with.empty()) return trained_with;
  // load_tokenizer looks for these in a folder.
  for (const char* file : {"tokenizer.json", "vocab.json"}) {
    if (exists(model.directory + "/" + file, "--checkpoint")) return model.directory;
  }
  if (model.config.vocab_size == ByteTokenizer::kVocabSize) return kBytes;
  throw ConfigError(
      "--tokenizer",
      fmt::format("is not given, and {} does not say what its {} token ids stand "
                  "for; \"bytes\" would take those below {} as bytes",
                  model.directory, model.config.vocab_size, ByteTokenizer::kEndOfText));
}

}  // namespace redspine
