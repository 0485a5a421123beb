#include "tests/support/run_case.h"

#include <filesystem>

#include "tests/support/random_tensor.h"
#include "tests/support/structured_tokens.h"
#include "tests/support/test_device.h"
#include "trainer/training_run.h"

namespace redspine::testing {
namespace {

Config valid(const Config& config, int world_size) {
  ConfigProblems problems;
  config.validate(problems, world_size);
  problems.throw_if_any();
  return config;
}

}  // namespace

RunFiles::RunFiles()
    : directory(shared_temporary_directory()),
      train(directory + "/train"),
      validation(directory + "/validation") {
  if (world().rank() == 0) {
    write_structured_tokens(train, {});
    write_structured_tokens(validation, {.num_documents = 3, .document_length = 71});
  }
  world().barrier();
}

Config run_config(const RunFiles& files, Family family) {
  Config config;
  config.run = {.name = "run", .output_dir = files.directory};
  config.model = ModelConfig::preset(family);
  config.model.num_layers = 2;
  config.model.hidden_size = 32;
  config.model.num_heads = 4;
  config.model.num_kv_heads = 2;
  config.model.ffn_size = 48;
  config.model.vocab_size = 257;
  config.model.max_sequence_length = 16;
  config.model.rope.original_length = 16;
  config.data.train = {{.path = files.train}};
  config.data.validation = {{.path = files.validation}};
  config.batch = {.sequence_length = 16, .global_batch_size = 8, .micro_batch_size = 2};
  config.parallel.tensor = tensor_degree();
  config.optimizer = {.learning_rate = 3e-3, .epsilon = 1e-6};
  config.schedule = {.warmup_steps = 2, .decay_steps = 6};
  config.train = {.steps = 6, .eval_interval = 0};
  return config;
}

int tensor_degree() { return MeshShape::fits(world().size(), 2) ? 2 : 1; }

RunCase::RunCase(const Config& run_config, const ProcessGroup& ranks,
                 const TrainingProgress& progress)
    : config(valid(run_config, ranks.size())),
      device(make_test_device()),
      data(config),
      trainer(config, data, ranks, *device, progress) {}

RunEnd run_to_end(RunCase& run) {
  const std::string directory = run_directory(run.config.run);
  const CheckpointStore store(directory + "/checkpoints", "0123456789abcdef");
  if (world().rank() == 0) std::filesystem::create_directories(store.folder());
  world().barrier();
  CheckpointSaver saver({.model = run.config.model, .mode = SaveMode::synchronous, .retention = {}},
                        store, run.trainer.mesh(), run.trainer.model().parameters(), *run.device);
  const StopSignals signals;
  RequestWatch watch(directory, world().rank(), signals);
  return run_training(
      run.trainer, run.config,
      {.run_id = store.run_id(), .settings = {}, .data = {}, .resumed = std::nullopt},
      {.saver = saver, .store = store, .watch = watch});
}

std::vector<float> RunCase::parameters() {
  return from_device(*device, trainer.model().parameters().values());
}

}  // namespace redspine::testing
