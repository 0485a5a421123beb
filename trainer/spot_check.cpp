#include "trainer/spot_check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "parallel/group/failure.h"
#include "tensor/philox.h"
#include "trainer/digest/named_ranks.h"

namespace redspine {
namespace {

template <class T>
std::string bytes_of(std::span<const T> values) {
  return {reinterpret_cast<const char*>(values.data()), values.size_bytes()};
}

template <class T>
std::vector<T> values_of(const std::string& bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

// Of a data rank: the tensor ranks that share one model.
std::vector<int> ranks_of(const MeshShape& shape, int data_rank) {
  std::vector<int> ranks;
  for (int rank = 0; rank < shape.num_ranks(); ++rank) {
    if (shape.coordinate(rank, Axis::data) == data_rank) ranks.push_back(rank);
  }
  return ranks;
}

int before(int data_rank, int num_data_ranks) {
  return (data_rank + num_data_ranks - 1) % num_data_ranks;
}

std::vector<const Parameter*> parameters_of(const ParameterStore& store, std::size_t bucket) {
  const Range elements = store.bucket_elements(bucket);
  std::vector<const Parameter*> parameters;
  for (const Parameter& parameter : store.parameters()) {
    const bool is_in = parameter.offset >= elements.begin && parameter.offset < elements.end;
    if (is_in) parameters.push_back(&parameter);
  }
  return parameters;
}

}  // namespace

SpotCheck::SpotCheck(const Config& config, Gpt& model, const ProcessMesh& mesh, Device& device)
    : seed_(config.run.seed),
      num_blocks_(config.model.num_layers),
      model_(model),
      mesh_(mesh),
      device_(device),
      block_(model.make_block(store_)) {
  const std::int64_t batch = config.batch.micro_batch_size;
  const std::int64_t length = config.batch.sequence_length;
  const DType dtype = dtype_of(config.run.precision);
  store_.allocate(device, dtype);
  attention_saved_ = block_.make_attention_saved(batch, length);
  mlp_saved_ = block_.make_mlp_saved(batch, length);
  scratch_ = block_.make_scratch(batch, length);
  samples_B_ = Tensor(device, DType::i64, {batch});
  for (Tensor* stream : {&x_nD_, &dout_nD_, &received_x_nD_, &received_dresidual_nD_, &out_nD_}) {
    *stream = Tensor(device, dtype, model.stream_shape());
  }
}

std::int64_t SpotCheck::block_of(std::uint64_t seed, std::int64_t num_blocks, std::int64_t step) {
  constexpr std::uint64_t kPurpose = std::uint64_t{0x5C} << 56;
  const std::uint64_t drawn = random_key(seed, kPurpose + static_cast<std::uint64_t>(step));
  return static_cast<std::int64_t>(drawn % static_cast<std::uint64_t>(num_blocks));
}

void SpotCheck::begin(std::int64_t step) {
  step_ = step;
  checked_ = static_cast<std::size_t>(block_of(seed_, num_blocks_, step));
  results_.clear();
}

void SpotCheck::before_backward(const BlockPass& pass) {
  if (pass.block != checked_) return;
  device_.copy(x_nD_, pass.x_nD);
  device_.copy(dout_nD_, pass.dresidual_nD);
  results_.push_back(hash_of(pass.out_nD));
}

void SpotCheck::after_backward(const BlockPass& pass) {
  if (pass.block != checked_) return;
  results_.push_back(hash_of(pass.dresidual_nD));
  hash_gradients(model_.parameters(), Gpt::bucket_of(checked_), results_);
}

void SpotCheck::finish(std::span<const std::int64_t> samples) {
  const ProcessGroup& data_axis = mesh_.group(Axis::data);
  const auto checked = static_cast<std::size_t>(before(data_axis.rank(), data_axis.size()));
  const auto their_samples = values_of<std::int64_t>(
      data_axis.all_gather(bytes_of(samples.first(static_cast<std::size_t>(samples_B_.count()))))
          .at(checked));
  const auto theirs = values_of<std::uint64_t>(
      data_axis.all_gather(bytes_of(std::span<const std::uint64_t>(results_))).at(checked));
  device_.upload(samples_B_, host_view(std::span(their_samples)));
  exchange();
  const std::string mine = difference(theirs, compute_again());
  if (mesh_.world().all_reduce(mine.empty() ? 0.0 : 1.0, ReduceOp::max) > 0.0) fail(mine);
}

// A send may wait for its receive, so neighbours take turns.
void SpotCheck::exchange() {
  Communicator& data_axis = mesh_.along(Axis::data);
  const int next = (data_axis.rank() + 1) % data_axis.size();
  const int last = before(data_axis.rank(), data_axis.size());
  for (const bool sends_now : {data_axis.rank() % 2 == 0, data_axis.rank() % 2 != 0}) {
    if (sends_now) {
      data_axis.send(x_nD_, next, Stream::compute);
      data_axis.send(dout_nD_, next, Stream::compute);
    } else {
      data_axis.recv(received_x_nD_, last, Stream::compute);
      data_axis.recv(received_dresidual_nD_, last, Stream::compute);
    }
  }
}

SpotCheck::Results SpotCheck::compute_again() {
  const ParameterStore& model = model_.parameters();
  const Range elements = model.bucket_elements(Gpt::bucket_of(checked_));
  device_.copy(store_.values(), model.values().slice(elements.begin, elements.size()));
  store_.refresh_working(device_);
  store_.zero_gradients();
  block_.stand_in_for(static_cast<std::int64_t>(checked_));

  Results results;
  const Block::Saved saved{.attention = attention_saved_, .mlp = mlp_saved_};
  const DropoutSource dropout = model_.dropout_of(samples_B_);
  block_.forward_norm1(received_x_nD_, attention_saved_);
  const Block::Output out = block_.forward(received_x_nD_, saved, scratch_, dropout);
  // The output is made by the norm that comes next, whatever its weights; what this one leaves
  // besides, the one before the backward pass replaces.
  block_.add_forward_norm1(
      {.sum_ND = out_nD_, .residual_ND = out.residual_nD, .branch_ND = out.branch_nD},
      attention_saved_);
  results.push_back(hash_of(out_nD_));
  block_.forward_norm1(received_x_nD_, attention_saved_);
  block_.backward(received_dresidual_nD_, received_x_nD_, saved, scratch_, dropout);
  results.push_back(hash_of(received_dresidual_nD_));
  hash_gradients(store_, 0, results);
  return results;
}

std::uint64_t SpotCheck::hash_of(ConstTensorView values) {
  if (device_.has_host_memory()) return XXH3_64bits(values.raw(), values.bytes());
  host_.resize(values.bytes());
  device_.download({host_.data(), values.dtype(), values.shape()}, values);
  return XXH3_64bits(host_.data(), host_.size());
}

void SpotCheck::hash_gradients(const ParameterStore& store, std::size_t bucket, Results& results) {
  for (const Parameter* parameter : parameters_of(store, bucket)) {
    results.push_back(hash_of(parameter->gradient));
  }
}

std::string SpotCheck::difference(const Results& first, const Results& again) const {
  if (first == again) return "";
  const auto at = std::ranges::mismatch(first, again).in1 - first.begin();
  if (at == 0) return "its output";
  if (at == 1) return "the gradient of its input";
  const auto parameters = parameters_of(model_.parameters(), Gpt::bucket_of(checked_));
  return "the gradient of " + parameters[static_cast<std::size_t>(at) - 2]->spec.name;
}

void SpotCheck::fail(const std::string& mine) const {
  const std::vector<std::string> hosts = mesh_.world().all_gather(ProcessGroup::host_name());
  const std::vector<std::string> differences = mesh_.world().all_gather(mine);
  const MeshShape& shape = mesh_.shape();
  std::vector<std::string> found;
  std::map<int, std::size_t> num_found;  // [data rank]: in which it is one of the two
  for (int again = 0; again < shape.size(Axis::data); ++again) {
    const int first = before(again, shape.size(Axis::data));
    const std::vector<int> ranks = ranks_of(shape, again);
    const auto differing = std::ranges::find_if(
        ranks, [&](int rank) { return !differences[static_cast<std::size_t>(rank)].empty(); });
    if (differing == ranks.end()) continue;
    ++num_found[first];
    ++num_found[again];
    found.push_back(
        fmt::format("what {} computed in {} is not what {} computed from the same "
                    "input: {} differs",
                    name_ranks(ranks_of(shape, first), hosts), fmt::format("block {}", checked_),
                    name_ranks(ranks, hosts), differences[static_cast<std::size_t>(*differing)]));
  }
  // Whoever is one of the two in most of them, which is all of both where there is one.
  const std::size_t most = std::ranges::max_element(num_found, {}, [](const auto& of_rank) {
                             return of_rank.second;
                           })->second;
  std::vector<int> suspects;
  for (const auto& [data_rank, count] : num_found) {
    if (count < most) continue;
    const std::vector<int> ranks = ranks_of(shape, data_rank);
    suspects.insert(suspects.end(), ranks.begin(), ranks.end());
  }
  throw CollectiveError(fmt::format("step {}: spot check: {}; to be suspected: {}", step_,
                                    fmt::join(found, "; "), name_ranks(suspects, hosts)));
}

}  // namespace redspine
