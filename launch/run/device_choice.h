// What each rank of a job computes on: the choice of all ranks together, and a line about it.
// Collective over the world.
#pragma once

#include <boost/program_options.hpp>
#include <memory>
#include <string>

#include "launch/config/config_file.h"
#include "launch/job/job.h"
#include "tensor/device.h"
#include "trainer/config.h"

namespace redspine {

/// How the CPU computes where it is the device.
struct CpuUse {
  int num_threads;
  std::string kernels;  // a name of cpu_kernels()
};

/// This rank's device as `run` asks for it: CUDA's where `run.device` is auto and every rank sees
/// one. Ranks of a host take its GPUs in turn. Throws ConfigError (run.device, run.precision) where
/// it is not to be had.
std::unique_ptr<Device> make_device(const MpiSession& session, const RunConfig& run,
                                    const CpuUse& cpu);

/// make_device() with the CPU's kernels that all ranks run, and then choose_collective_backend():
/// rejected together, at the places of the keys.
std::unique_ptr<Device> agree_on_device(const MpiSession& session, const EffectiveConfig& effective,
                                        const JobThreads& threads);

/// The options of commands other than train: --device, --precision and --collectives.
void add_device_options(boost::program_options::options_description& options);
/// What they say, under the keys of a run. Throws ConfigError under the names of the options.
RunConfig read_device_options(const boost::program_options::variables_map& values);
/// agree_on_device() for them.
std::unique_ptr<Device> agree_on_device(const MpiSession& session, const RunConfig& run,
                                        const JobThreads& threads);

/// A line for each run of neighbouring ranks on one device of one host.
std::string describe_devices(const ProcessGroup& world, const Device& device);

}  // namespace redspine
