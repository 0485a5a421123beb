#include "trainer/plan/search.h"

#include <fmt/format.h>

#include <algorithm>

#include "trainer/plan/planned_rank.h"

namespace redspine {
namespace {

std::vector<std::int64_t> divisors(std::int64_t number) {
  std::vector<std::int64_t> small;
  std::vector<std::int64_t> large;
  for (std::int64_t d = 1; d * d <= number; ++d) {
    if (number % d != 0) continue;
    small.push_back(d);
    if (d * d != number) large.push_back(number / d);
  }
  small.insert(small.end(), large.rbegin(), large.rend());
  return small;
}

template <class Enum>
std::vector<Enum> all_of() {
  std::vector<Enum> values;
  values.reserve(std::size(kEnumWords<Enum>));
  for (const auto& each : kEnumWords<Enum>) values.push_back(each.value);
  return values;
}

// The first thing that is wrong with the configuration on so many ranks; "" for nothing.
std::string problem_of(const Config& config, int num_ranks) {
  ConfigProblems problems;
  config.validate(problems, num_ranks);
  return problems.empty() ? "" : problems.all().front().key + " " + problems.all().front().text;
}

class Search {
 public:
  Search(const Config& config, int num_ranks, const Machine& machine)
      : config_(config),
        num_ranks_(num_ranks),
        machine_(machine),
        kind_(machine.device == DeviceChoice::cuda ? DeviceKind::cuda : DeviceKind::cpu),
        checkpoint_bytes_(checkpoint_bytes(config.model)) {}

  LayoutSearch run() {
    for (const std::int64_t tensor : divisors(num_ranks_)) {
      const Layout least{.tensor = tensor,
                         .micro_batch_size = 1,
                         .precision = config_.run.precision,
                         .recompute = Recompute::none,
                         .optimizer = OptimizerPlacement::replicated,
                         .sequence = false};
      const std::string problem = problem_of(least.applied_to(config_), num_ranks_);
      if (problem.empty()) {
        of_tensor_degree(least);
      } else {
        found_.rejected.push_back({least, true, problem});
      }
    }
    std::ranges::stable_sort(found_.ranked, std::ranges::greater(),
                             [](const PlannedLayout& each) { return each.time.tokens_per_second; });
    return std::move(found_);
  }

 private:
  // Options that change nothing on this mesh, or that this version does not have, are left out.
  void of_tensor_degree(Layout layout) {
    const bool has_data_ranks = layout.tensor < num_ranks_;
    for (const Precision precision : all_of<Precision>()) {
      if (precision == Precision::bf16 && machine_.bf16_tflops == 0.0) continue;
      if (precision == Precision::bf16 && kind_ == DeviceKind::cpu) continue;
      for (const Recompute recompute : all_of<Recompute>()) {
        for (const OptimizerPlacement optimizer : all_of<OptimizerPlacement>()) {
          if (optimizer != OptimizerPlacement::replicated && !has_data_ranks) continue;
          for (const bool sequence : {false, true}) {
            if (sequence && layout.tensor == 1) continue;
            layout.precision = precision;
            layout.recompute = recompute;
            layout.optimizer = optimizer;
            layout.sequence = sequence;
            if (!problem_of(layout.applied_to(config_), num_ranks_).empty()) continue;
            of_micro_batches(layout);
          }
        }
      }
    }
  }

  // Larger ones take more memory: from the first that does not fit on, none does.
  void of_micro_batches(Layout layout) {
    const std::int64_t of_data_rank =
        config_.batch.global_batch_size / layout.applied_to(config_).num_data_ranks(num_ranks_);
    for (const std::int64_t micro_batch : divisors(of_data_rank)) {
      layout.micro_batch_size = micro_batch;
      const Config config = layout.applied_to(config_);
      if (!problem_of(config, num_ranks_).empty()) continue;
      const ProcessGroup world = ProcessGroup::imagined(0, num_ranks_);
      PlannedRank rank(config, world, kind_);
      const MemoryPlan memory = rank.memory();
      if (std::string problem = memory_problem(memory, machine_); !problem.empty()) {
        found_.rejected.push_back({layout, micro_batch < of_data_rank, std::move(problem)});
        return;
      }
      found_.ranked.push_back(
          {layout, memory,
           time_of_run(config, num_ranks_, machine_, rank.record_step(), checkpoint_bytes_)});
    }
  }

  Config config_;
  int num_ranks_;
  const Machine& machine_;
  DeviceKind kind_;
  std::int64_t checkpoint_bytes_;
  LayoutSearch found_;
};

}  // namespace

Config Layout::applied_to(Config config) const {
  config.parallel.tensor = tensor;
  config.parallel.recompute = recompute;
  config.parallel.optimizer = optimizer;
  config.parallel.sequence = sequence;
  config.batch.micro_batch_size = micro_batch_size;
  config.run.precision = precision;
  return config;
}

LayoutSearch search_layouts(const Config& config, int num_ranks, const Machine& machine) {
  return Search(config, num_ranks, machine).run();
}

}  // namespace redspine
