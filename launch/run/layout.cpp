#include "launch/run/layout.h"

#include <fmt/format.h>

#include <algorithm>

#include "model/model_spec.h"
#include "tensor/printable.h"

namespace redspine {
namespace {

/// "617300", or "616800 to 617300" where ranks differ.
std::string span_text(std::int64_t least, std::int64_t most) {
  return least == most ? fmt::format("{}", most) : fmt::format("{} to {}", least, most);
}

/// A line for each run of neighbouring ranks on one host with equally many threads.
std::string host_table(const std::vector<std::string>& hosts, const std::vector<int>& num_threads) {
  std::string table;
  for (std::size_t first = 0; first < hosts.size();) {
    std::size_t end = first + 1;
    while (end < hosts.size() && hosts[end] == hosts[first] &&
           num_threads[end] == num_threads[first]) {
      ++end;
    }
    const std::string ranks = end == first + 1 ? fmt::format("rank {}", first)
                                               : fmt::format("ranks {} to {}", first, end - 1);
    table += fmt::format("  {} on {}, threads each: {}\n", ranks, hosts[first], num_threads[first]);
    first = end;
  }
  return table;
}

}  // namespace

std::string describe_layout(const Config& config, const std::vector<std::string>& hosts,
                            const std::vector<int>& num_threads) {
  const int world_size = static_cast<int>(hosts.size());
  const int tensor_size = static_cast<int>(config.parallel.tensor);
  std::int64_t least = num_parameters(config.model);
  std::int64_t most = 0;
  for (int rank = 0; rank < tensor_size; ++rank) {
    const std::int64_t local =
        num_local_parameters(config.model, {tensor_size, rank, config.num_leaves()});
    least = std::min(least, local);
    most = std::max(most, local);
  }
  return fmt::format("layout: {} = {} data x {} tensor\n", counted(world_size, "rank"),
                     config.num_data_ranks(world_size), tensor_size) +
         host_table(hosts, num_threads) +
         fmt::format(
             "  parameters: {} in total, {} per rank\n"
             "  per step: {} of {} = {} x {} x {}\n",
             num_parameters(config.model), span_text(least, most),
             counted(config.batch.global_batch_size, "sequence"),
             counted(config.batch.sequence_length, "token"),
             counted(config.num_data_ranks(world_size), "data rank"),
             counted(config.num_accumulation_steps(world_size), "accumulation step"),
             counted(config.batch.micro_batch_size, "sequence"));
}

}  // namespace redspine
