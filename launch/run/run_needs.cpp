#include "launch/run/run_needs.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "data/tokenizer/tokenizer.h"
#include "launch/job/agree.h"
#include "trainer/checkpoint/format/model_json.h"
#include "trainer/checkpoint/loader.h"
#include "trainer/checkpoint/setting_changes.h"
#include "trainer/checkpoint/sight.h"
#include "trainer/checkpoint/verify.h"
#include "trainer/training_run.h"

namespace redspine {
namespace {

// Settings of the model keep their keys; what is wrong with the directory gets its own.
template <class Action>
bool under_its_key(const Action& action) {
  try {
    action();
    return true;
  } catch (const ConfigError& error) {
    ConfigProblems problems;
    for (const ConfigProblem& problem : error.problems()) {
      problems.add(problem.key.empty() ? "checkpoint.initialize_from" : problem.key, problem.text);
    }
    throw ConfigError(problems.all());
  }
}

bool is_directory(const std::string& path) {
  struct stat status = {};
  return ::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

}  // namespace

void check_tokenizer(const Config& config) {
  constexpr const char* kKey = "data.tokenizer";
  const std::string& name = config.data.tokenizer;
  if (name.empty()) return;  // nothing is said about the ids
  const std::int64_t num_ids = load_tokenizer(name, kKey)->vocab_size();
  if (num_ids <= config.model.vocab_size) return;
  throw ConfigError(
      kKey, fmt::format("{}: has ids up to {}; legal for model.vocab_size {}: up to "
                        "{}",
                        name, num_ids - 1, config.model.vocab_size, config.model.vocab_size - 1));
}

void check_initial_weights(const ProcessGroup& world, const EffectiveConfig& effective,
                           const KeepGoing& keep_going) {
  const Config& config = effective.config;
  const std::string& directory = config.checkpoint.initialize_from;
  if (directory.empty()) return;
  agree_with_places(world, effective, [&] {
    check_same_directory(directory, "checkpoint.initialize_from", world);
    return true;
  });
  agree_with_places(world, effective,
                    [&] { return under_its_key([&] { check_weights(directory, config.model); }); });
  const Verification verification =
      config.checkpoint.verify ? Verification::model : Verification::sizes;
  agree_with_places(world, effective, [&] {
    return under_its_key([&] { check_as_written(directory, verification, world, keep_going); });
  });
}

std::string describe_initial_weights(const Config& config) {
  const std::string& directory = config.checkpoint.initialize_from;
  std::string text = fmt::format("starting at step 0 with the weights of {}{}\n", directory,
                                 config.checkpoint.verify ? "" : kUnverified);
  for (const SettingChange& change : changed_options(read_model_config(directory), config.model)) {
    text +=
        fmt::format("{}: {} -> {} ({})\n", change.key, change.before, change.after, change.effect);
  }
  return text;
}

void check_run_directory(const RunConfig& config) {
  const std::string directory = run_directory(config);
  for (const std::string& path : {config_path(config), metrics_path(config)}) {
    if (is_directory(path)) reject_output(path, EISDIR);
    if (::access(path.c_str(), W_OK) != 0 && errno != ENOENT) reject_output(path, errno);
  }
  // What is not there is made in the nearest folder above that is.
  for (std::filesystem::path path = directory + "/checkpoints"; !path.empty();) {
    struct stat status = {};
    if (::stat(path.c_str(), &status) == 0) {
      if (!S_ISDIR(status.st_mode)) reject_output(path, ENOTDIR);
      if (::access(path.c_str(), R_OK | W_OK | X_OK) != 0) reject_output(path, errno);
      return;
    }
    if (errno != ENOENT) reject_output(path, errno);
    if (path == path.parent_path()) return;
    path = path.has_parent_path() ? path.parent_path() : ".";
  }
}

std::string config_path(const RunConfig& config) { return run_directory(config) + "/config.yaml"; }

void reject_output(const std::string& path, int code) {
  throw ConfigError("run.output_dir",
                    fmt::format("cannot write {}: {}", path, std::strerror(code)));
}

}  // namespace redspine
