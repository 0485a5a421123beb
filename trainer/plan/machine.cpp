#include "trainer/plan/machine.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <limits>
#include <string_view>

#include "tensor/operation_list.h"
#include "tensor/printable.h"
#include "tensor/value_checks.h"

namespace redspine {
namespace {

constexpr std::int64_t kMostCount = std::numeric_limits<std::int64_t>::max();

#define REDSPINE_NAME(Operation) std::string_view(#Operation),
constexpr std::string_view kNames[] = {
    REDSPINE_FOR_EACH_OPERATION(REDSPINE_NAME) "MatmulTransposed", "copy", "fill", "product"};
#undef REDSPINE_NAME

constexpr std::string_view kComputing[] = {
    "Matmul",         "MatmulTransposed", "MatmulGelu",        "MatmulGeluBackward",
    "WeightGradient", "Attention",        "AttentionBackward", "product"};

void check_rate(ConfigProblems& problems, const std::string& entry, const MachineRate& rate) {
  if (std::ranges::find(kNames, rate.operation) == std::end(kNames)) {
    problems.add(entry + ".operation",
                 fmt::format("is {}; legal: {}", excerpt(rate.operation), fmt::join(kNames, ", ")));
    return;
  }
  const bool computes = std::ranges::find(kComputing, rate.operation) != std::end(kComputing);
  const std::pair<const char*, double> values[] = {
      {"gigaflops", rate.gigaflops}, {"gigabytes_per_second", rate.gigabytes_per_second}};
  const auto& [needed, value] = values[computes ? 0 : 1];
  check_positive(problems, (entry + "." + needed).c_str(), value);
  const auto& [useless, other] = values[computes ? 1 : 0];
  if (other != 0.0) {
    problems.add(entry + "." + useless,
                 fmt::format("is given, but {} is measured in {}", rate.operation, needed));
  }
  if (!computes) {
    check_positive(problems, (entry + ".bytes").c_str(), rate.bytes);
    return;
  }
  const std::pair<const char*, std::int64_t> sizes[] = {
      {"rows", rate.rows}, {"inner", rate.inner}, {"cols", rate.cols}};
  for (const auto& [name, size] : sizes) {
    check_count(problems, (entry + "." + name).c_str(), size, 1, kMostCount);
  }
}

}  // namespace

double Machine::peak_flops(Precision precision) const {
  return 1e12 * (precision == Precision::bf16 ? bf16_tflops : fp32_tflops);
}

void Machine::validate(ConfigProblems& problems) const {
  if (device == DeviceChoice::automatic) {
    problems.add("device", "is auto; legal for a machine: cpu, cuda");
  }
  check_count(problems, "ranks_per_node", ranks_per_node, 1, 4096);
  check_positive(problems, "memory_gib", memory_gib);
  check_positive(problems, "memory_gigabytes_per_second", memory_gigabytes_per_second);
  check_not_negative(problems, "operation_seconds", operation_seconds);
  check_not_negative(problems, "step_seconds", step_seconds);
  check_positive(problems, "fp32_tflops", fp32_tflops);
  check_not_negative(problems, "bf16_tflops", bf16_tflops);
  check_not_negative(problems, "storage_gigabytes_per_second", storage_gigabytes_per_second);
  if (!(overlap >= 0.0 && overlap <= 1.0)) {
    problems.add("overlap", fmt::format("is {}; legal: 0 to 1", overlap));
  }
  check_not_negative(problems, "inside.latency_seconds", inside.latency_seconds);
  check_positive(problems, "inside.gigabytes_per_second", inside.gigabytes_per_second);
  check_not_negative(problems, "between.latency_seconds", between.latency_seconds);
  check_positive(problems, "between.gigabytes_per_second", between.gigabytes_per_second);
  for (std::size_t i = 0; i < rates.size(); ++i) {
    check_rate(problems, fmt::format("rates[{}]", i), rates[i]);
  }
  for (std::size_t i = 0; i < all_reduces.size(); ++i) {
    const std::string entry = fmt::format("all_reduces[{}]", i);
    check_count(problems, (entry + ".ranks").c_str(), all_reduces[i].ranks, 2, 4096);
    check_count(problems, (entry + ".bytes").c_str(), all_reduces[i].bytes, 1, kMostCount);
    check_positive(problems, (entry + ".seconds").c_str(), all_reduces[i].seconds);
  }
}

}  // namespace redspine
