#include "parallel/mesh/parameter_gather.h"

#include <utility>

namespace redspine {

ParameterGather::ParameterGather(Device& device, const ProcessMesh& mesh,
                                 std::vector<GatheredBucket> buckets)
    : device_(device),
      mesh_(mesh),
      buckets_(std::move(buckets)),
      num_started_(buckets_.size()),
      num_there_(buckets_.size()) {}

ParameterGather::~ParameterGather() { finish_streams(device_); }

void ParameterGather::begin() {
  finish();
  device_.order(Stream::compute, Stream::gradients);
  num_started_ = 0;
  num_there_ = 0;
  start_next();
}

// A stream can only be waited for as a whole, so no more than one bucket is under way beneath what
// the compute stream does meanwhile.
void ParameterGather::await(std::size_t bucket) {
  if (bucket < num_there_) return;
  while (num_started_ <= bucket) start_next();
  device_.order(Stream::gradients, Stream::compute);
  num_there_ = num_started_;
  if (num_started_ < buckets_.size()) start_next();
}

void ParameterGather::finish() {
  if (num_there_ < buckets_.size()) await(buckets_.size() - 1);
}

void ParameterGather::start_next() {
  const GatheredBucket& bucket = buckets_[num_started_++];
  for (const TensorView& values : bucket.values) {
    mesh_.along(Axis::data).all_gather(values, bucket.shares, Stream::gradients);
  }
}

}  // namespace redspine
