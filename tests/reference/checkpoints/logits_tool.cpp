// logits_tool DIRECTORY <TOKENS >LOGITS: the logits of a model directory at every position of one
// sequence. TOKENS are i32, LOGITS f32 [token][vocabulary], both without a header.

#include <fmt/format.h>

#include <cstdio>
#include <vector>

#include "model/gpt.h"
#include "parallel/group/mpi_session.h"
#include "trainer/checkpoint/format/model_json.h"
#include "trainer/checkpoint/loader.h"

namespace redspine {
namespace {

std::vector<std::int32_t> read_tokens() {
  std::vector<std::int32_t> tokens;
  std::int32_t token = 0;
  while (std::fread(&token, sizeof(token), 1, stdin) == 1) tokens.push_back(token);
  return tokens;
}

void write_logits(const std::string& directory, const ProcessGroup& world) {
  const std::vector<std::int32_t> tokens = read_tokens();
  const auto length = static_cast<std::int64_t>(tokens.size());
  const ModelConfig config = read_model_config(directory);
  const auto device = make_cpu_device(1);
  const ProcessMesh mesh(world, MeshShape::of(world.size(), 1), *device);
  Gpt model(config, {.num_sequences = 1, .sequence_length = length}, 0, {*device, mesh},
            InitialWeights::zero);
  load_weights(directory, config, {.store = model.parameters(), .device = *device});

  Tensor tokens_BT(*device, DType::i32, {1, length});
  device->upload(tokens_BT, host_view(std::span(tokens)));
  const Tensor samples_B(*device, DType::i64, {1});
  Tensor logits_NV(*device, DType::f32, {length, config.vocab_size});
  model.logits(logits_NV,
               {.tokens_BT = tokens_BT, .targets_BT = tokens_BT, .samples_B = samples_B});
  std::vector<float> logits(static_cast<std::size_t>(logits_NV.count()));
  device->download(host_view(std::span(logits)), logits_NV);
  if (std::fwrite(logits.data(), sizeof(float), logits.size(), stdout) != logits.size()) {
    throw Error("writing the logits failed");
  }
}

}  // namespace
}  // namespace redspine

int main(int argc, char** argv) {
  const redspine::MpiSession mpi(&argc, &argv);
  try {
    if (argc != 2) throw redspine::ConfigError("", "logits_tool DIRECTORY <TOKENS >LOGITS");
    redspine::write_logits(argv[1], mpi.world());
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
