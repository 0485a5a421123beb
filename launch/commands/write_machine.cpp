#include "launch/commands/write_machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <vector>

#include "data/io/output.h"
#include "data/io/partial_file.h"
#include "launch/bench/gemm.h"
#include "launch/bench/machine.h"
#include "launch/config/machine_file.h"
#include "launch/job/agree.h"
#include "launch/job/exit_code.h"
#include "tensor/printable.h"

namespace redspine {

int write_machine(const MachineToWrite& wanted, RunData& data, const ProcessGroup& world,
                  Device& device) {
  agree(world, [&] {
    if (device.kind() == DeviceKind::cuda && !wanted.memory_gib) {
      throw ConfigError("--memory-gib", "is missing; legal: the GiB of a GPU's memory");
    }
    return true;
  });
  const std::vector<std::string> hosts = world.all_gather(ProcessGroup::host_name());
  const auto ranks_of_host = std::ranges::count(hosts, hosts.front());
  const Machine machine = measure_machine(
      {.config = wanted.config,
       .data = data,
       .name = fmt::format("{} of {}", counted(ranks_of_host, "rank"), device.description()),
       .square_size = wanted.square_size.value_or(square_size(device)),
       .num_steps = wanted.num_steps,
       .most_bytes = wanted.most_bytes,
       .memory_gib =
           wanted.memory_gib.value_or(host_memory_gib() / static_cast<double>(ranks_of_host))},
      world, device);
  if (world.rank() != 0) return kExitDone;
  PartialFile written(wanted.path, "--write-machine");
  const std::string text = to_yaml(machine, "Measured by redspine bench --write-machine.");
  written.file().write(std::as_bytes(std::span(text)));
  written.file().sync();
  written.publish();
  print_out("{}: {} rates of operations, {} of sums between ranks\n", wanted.path,
            machine.rates.size(), machine.all_reduces.size());
  return kExitDone;
}

}  // namespace redspine
