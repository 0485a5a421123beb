#include "launch/device_choice.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "launch/fields.h"
#include "launch/scalars.h"
#include "parallel/communicator.h"

namespace redspine {
namespace {

namespace po = boost::program_options;

// The keys of a run that are options of other commands.
constexpr const char* kOptions[] = {"device", "precision", "collectives"};

DeviceKind choose_kind(const RankGroup& world, DeviceChoice choice) {
  if (choice == DeviceChoice::cpu) return DeviceKind::cpu;
  if (choice == DeviceChoice::cuda) return DeviceKind::cuda;
  std::vector<std::string> without;
  const std::vector<std::string> hosts =
      world.all_gather(num_cuda_devices() > 0 ? "" : RankGroup::host_name());
  std::copy_if(hosts.begin(), hosts.end(), std::back_inserter(without),
               [](const std::string& host) { return !host.empty(); });
  if (without.size() == hosts.size()) return DeviceKind::cpu;
  if (without.empty()) return DeviceKind::cuda;
  without.erase(std::unique(without.begin(), without.end()), without.end());
  throw ConfigError("run.device", fmt::format("is auto, but of the ranks' hosts some have a CUDA "
                                              "device and these have none: {}; legal here: cpu",
                                              fmt::join(without, ", ")));
}

/// The mistakes of `action` under the names of the options that gave the keys.
template <class Action>
auto with_option_names(const Action& action) {
  try {
    return action();
  } catch (const ConfigError& error) {
    Mistakes mistakes;
    for (const Mistake& mistake : error.mistakes()) {
      const bool is_key = mistake.key.starts_with("run.");
      mistakes.add(is_key ? "--" + mistake.key.substr(4) : mistake.key, mistake.text);
    }
    throw ConfigError(mistakes.all());
  }
}

}  // namespace

std::unique_ptr<Device> make_device(const MpiSession& session, const RunConfig& run,
                                    int num_threads) {
  if (choose_kind(session.world(), run.device) == DeviceKind::cuda) {
    return make_cuda_device(session.local_rank());
  }
  if (run.precision == Precision::bf16) {
    throw ConfigError("run.precision",
                      "is bf16, which the CPU backend does not compute in; legal here: fp32");
  }
  return make_cpu_device(num_threads);
}

std::unique_ptr<Device> agree_on_device(const MpiSession& session, const EffectiveConfig& effective,
                                        const JobThreads& threads) {
  const RankGroup& world = session.world();
  const RunConfig& run = effective.config.run;
  auto device = agree_with_places(world, effective,
                                  [&] { return make_device(session, run, threads.of(world)); });
  agree_with_places(world, effective,
                    [&] { return choose_collectives(world, *device, run.collectives); });
  return device;
}

void add_device_options(po::options_description& options) {
  options.add_options()                                                                 //
      ("device", po::value<std::string>()->default_value("auto"), "auto | cpu | cuda")  //
      ("precision", po::value<std::string>()->default_value("fp32"), "fp32 | bf16")     //
      ("collectives", po::value<std::string>()->default_value("auto"), "auto | nccl | mpi");
}

RunConfig read_device_options(const po::variables_map& values) {
  Config config;
  Mistakes mistakes;
  for (const Field& field : fields_of(config)) {
    for (const std::string option : kOptions) {
      if (field.key != "run." + option) continue;
      const auto mistake = store({.text = values[option].as<std::string>()}, field.value);
      if (mistake) mistakes.add("--" + option, *mistake);
    }
  }
  mistakes.throw_if_any();
  with_option_names([&] {
    config.run.validate(mistakes);
    mistakes.throw_if_any();
    return true;
  });
  return config.run;
}

std::unique_ptr<Device> agree_on_device(const MpiSession& session, const RunConfig& run,
                                        const JobThreads& threads) {
  const RankGroup& world = session.world();
  auto device = agree(world, [&] {
    return with_option_names([&] { return make_device(session, run, threads.of(world)); });
  });
  agree(world, [&] {
    return with_option_names([&] { return choose_collectives(world, *device, run.collectives); });
  });
  return device;
}

std::string describe_devices(const RankGroup& world, const Device& device) {
  const std::vector<std::string> of_ranks =
      world.all_gather(fmt::format("{}: {}", RankGroup::host_name(), device.description()));
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
