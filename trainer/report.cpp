#include "trainer/report.h"

namespace redspine {

StepReport with_times_of(const StepReport& before, StepReport report) {
  const double seconds = before.seconds + report.seconds;
  const auto rate = [&](double rate_before, double rate_now) {
    return (rate_before * before.seconds + rate_now * report.seconds) / seconds;
  };
  report.tokens_per_second = rate(before.tokens_per_second, report.tokens_per_second);
  report.tflops_per_rank = rate(before.tflops_per_rank, report.tflops_per_rank);
  report.seconds = seconds;
  report.num_steps += before.num_steps;
  return report;
}

}  // namespace redspine
