// redspine train: from the command line to a Trainer that runs, on every rank of the job.

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "launch/agree.h"
#include "launch/command.h"
#include "launch/config_file.h"
#include "launch/layout.h"
#include "launch/threads.h"
#include "launch/version.h"
#include "parallel/mpi_session.h"
#include "tensor/device.h"
#include "trainer/training_run.h"

namespace redspine {
namespace {

namespace po = boost::program_options;

po::options_description make_options() {
  po::options_description options("Options");
  options.add_options()                                                       //
      ("config", po::value<std::string>(), "the run's configuration (YAML)")  //
      ("set", po::value<std::vector<std::string>>()->multitoken()->composing(),
       "KEY=VALUE ...: above the file, like model.num_layers=24; the last of a key wins")        //
      ("dry-run", "check everything, show the effective configuration and the layout, and end")  //
      ("help", "this text");
  return options;
}

struct Order {
  EffectiveConfig effective;
  bool is_dry_run;
};

Order read_order(Words words, int world_size) {
  const po::variables_map values = parse_words(words, make_options());
  if (!values.contains("config")) {
    throw ConfigError("", "--config FILE is missing; all options: redspine train --help");
  }
  std::vector<std::string> settings;
  if (values.contains("set")) settings = values["set"].as<std::vector<std::string>>();
  return {.effective = load_config(values["config"].as<std::string>(), settings, world_size),
          .is_dry_run = values.contains("dry-run")};
}

/// Hosts without a common file system may hold different versions of a file. `text` is what this
/// rank has of `what`, in lines.
void check_equal_on_all_ranks(const RankGroup& world, const char* what, const std::string& text) {
  const std::vector<std::string> texts = world.all_gather(text);
  std::string mistakes;
  for (std::size_t rank = 0; rank < texts.size() && mistakes.empty(); ++rank) {
    std::istringstream mine(texts.front());
    std::istringstream theirs(texts[rank]);
    while (mistakes.empty() && (mine || theirs)) {
      std::string my_line;
      std::string their_line;
      std::getline(mine, my_line);
      std::getline(theirs, their_line);
      if (my_line == their_line) continue;
      mistakes = fmt::format("the {} differs between ranks: \"{}\" on rank 0, \"{}\" on rank {}",
                             what, my_line, their_line, rank);
    }
  }
  refuse_together(world, mistakes);
}

ThreadPlan agree_on_threads(const RankGroup& world, std::vector<std::string>& hosts) {
  const RankCpus mine = agree(world, this_rank_cpus);
  std::vector<RankCpus> ranks;
  for (const std::string& line : world.all_gather(mine.to_string())) {
    ranks.push_back(RankCpus::from_string(line));
    hosts.push_back(ranks.back().host);
  }
  return plan_threads(ranks);
}

[[noreturn]] void refuse_output(const std::string& path, int code) {
  throw ConfigError("run.output_dir",
                    fmt::format("cannot write {}: {}", path, std::strerror(code)));
}

/// Makes the run's folder with the effective configuration in it. Rank 0 alone.
void prepare_run_directory(const Config& config) {
  const std::string directory = run_directory(config.run);
  const std::string path = directory + "/config.yaml";
  std::error_code failure;
  std::filesystem::create_directories(directory, failure);
  if (failure) refuse_output(path, failure.value());
  // The trainer opens it when it has taken all its memory, which is late to find a mistake.
  if (!std::ofstream(metrics_path(config.run), std::ios::app)) {
    refuse_output(metrics_path(config.run), errno);
  }
  std::ofstream file(path);
  file << fmt::format("# The effective configuration of this run, by redspine {}.\n",
                      version_number())
       << to_yaml(config);
  file.close();
  if (!file) refuse_output(path, errno);
}

/// Ends the whole job where this rank alone fails, while the trainer is still there: its end would
/// wait for collectives that the other ranks never join.
void run_or_abort(const MpiSession& session, Trainer& trainer, const Config& config) {
  try {
    run_training(trainer, config);
  } catch (const std::exception& error) {
    tell(session.world(), error.what());
    session.abort(kExitFailed);
  }
}

int train(const MpiSession& session, Words words) {
  const RankGroup& world = session.world();
  const Order order = agree(world, [&] { return read_order(words, world.size()); });
  const Config& config = order.effective.config;
  check_equal_on_all_ranks(world, "configuration", to_yaml(config));

  std::vector<std::string> hosts;
  const ThreadPlan plan = agree_on_threads(world, hosts);
  const auto with_place_of_key = [&](auto&& action) {
    return agree(world, [&] {
      try {
        return action();
      } catch (const ConfigError& error) {
        throw with_places(error, order.effective);
      }
    });
  };
  RunData data = with_place_of_key([&] { return RunData(config); });
  check_equal_on_all_ranks(world, "data", data.describe());
  if (!order.is_dry_run) {
    with_place_of_key([&] {
      if (world.rank() == 0) prepare_run_directory(config);
      return true;
    });
  }
  // Not before the last mistake that a user could make, which would be hard to see below them.
  if (world.rank() == 0) {
    for (const std::string& warning : plan.warnings) tell(world, "warning: " + warning);
  }
  if (order.is_dry_run) {
    if (world.rank() == 0) {
      fmt::print("{}\n{}", to_yaml_with_origins(order.effective),
                 describe_layout(config, hosts, plan.num_threads));
    }
    return kExitDone;
  }

  const auto device = make_cpu_device(plan.num_threads[static_cast<std::size_t>(world.rank())]);
  Trainer trainer(config, data, world, *device);
  run_or_abort(session, trainer, config);
  return kExitDone;
}

}  // namespace

int run_train(Words words) {
  if (asks_for_help(words)) {
    std::ostringstream text;
    text << make_options();
    fmt::print("redspine train --config FILE [--set KEY=VALUE ...] [--dry-run]\n\n{}", text.str());
    return kExitDone;
  }
  const MpiSession session(nullptr, nullptr);
  try {
    return train(session, words);
  } catch (const Refused&) {
    return kExitMistake;
  } catch (const std::exception& error) {
    tell(session.world(), error.what());
    session.abort(kExitFailed);
  }
}

}  // namespace redspine
