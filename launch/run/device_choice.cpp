#include "launch/run/device_choice.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "launch/config/fields.h"
#include "launch/config/scalars.h"
#include "launch/job/agree.h"
#include "parallel/group/communicator.h"
#include "parallel/mesh/choose_communicator.h"
#include "tensor/cpu_kernel_choice.h"

namespace redspine {
namespace {

namespace po = boost::program_options;

// The keys of `run` that are options of other commands.
constexpr const char* kOptions[] = {"device", "precision", "collectives"};

/// action(option, value) for each of them.
template <class Action>
void for_each_option(Config& config, const Action& action) {
  for (const Field& field : fields_of(config)) {
    for (const char* const option : kOptions) {
      if (field.key == fmt::format("run.{}", option)) action(option, field.value);
    }
  }
}

DeviceKind choose_kind(const ProcessGroup& world, DeviceChoice choice) {
  switch (choice) {
    case DeviceChoice::cpu:
      return DeviceKind::cpu;
    case DeviceChoice::cuda:
      return DeviceKind::cuda;
    case DeviceChoice::automatic:
      break;
  }
  std::vector<std::string> without;
  const std::vector<std::string> hosts =
      world.all_gather(num_cuda_devices() > 0 ? "" : ProcessGroup::host_name());
  std::copy_if(hosts.begin(), hosts.end(), std::back_inserter(without),
               [](const std::string& host) { return !host.empty(); });
  if (without.size() == hosts.size()) return DeviceKind::cpu;
  if (without.empty()) return DeviceKind::cuda;
  std::sort(without.begin(), without.end());
  without.erase(std::unique(without.begin(), without.end()), without.end());
  throw ConfigError("run.device", fmt::format("is auto, but of the ranks' hosts some have a CUDA "
                                              "device and these have none: {}; legal here: cpu",
                                              fmt::join(without, ", ")));
}

/// `text` with the names of options in place of the keys that they gave.
std::string with_option_names(std::string text) {
  for (const char* const option : kOptions) {
    const std::string key = std::string("run.") + option;
    for (std::size_t at = 0; (at = text.find(key, at)) != std::string::npos;) {
      text.replace(at, key.size(), std::string("--") + option);
    }
  }
  return text;
}

/// The same for the problems of `action`.
template <class Action>
auto with_option_names_in_problems(const Action& action) {
  try {
    return action();
  } catch (const ConfigError& error) {
    ConfigProblems problems;
    for (const ConfigProblem& problem : error.problems()) {
      problems.add(with_option_names(problem.key), with_option_names(problem.text));
    }
    throw ConfigError(problems.all());
  }
}

/// `agree_on` runs an action on all ranks and rejects on all ranks what any of them cannot do.
template <class Agree>
std::unique_ptr<Device> agree_on_device_by(const MpiSession& session, const RunConfig& run,
                                           const JobThreads& threads, const Agree& agree_on) {
  const ProcessGroup& world = session.world();
  // Ranks that hold the same parameters keep the same bits, so on the CPU all compute by the
  // kernels that every one of them can run.
  const std::vector<std::string> of_ranks = world.all_gather(agree(world, cpu_kernels));
  const std::string kernels = agree(world, [&] { return cpu_kernels_in_common(of_ranks); });
  auto device = agree_on([&] { return make_device(session, run, {threads.of(world), kernels}); });
  agree_on([&] { return choose_collective_backend(world, *device, run.collectives); });
  return device;
}

}  // namespace

std::unique_ptr<Device> make_device(const MpiSession& session, const RunConfig& run,
                                    const CpuUse& cpu) {
  if (choose_kind(session.world(), run.device) == DeviceKind::cuda) {
    return make_cuda_device(session.local_rank());
  }
  if (run.precision == Precision::bf16) {
    throw ConfigError("run.precision",
                      "is bf16, which the CPU backend does not compute in; legal here: fp32");
  }
  return make_cpu_device(cpu.num_threads, cpu.kernels);
}

std::unique_ptr<Device> agree_on_device(const MpiSession& session, const EffectiveConfig& effective,
                                        const JobThreads& threads) {
  return agree_on_device_by(session, effective.config.run, threads, [&](const auto& action) {
    return agree_with_places(session.world(), effective, action);
  });
}

void add_device_options(po::options_description& options) {
  Config config;
  for_each_option(config, [&](const char* option, const FieldValue& value) {
    options.add_options()(
        option, po::value<std::string>()->default_value(text_of(value)),
        fmt::format("{}", fmt::join(std::get<Choice>(value).words, " | ")).c_str());
  });
}

RunConfig read_device_options(const po::variables_map& values) {
  Config config;
  ConfigProblems problems;
  for_each_option(config, [&](const char* option, const FieldValue& value) {
    const auto problem = store({.text = values[option].as<std::string>()}, value);
    if (problem) problems.add(fmt::format("--{}", option), *problem);
  });
  problems.throw_if_any();
  with_option_names_in_problems([&] {
    config.run.validate(problems);
    problems.throw_if_any();
    return true;
  });
  return config.run;
}

std::unique_ptr<Device> agree_on_device(const MpiSession& session, const RunConfig& run,
                                        const JobThreads& threads) {
  return agree_on_device_by(session, run, threads, [&](const auto& action) {
    return agree(session.world(), [&] { return with_option_names_in_problems(action); });
  });
}

std::string describe_devices(const ProcessGroup& world, const Device& device) {
  const std::vector<std::string> of_ranks =
      world.all_gather(fmt::format("{}: {}", ProcessGroup::host_name(), device.description()));
  std::string text;
  for (std::size_t first = 0; first < of_ranks.size();) {
    std::size_t end = first + 1;
    while (end < of_ranks.size() && of_ranks[end] == of_ranks[first]) ++end;
    const std::string ranks = end == first + 1 ? fmt::format("rank {}", first)
                                               : fmt::format("ranks {} to {}", first, end - 1);
    text += fmt::format("{} @ {}\n", ranks, of_ranks[first]);
    first = end;
  }
  return text;
}

}  // namespace redspine
