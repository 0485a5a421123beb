// Brings parameters from the data ranks that have updated them to all others, a bucket at a time
// and in the order in which a forward pass reads them: while it computes with one bucket, the next
// one comes. The counterpart of GradientReducer for a sharded optimizer. Collective: all ranks make
// the same calls.
#pragma once

#include <cstddef>
#include <vector>

#include "parallel/mesh/process_mesh.h"
#include "parallel/partition.h"
#include "tensor/view.h"

namespace redspine {

struct GatheredBucket {
  std::vector<TensorView> values;  // each of one dim
  std::vector<Range> shares;       // of each, [data rank]
};

class ParameterGather {
 public:
  /// `device` and `mesh` outlive it.
  ParameterGather(Device& device, const ProcessMesh& mesh, std::vector<GatheredBucket> buckets);
  ParameterGather(const ParameterGather&) = delete;
  ParameterGather& operator=(const ParameterGather&) = delete;
  /// Waits for what is under way.
  ~ParameterGather();

  /// Every rank has updated its share of all buckets, on the compute stream.
  void begin();
  /// What the compute stream is given next sees the values of all ranks in this bucket and those
  /// before it.
  void await(std::size_t bucket);
  /// The same of all buckets.
  void finish();

 private:
  void start_next();

  Device& device_;
  const ProcessMesh& mesh_;
  std::vector<GatheredBucket> buckets_;
  std::size_t num_started_;
  std::size_t num_there_;
};

}  // namespace redspine
