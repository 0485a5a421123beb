#include "trainer/evaluator.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "trainer/batch_hash.h"

namespace redspine {
namespace {

constexpr std::int32_t kNoTarget = -1;

}  // namespace

Evaluator::Evaluator(const ValidationData& data, Gpt& model, BatchFeed& feed,
                     ExecutionContext execution, std::int64_t max_windows)
    : data_(data),
      model_(model),
      feed_(feed),
      execution_(execution),
      num_windows_(max_windows > 0 ? std::min(max_windows, data.num_windows())
                                   : data.num_windows()) {}

// Data ranks take micro-batches in turn. Where the windows run out, a rank computes on rows without
// targets, so that all of them make the same collective calls.
std::optional<ValidationReport> Evaluator::evaluate(std::int64_t step,
                                                    const std::function<Requests()>& poll) {
  const ProcessGroup& data_axis = execution_.mesh.group(Axis::data);
  const ProcessGroup& tensor_axis = execution_.mesh.group(Axis::tensor);
  const MicroBatchShape shape = feed_.shape();
  const auto num_tokens = static_cast<std::size_t>(shape.num_sequences * shape.sequence_length);
  std::vector<std::int32_t> tokens(num_tokens);
  std::vector<std::int32_t> targets(num_tokens);
  double num_targets = 0.0;
  std::uint64_t hash = 0;
  for (std::int64_t begin = 0; begin < num_windows_;
       begin += shape.num_sequences * data_axis.size()) {
    if (poll && agree_on(poll(), execution_.mesh.world()).stops()) {
      model_.take_loss_sum();
      return std::nullopt;
    }
    const std::int64_t first =
        std::min(begin + shape.num_sequences * data_axis.rank(), num_windows_);
    const std::int64_t count = std::min(shape.num_sequences, num_windows_ - first);
    const auto used = static_cast<std::size_t>(count * shape.sequence_length);
    std::fill(tokens.begin(), tokens.end(), 0);
    std::fill(targets.begin(), targets.end(), kNoTarget);
    data_.fill(first, count, std::span(tokens).first(used), std::span(targets).first(used));
    model_.evaluate(feed_.windows(tokens, targets));
    num_targets += static_cast<double>(num_tokens) -
                   static_cast<double>(std::count(targets.begin(), targets.end(), kNoTarget));
    hash += sample_hash(tokens) + sample_hash(targets);
  }
  const HashParts parts = parts_of(hash);
  ScalarSum loss = model_.take_loss_sum();
  std::vector<double> totals = {num_targets};
  totals.insert(totals.end(), parts.begin(), parts.end());
  const std::size_t num_others = totals.size();
  const std::vector<double> numbers = loss.numbers();
  totals.insert(totals.end(), numbers.begin(), numbers.end());
  data_axis.all_reduce(totals, ReduceOp::sum);
  loss.set_numbers(std::span(totals).subspan(num_others));
  HashMoments moments = moments_of(hash_of(std::span(totals).subspan<1, kNumHashParts>()));
  tensor_axis.all_reduce(moments, ReduceOp::sum);
  if (!are_equal(moments, tensor_axis.size())) {
    fail_for_unequal_hashes(execution_.mesh, hash, fmt::format("the evaluation at step {}", step));
  }
  return ValidationReport{.step = step,
                          .loss = loss.total() / totals[0],
                          .tokens = static_cast<std::int64_t>(totals[0])};
}

}  // namespace redspine
