#include "launch/bench/phases.h"

#include <chrono>
#include <numeric>

#include "launch/bench/forwarding_device.h"
#include "tensor/kernels.h"

namespace redspine {
namespace {

// Adds the time until its end to a phase.
class Stopwatch {
 public:
  explicit Stopwatch(double& seconds) : seconds_(seconds) {}
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;
  ~Stopwatch() {
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start_;
    seconds_ += passed.count();
  }

 private:
  double& seconds_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

class TimedKernels final : public Kernels {
 public:
  TimedKernels(Device& inner, PhaseTimes& times, std::int64_t num_head_columns)
      : inner_(inner), times_(times), num_head_columns_(num_head_columns) {}

#define REDSPINE_RUN(Operation) \
  void run(const Operation& op) const override { time(phase_of(op), op); }
  REDSPINE_FOR_EACH_OPERATION(REDSPINE_RUN)
#undef REDSPINE_RUN

 private:
  Phase phase_of(const Matmul& op) const {
    const bool is_forward = op.transpose_b == Transpose::yes;
    const bool is_head = (is_forward ? op.out.cols() : op.a.cols()) == num_head_columns_;
    return is_head ? Phase::head_and_loss : is_forward ? Phase::linear : Phase::input_gradients;
  }
  Phase phase_of(const WeightGradient& op) const {
    return op.dy.cols() == num_head_columns_ ? Phase::head_and_loss : Phase::weight_gradients;
  }
  static Phase phase_of(const AddBias& /*op*/) { return Phase::linear; }
  static Phase phase_of(const Accumulate& /*op*/) { return Phase::weight_gradients; }
  static Phase phase_of(const MatmulGelu& /*op*/) { return Phase::linear; }
  static Phase phase_of(const MatmulGeluBackward& /*op*/) { return Phase::input_gradients; }
  static Phase phase_of(const LayerNorm& /*op*/) { return Phase::norms; }
  static Phase phase_of(const AddLayerNorm& /*op*/) { return Phase::norms; }
  static Phase phase_of(const LayerNormBackward& /*op*/) { return Phase::norms_backward; }
  static Phase phase_of(const RmsNorm& /*op*/) { return Phase::norms; }
  static Phase phase_of(const AddRmsNorm& /*op*/) { return Phase::norms; }
  static Phase phase_of(const RmsNormBackward& /*op*/) { return Phase::norms_backward; }
  static Phase phase_of(const Rope& /*op*/) { return Phase::other_kernels; }
  static Phase phase_of(const Dropout& /*op*/) { return Phase::other_kernels; }
  static Phase phase_of(const Attention& /*op*/) { return Phase::attention; }
  static Phase phase_of(const AttentionBackward& /*op*/) { return Phase::attention_backward; }
  static Phase phase_of(const CopyColumns& /*op*/) { return Phase::attention_backward; }
  static Phase phase_of(const Swiglu& /*op*/) { return Phase::other_kernels; }
  static Phase phase_of(const SwigluBackward& /*op*/) { return Phase::other_kernels; }
  static Phase phase_of(const Embedding& /*op*/) { return Phase::embedding; }
  static Phase phase_of(const EmbeddingBackward& /*op*/) { return Phase::embedding_backward; }
  static Phase phase_of(const RowMax& /*op*/) { return Phase::head_and_loss; }
  static Phase phase_of(const CrossEntropySums& /*op*/) { return Phase::head_and_loss; }
  static Phase phase_of(const CrossEntropyLoss& /*op*/) { return Phase::head_and_loss; }
  static Phase phase_of(const CrossEntropyBackward& /*op*/) { return Phase::head_and_loss; }
  static Phase phase_of(const SumOfSquares& /*op*/) { return Phase::gradient_norm; }
  static Phase phase_of(const ExactSumOfSquares& /*op*/) { return Phase::gradient_norm; }
  static Phase phase_of(const AdamW& /*op*/) { return Phase::optimizer; }

  template <class Op>
  void time(Phase phase, const Op& op) const {
    const Stopwatch stopwatch(times_[phase]);
    inner_.kernels().run(op);
    inner_.synchronize(Stream::compute);
  }

  Device& inner_;
  PhaseTimes& times_;
  std::int64_t num_head_columns_;
};

class TimedDevice final : public ForwardingDevice {
 public:
  TimedDevice(Device& inner, PhaseTimes& times, std::int64_t num_head_columns)
      : ForwardingDevice(inner), times_(times), kernels_(inner, times, num_head_columns) {}

  const Kernels& kernels() const override { return kernels_; }

  void upload(TensorView to, ConstTensorView from_host) override {
    const Stopwatch stopwatch(times_[Phase::fills_and_copies]);
    ForwardingDevice::upload(to, from_host);
  }
  void download(TensorView to_host, ConstTensorView from) override {
    const Stopwatch stopwatch(times_[Phase::fills_and_copies]);
    ForwardingDevice::download(to_host, from);
  }
  void copy(TensorView to, ConstTensorView from) override {
    const Stopwatch stopwatch(times_[Phase::fills_and_copies]);
    ForwardingDevice::copy(to, from);
  }
  void zero(TensorView view) override {
    const Stopwatch stopwatch(times_[Phase::fills_and_copies]);
    ForwardingDevice::zero(view);
  }
  void order(Stream first, Stream then) override {
    const Stopwatch stopwatch(times_[Phase::waiting]);
    ForwardingDevice::order(first, then);
  }
  void synchronize(Stream stream) override {
    const Stopwatch stopwatch(times_[Phase::waiting]);
    ForwardingDevice::synchronize(stream);
  }

 private:
  PhaseTimes& times_;
  TimedKernels kernels_;
};

}  // namespace

const char* name_of(Phase phase) {
  constexpr std::array<const char*, kNumPhases> kNames = {
      "embedding",        "norms",          "attention",          "linear",
      "head and loss",    "norms backward", "attention backward", "input gradients",
      "weight gradients", "other kernels",  "embedding backward", "fills and copies",
      "gradient norm",    "optimizer",      "waiting for ranks"};
  return kNames[static_cast<std::size_t>(phase)];
}

double PhaseTimes::sum() const { return std::accumulate(seconds.begin(), seconds.end(), 0.0); }

std::unique_ptr<Device> make_timed_device(Device& inner, PhaseTimes& times,
                                          std::int64_t num_head_columns) {
  return std::make_unique<TimedDevice>(inner, times, num_head_columns);
}

}  // namespace redspine
