#include "trainer/sampling.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstring>
#include <numeric>
#include <string>

#include "tensor/philox.h"

namespace redspine {
namespace {

constexpr std::uint64_t kPurpose = 0x73616D706C65;  // "sample"

/// A standard Gumbel variable.
double gumbel(std::uint64_t key, std::int64_t position, std::uint32_t token) {
  const auto counter = static_cast<std::uint64_t>(position);
  const PhiloxCounter random = philox4x32(key, {token, static_cast<std::uint32_t>(counter),
                                                static_cast<std::uint32_t>(counter >> 32), 0});
  const std::uint64_t bits = (std::uint64_t{random[0]} << 32 | random[1]) >> 11;
  const double uniform = (static_cast<double>(bits) + 0.5) * 0x1p-53;  // never 0 or 1
  return -std::log(-std::log(uniform));
}

}  // namespace

// The largest of logit / temperature + a Gumbel variable is a draw from the softmax (Gumbel 1954;
// Maddison et al., arXiv 1411.0030): no sum whose rounding a draw could depend on.
std::int32_t choose_token(std::span<const float> logits, std::int64_t position,
                          const SamplingOptions& options) {
  std::vector<std::uint32_t> candidates(logits.size());
  std::iota(candidates.begin(), candidates.end(), 0U);
  const auto is_likelier = [&](std::uint32_t a, std::uint32_t b) {
    return logits[a] > logits[b] || (logits[a] == logits[b] && a < b);
  };
  const auto num_kept = static_cast<std::size_t>(options.top_k);
  if (num_kept > 0 && num_kept < candidates.size()) {
    std::nth_element(candidates.begin(), candidates.begin() + options.top_k - 1, candidates.end(),
                     is_likelier);
    candidates.resize(num_kept);
  }
  if (options.temperature == 0.0) {
    return static_cast<std::int32_t>(
        *std::min_element(candidates.begin(), candidates.end(), is_likelier));
  }
  const std::uint64_t key = random_key(options.seed, kPurpose);
  const auto score = [&](std::uint32_t token) {
    return static_cast<double>(logits[token]) / options.temperature + gumbel(key, position, token);
  };
  std::uint32_t best = candidates.front();
  double best_score = score(best);
  for (const std::uint32_t token : candidates) {
    const double its_score = score(token);
    if (its_score > best_score || (its_score == best_score && token < best)) {
      best = token;
      best_score = its_score;
    }
  }
  return static_cast<std::int32_t>(best);
}

namespace {

// No backward pass reads what a block leaves: one set of that serves all.
ExecutionContext forward_alone(ExecutionContext execution) {
  execution.recompute = Recompute::block;
  return execution;
}

}  // namespace

NextToken::NextToken(const ModelConfig& config, std::int64_t max_context,
                     ExecutionContext execution)
    : max_context_(max_context),
      execution_(forward_alone(execution)),
      model_(config, {.num_sequences = 1, .sequence_length = max_context}, 0, execution_,
             InitialWeights::zero),
      tokens_(execution.device, DType::i32, {1, max_context}),
      samples_(execution.device, DType::i64, {1}),
      logits_1v_(execution.device, DType::f32, {1, model_.logits_columns().size()}) {}

// Attention is causal, so what stands behind the context does not matter.
std::vector<float> NextToken::logits(std::span<const std::int32_t> context) {
  assert(!context.empty());
  const auto length = static_cast<std::size_t>(max_context_);
  if (context.size() > length) context = context.last(length);
  std::vector<std::int32_t> tokens(length);
  std::copy(context.begin(), context.end(), tokens.begin());
  Device& device = execution_.device;
  device.upload(tokens_.view().reshape({max_context_}),
                host_view(std::span<const std::int32_t>(tokens)));
  model_.row_logits(logits_1v_,
                    {.tokens_BT = tokens_, .targets_BT = tokens_, .samples_B = samples_},
                    static_cast<std::int64_t>(context.size()) - 1);

  std::vector<float> mine(static_cast<std::size_t>(logits_1v_.count()));
  device.download(host_view(std::span<float>(mine)),
                  logits_1v_.view().reshape({logits_1v_.count()}));
  // The ranks' columns follow one another in the order of the ranks.
  const std::string bytes(reinterpret_cast<const char*>(mine.data()), mine.size() * sizeof(float));
  std::vector<float> all;
  for (const std::string& theirs : execution_.mesh.group(Axis::tensor).all_gather(bytes)) {
    const std::size_t begin = all.size();
    all.resize(begin + theirs.size() / sizeof(float));
    if (!theirs.empty()) std::memcpy(all.data() + begin, theirs.data(), theirs.size());
  }
  return all;
}

}  // namespace redspine
