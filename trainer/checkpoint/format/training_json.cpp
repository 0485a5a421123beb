#include "trainer/checkpoint/format/training_json.h"

#include <cmath>

#include "data/io/folders.h"
#include "trainer/checkpoint/format/json_reader.h"

namespace redspine {
namespace {

constexpr std::int64_t kFormatVersion = 1;

// JSON has no word for numbers that are not finite; null stands for them and for no number.
nlohmann::ordered_json number(const std::optional<double>& value) {
  if (value && std::isfinite(*value)) return *value;
  return nullptr;
}

std::optional<double> optional_real(const JsonReader& reader, const std::string& key) {
  if (!reader.contains(key)) return std::nullopt;
  return reader.real(key);
}

nlohmann::ordered_json files_to_json(const std::vector<FileFingerprint>& files) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const FileFingerprint& file : files) {
    list.push_back({{"path", file.path}, {"bytes", file.num_bytes}, {"hash", file.hash}});
  }
  return list;
}

std::int64_t count(const JsonReader& reader, const std::string& key, std::int64_t minimum = 0) {
  const std::int64_t value = reader.integer(key);
  if (value < minimum) {
    reader.fail(key, fmt::format("{}", value), fmt::format("at least {}", minimum));
  }
  return value;
}

std::vector<FileFingerprint> files_from_json(const JsonReader& reader, const std::string& key) {
  std::vector<FileFingerprint> files;
  for (const JsonReader& file : reader.objects(key)) {
    files.push_back({.path = file.string("path"),
                     .num_bytes = count(file, "bytes"),
                     .hash = file.string("hash")});
  }
  return files;
}

nlohmann::ordered_json digests_to_json(const StateDigests& digests) {
  nlohmann::ordered_json tensors = nlohmann::ordered_json::object();
  for (const auto& [name, digest] : digests.tensors) tensors[name] = digest.text();
  return {{"weights", digests.weights.text()},
          {"exp_avg", digests.exp_avg.text()},
          {"exp_avg_sq", digests.exp_avg_sq.text()},
          {"tensors", tensors}};
}

Digest digest_at(const JsonReader& reader, const std::string& key) {
  const std::string text = reader.string(key);
  const std::optional<Digest> digest = Digest::parse(text);
  if (!digest) reader.fail(key, text, "32 hexadecimal digits");
  return *digest;
}

StateDigests digests_from_json(const JsonReader& reader) {
  StateDigests digests{.weights = digest_at(reader, "weights"),
                       .exp_avg = digest_at(reader, "exp_avg"),
                       .exp_avg_sq = digest_at(reader, "exp_avg_sq"),
                       .tensors = {}};
  const JsonReader tensors = reader.object("tensors");
  for (const std::string& name : tensors.keys()) digests.tensors[name] = digest_at(tensors, name);
  return digests;
}

}  // namespace

std::string training_to_json(const TrainingRecord& record) {
  const TrainingProgress& progress = record.progress;
  nlohmann::ordered_json settings = nlohmann::ordered_json::object();
  for (const Setting& setting : record.settings) settings[setting.key] = setting.value;
  nlohmann::ordered_json json = {
      {"format_version", kFormatVersion},
      {"run_id", record.run_id},
      {"step", progress.step},
      {"samples_consumed", progress.samples_consumed},
      {"tokens_consumed", progress.tokens_consumed},
      {"num_updates", progress.num_updates},
      {"num_skipped_in_a_row", progress.num_skipped_in_a_row},
      {"is_evaluation_pending", progress.is_evaluation_pending},
      {"layout", {{"data", record.num_data_ranks}, {"tensor", record.num_tensor_ranks}}},
      {"metrics",
       {{"loss", number(record.loss)}, {"validation_loss", number(record.validation_loss)}}},
      {"config", settings},
      {"data",
       {{"train", files_to_json(record.data.training)},
        {"validation", files_to_json(record.data.validation)}}}};
  if (record.digests) json["digests"] = digests_to_json(*record.digests);
  return json.dump(1) + "\n";
}

TrainingRecord training_from_json(std::string_view json, const std::string& path) {
  const JsonReader reader(json, path);
  const std::int64_t version = reader.integer("format_version");
  if (version != kFormatVersion) {
    reader.fail("format_version", fmt::format("{}", version), fmt::format("{}", kFormatVersion));
  }
  const JsonReader layout = reader.object("layout");
  const JsonReader metrics = reader.object("metrics");
  TrainingRecord record{
      .run_id = reader.string("run_id"),
      .progress = {.step = count(reader, "step"),
                   .samples_consumed = count(reader, "samples_consumed"),
                   .tokens_consumed = count(reader, "tokens_consumed"),
                   .num_updates = count(reader, "num_updates"),
                   .num_skipped_in_a_row = count(reader, "num_skipped_in_a_row"),
                   .is_evaluation_pending = reader.boolean("is_evaluation_pending")},
      .num_data_ranks = static_cast<int>(count(layout, "data", 1)),
      .num_tensor_ranks = static_cast<int>(count(layout, "tensor", 1)),
      .settings = {},
      .data = {},
      .loss = optional_real(metrics, "loss"),
      .validation_loss = optional_real(metrics, "validation_loss")};
  const JsonReader settings = reader.object("config");
  for (const std::string& key : settings.keys()) {
    record.settings.push_back({key, settings.string(key)});
  }
  if (reader.contains("data")) {
    const JsonReader data = reader.object("data");
    record.data = {.training = files_from_json(data, "train"),
                   .validation = files_from_json(data, "validation")};
  }
  if (reader.contains("digests")) record.digests = digests_from_json(reader.object("digests"));
  return record;
}

TrainingRecord read_training_record(const std::string& directory) {
  const std::string path = directory + "/training.json";
  return training_from_json(read_text(path), path);
}

}  // namespace redspine
