#include "launch/bench/memory.h"

#include <algorithm>

#include "launch/bench/rounds.h"
#include "parallel/partition.h"
#include "parallel/shared_memory/shared_memory.h"
#include "tensor/ops.h"
#include "tensor/tensor.h"

namespace redspine {
namespace {

// Beyond any cache.
constexpr std::int64_t kStreamFloats = std::int64_t{24} << 20;
constexpr int kNumRounds = 5;

double median(const std::vector<double>& ascending) { return ascending[ascending.size() / 2]; }

// Beyond any cache, and little to share.
constexpr std::int64_t kMostExchangedFloats = std::int64_t{16} << 20;

// See CollectiveTime. Longer copies than kMostExchangedFloats go in pieces of that.
std::optional<double> exchange_seconds(const ProcessGroup& group, Device& device, TensorView to) {
  if (!device.has_host_memory()) return std::nullopt;
  const std::int64_t piece = std::min(to.count(), kMostExchangedFloats);
  const auto stride = sizeof(float) * static_cast<std::size_t>(piece);
  const auto memory = SharedMemory::make(group, static_cast<std::size_t>(group.size()) * stride);
  if (memory == nullptr) return std::nullopt;
  const auto part_of = [&](int rank) {
    std::byte* begin = memory->bytes().data() + static_cast<std::size_t>(rank) * stride;
    return TensorView(begin, DType::f32, {piece});
  };
  const TensorView own = part_of(group.rank());
  const TensorView next = part_of((group.rank() + 1) % group.size());
  const auto write_own = [&] {
    group.barrier();
    std::fill_n(own.data<float>(), piece, 1.0F);  // to the caches: memset might go around them
    group.barrier();
  };
  const auto copy_next = [&] {
    for (const Range& range : pieces(to.count(), piece)) {
      device.copy(to.slice(range.begin, range.size()), next.slice(0, range.size()));
    }
  };
  return group.all_reduce(median(seconds_of_rounds(device, kNumRounds, write_own, copy_next)),
                          ReduceOp::max);
}

}  // namespace

StreamRates measure_streams(Device& device) {
  const Shape shape{kStreamFloats};
  const Tensor parameter(device, DType::f32, shape);
  const Tensor exp_avg(device, DType::f32, shape);
  const Tensor exp_avg_sq(device, DType::f32, shape);
  const Tensor gradient(device, DType::f32, shape);
  const AdamWPart all{.begin = 0, .count = kStreamFloats, .weight_decay = 0.1};
  const auto bytes = [](double a_float) { return a_float * static_cast<double>(kStreamFloats); };
  const double copy =
      seconds_of_rounds(device, kNumRounds, [&] { device.copy(parameter, gradient); }).front();
  const double adamw = seconds_of_rounds(device, kNumRounds, [&] {
                         ops::run(device, AdamW{.parameter = parameter,
                                                .exp_avg = exp_avg,
                                                .exp_avg_sq = exp_avg_sq,
                                                .gradient = gradient,
                                                .parts = {&all, 1},
                                                .gradient_scale = 1.0,
                                                .learning_rate = 1e-3,
                                                .beta1 = 0.9,
                                                .beta2 = 0.95,
                                                .epsilon = 1e-8,
                                                .correction1 = 0.1,
                                                .correction2 = 0.05});
                       }).front();
  return {.copy = bytes(8) / copy, .adamw = bytes(28) / adamw};
}

std::vector<CollectiveTime> measure_collectives(const ProcessMesh& mesh, Device& device,
                                                std::int64_t most_bytes) {
  std::vector<std::int64_t> sizes = {
      kLeastCollectiveBytes, 16'384, 262'144, 1'000'000, 8'000'000, 64'000'000,
      kMostCollectiveBytes};
  std::erase_if(sizes, [&](std::int64_t bytes) { return bytes > most_bytes; });
  const Tensor values(device, DType::f32, {sizes.back() / 4});
  const Tensor other(device, DType::f32, {sizes.back() / 4});
  std::vector<CollectiveTime> times;
  for (const Axis axis : kAxes) {
    if (mesh.along(axis).size() == 1) continue;
    for (const std::int64_t bytes : sizes) {
      const TensorView piece = values.view().slice(0, bytes / 4);
      const double seconds = median(seconds_of_rounds(
          device, kNumRounds, [&] { mesh.group(axis).barrier(); },
          [&] {
            device.order(Stream::compute, Stream::activations);
            mesh.along(axis).all_reduce(piece, ReduceOp::sum, Stream::activations);
            device.order(Stream::activations, Stream::compute);
          }));
      const double copy_seconds = median(seconds_of_rounds(
          device, kNumRounds, [&] { device.copy(piece, other.view().slice(0, bytes / 4)); }));
      times.push_back({.axis = axis,
                       .bytes = bytes,
                       .seconds = mesh.world().all_reduce(seconds, ReduceOp::max),
                       .copy_seconds = copy_seconds,
                       .exchange_seconds = exchange_seconds(mesh.group(axis), device, piece)});
    }
  }
  return times;
}

}  // namespace redspine
