#include "tests/support/training_case.h"

#include "data/files/megatron_writer.h"
#include "tests/support/tiny_model.h"
#include "trainer/checkpoint/format/manifest.h"

namespace redspine::testing {
namespace {

constexpr std::int64_t kVocabulary = 61;
constexpr std::int64_t kSequenceLength = 8;
constexpr std::int64_t kGlobalBatch = 16;

void write_file(const std::string& prefix, int num_documents, std::uint32_t seed) {
  MegatronWriter writer(prefix, kVocabulary);
  std::uint32_t state = seed;
  for (int document = 0; document < num_documents; ++document) {
    std::vector<std::int32_t> tokens;
    for (int i = 0; i < 50; ++i) {
      state = state * 1664525u + 1013904223u;
      tokens.push_back(static_cast<std::int32_t>((state >> 16) % kVocabulary));
    }
    writer.append(tokens);
    writer.end_document();
  }
  writer.finish();
}

ModelConfig tiny(Family family) {
  ModelConfig model = tiny_model(family, {.hidden_size = 16,
                                          .ffn_size = 22,  // uneven over four ranks
                                          .vocab_size = kVocabulary,
                                          .max_sequence_length = kSequenceLength});
  model.dropout = 0.1;
  return model;
}

}  // namespace

void write_training_tokens(const std::string& folder) {
  write_file(folder + "/a", 5, 1);  // 31 samples: two steps are an epoch
  write_file(folder + "/b", 20, 2);
}

std::vector<std::pair<std::string, ModelConfig>> stored_models() {
  std::vector<std::pair<std::string, ModelConfig>> models;
  models.emplace_back("gpt2", tiny(Family::gpt2));
  models.emplace_back("gpt2 untied", tiny(Family::gpt2));
  models.back().second.tie_embeddings = false;
  models.emplace_back("llama, kv heads on two ranks each", tiny(Family::llama));
  models.back().second.num_kv_heads = 2;
  models.emplace_back("neither, one kv head on all ranks", tiny(Family::gpt2));
  models.back().second.num_kv_heads = 1;
  models.back().second.activation = Activation::swiglu;
  return models;
}

Config training_config(const ModelConfig& model, const std::string& folder, int num_data,
                       int num_tensor) {
  Config config;
  config.model = model;
  config.data.train = {{.path = folder + "/a", .weight = 2.0},
                       {.path = folder + "/b", .weight = 1.0}};
  config.data.validation = {{.path = folder + "/a"}};
  config.batch = {.sequence_length = kSequenceLength,
                  .global_batch_size = kGlobalBatch,
                  .micro_batch_size = kGlobalBatch / num_data / 2};
  config.parallel.tensor = num_tensor;
  config.optimizer = {.learning_rate = 3e-3, .epsilon = 1e-6};
  config.schedule = {.kind = ScheduleKind::cosine, .warmup_steps = 3, .decay_steps = 8};
  config.train = {.steps = 8, .eval_interval = 2};
  return config;
}

std::map<std::string, std::string> tensor_hashes(const std::string& directory) {
  std::map<std::string, std::string> hashes;
  for (const auto& [name, file] : read_manifest(directory).files) {
    hashes.insert(file.tensors.begin(), file.tensors.end());
  }
  return hashes;
}

TrainingRecord record_of(const Trainer& trainer) {
  TrainingRecord record;
  record.run_id = "0123456789abcdef";
  record.progress = trainer.progress();
  record.num_data_ranks = trainer.mesh().group(Axis::data).size();
  record.num_tensor_ranks = trainer.mesh().group(Axis::tensor).size();
  return record;
}

CheckpointSaver make_saver(Trainer& trainer, const ModelConfig& model, const std::string& folder,
                           Device& device, SaveMode mode) {
  SaverOptions options{.model = model, .mode = mode, .retention = {}};
  options.retention.keep = 0;
  return {std::move(options), CheckpointStore(folder, "0123456789abcdef"), trainer.mesh(),
          trainer.model().parameters(), device};
}

}  // namespace redspine::testing
