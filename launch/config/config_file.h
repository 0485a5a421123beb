// The configuration of a run as the command line gives it: a file, settings above it, presets and
// derived defaults beneath it. Local: every rank reads for itself and gets the same.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>

#include "launch/job/agree.h"
#include "trainer/config.h"

namespace redspine {

struct EffectiveConfig {
  Config config;
  /// Where each value came from, by full key: "run.yaml:3:5", "--set KEY=VALUE", "preset llama",
  /// "from train.steps". A key that is not listed has its default.
  std::map<std::string, std::string> origins;
};

/// Reads, completes and validates. Throws ConfigError with all problems: those of the text and
/// those of the values, each with the place where its key was given.
EffectiveConfig load_config(const std::string& path, std::span<const std::string> settings,
                            int world_size);

/// The same from a text; `source` names it in places.
EffectiveConfig parse_config(std::string_view text, const std::string& source,
                             std::span<const std::string> settings, int world_size);

/// The whole of a text file; ConfigError where it cannot be read, which calls it `what`.
std::string read_text_file(const std::string& path, const std::string& what);

/// The same problems with the places where their keys were given: for those found later, such as
/// in the data files.
ConfigError with_places(const ConfigError& error, const EffectiveConfig& effective);

/// agree() with the places of keys in the problems.
template <class Action>
auto agree_with_places(const ProcessGroup& world, const EffectiveConfig& effective,
                       Action&& action) {
  return agree(world, [&] {
    try {
      return action();
    } catch (const ConfigError& error) {
      throw with_places(error, effective);
    }
  });
}

/// A complete file that reads back to the same values.
std::string to_yaml(Config config);
/// The same with the origin of each value as a comment behind it.
std::string to_yaml_with_origins(EffectiveConfig effective);

}  // namespace redspine
