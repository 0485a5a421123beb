#include "launch/run/planning.h"

#include <fmt/format.h>

#include "tensor/printable.h"
#include "trainer/plan/memory_classes.h"

namespace redspine {
namespace {

constexpr double kGib = 1 << 30;
constexpr double kMib = 1 << 20;

std::string duration(double seconds) {
  if (seconds < 120.0) return fmt::format("{:.1f} s", seconds);
  if (seconds < 7200.0) return fmt::format("{:.1f} min", seconds / 60.0);
  if (seconds < 172'800.0) return fmt::format("{:.1f} h", seconds / 3600.0);
  return fmt::format("{:.1f} days", seconds / 86'400.0);
}

}  // namespace

DeviceKind planned_device(const RunConfig& run, const Machine* machine) {
  if (machine != nullptr) {
    if (run.device != DeviceChoice::automatic && run.device != machine->device) {
      throw ConfigError("run.device",
                        fmt::format("is {}, but the machine {} computes on {}; legal "
                                    "with it: auto, {}",
                                    word_of(run.device), machine->name, word_of(machine->device),
                                    word_of(machine->device)));
    }
    if (run.precision == Precision::bf16 && machine->device == DeviceChoice::cpu) {
      throw ConfigError(
          "run.precision",
          fmt::format("is bf16, but the machine {} computes on cpu, in fp32 alone", machine->name));
    }
    return machine->device == DeviceChoice::cuda ? DeviceKind::cuda : DeviceKind::cpu;
  }
  switch (run.device) {
    case DeviceChoice::cpu:
      return DeviceKind::cpu;
    case DeviceChoice::cuda:
      return DeviceKind::cuda;
    case DeviceChoice::automatic:
      break;
  }
  return run.precision == Precision::bf16 ? DeviceKind::cuda : DeviceKind::cpu;
}

std::string memory_table(const MemoryPlan& memory, DeviceKind kind, const Machine* machine) {
  std::string text;
  const auto add_row = [&text](const char* name, std::int64_t bytes) {
    text += fmt::format("  {:<24}{:>12.1f} MiB\n", name, static_cast<double>(bytes) / kMib);
  };
  for (const MemoryClass& each : kMemoryClasses) add_row(each.name, memory.*each.bytes);
  add_row("allocated, of a rank", memory.total());
  add_row("to have room for", memory.on_device(kind));
  if (machine != nullptr) {
    const std::string problem = memory_problem(memory, *machine);
    text += problem.empty() ? fmt::format("  fits: {:.1f} GiB a rank on {}\n", machine->memory_gib,
                                          machine->name)
                            : fmt::format("  does not fit: {}\n", problem);
  }
  return text;
}

std::string traffic_text(const RunPlan& plan) {
  std::string text = "  communicates in a step:";
  for (std::size_t axis = 0; axis < kNumAxes; ++axis) {
    const Traffic& traffic = plan.traffic[axis];
    text += fmt::format("{} {:.1f} MiB in {} along {}", axis == 0 ? "" : ",",
                        static_cast<double>(traffic.bytes) / kMib,
                        counted(traffic.num_calls, "call"), name_of(kAxes[axis]));
  }
  return text + fmt::format("\n  saves: {} of {:.2f} GiB\n",
                            counted(plan.num_checkpoints, "checkpoint"),
                            static_cast<double>(plan.checkpoint_bytes) / kGib);
}

std::string time_text(const RunTime& time, const Config& config, const Machine& machine) {
  const StepTime& step = time.step;
  std::string text = fmt::format(
      "predicted on {}:\n"
      "  step      {:.4f} s = products {:.4f} + attention {:.4f} + other kernels {:.4f} + update "
      "{:.4f} + waits for tensor ranks {:.4f}, for data ranks {:.4f} + host {:.4f}\n"
      "  tokens    {:.0f} per second\n"
      "  training  {:.2f} TFLOP/s per rank, MFU {:.1f}%\n"
      "  run       {} for {}",
      machine.name, step.seconds(), step.products, step.attention, step.memory, step.update,
      step.tensor_waits, step.data_waits, step.host, time.tokens_per_second,
      time.model_flops * 1e-12, 100.0 * time.mfu, duration(time.run_seconds),
      counted(config.train.steps, "step"));
  if (time.save_seconds > 0.0) {
    text += fmt::format("; a checkpoint is written in {}", duration(time.save_seconds));
  }
  return text + '\n';
}

}  // namespace redspine
