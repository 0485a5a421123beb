#include "launch/commands/command.h"

#include <fmt/format.h>

#include <algorithm>

#include "data/tokenizer/utf8.h"
#include "launch/config/nearest.h"
#include "launch/job/job_size.h"
#include "tensor/error.h"
#include "tensor/printable.h"

namespace redspine {

namespace po = boost::program_options;

int start_command(const Command& command, const std::string& full_name, Arguments arguments) {
  if (command.processes == Processes::one && reject_many_ranks(full_name)) return kExitUserError;
  return command.run(arguments);
}

namespace {

/// Most arguments are paths; what is written somewhere of the others is text as well.
void check_text(const po::option& option, const std::string& positional) {
  if (option.string_key == "set") return;  // its keys' problems are told by their names
  for (const std::string& value : option.value) {
    const std::string problem = problem_in_name(value);
    if (problem.empty()) continue;
    const bool is_named = option.string_key != positional;
    throw ConfigError(is_named ? "--" + option.string_key : "",
                      fmt::format("read {}: {}; legal: UTF-8", excerpt(value), problem));
  }
}

}  // namespace

bool asks_for_help(Arguments arguments) {
  return std::any_of(arguments.begin(), arguments.end(),
                     [](const std::string& word) { return word == "--help" || word == "-h"; });
}

po::variables_map parse_arguments(Arguments arguments, const po::options_description& options,
                                  const std::string& positional) {
  namespace style = po::command_line_style;
  po::positional_options_description positions;
  if (!positional.empty()) positions.add(positional.c_str(), -1);
  po::variables_map values;
  try {
    // Guessing would let a shortened name change its meaning when an option is added.
    po::command_line_parser parser(std::vector<std::string>(arguments.begin(), arguments.end()));
    parser.options(options).style(style::unix_style & ~style::allow_guessing);
    if (!positional.empty()) parser.positional(positions);
    const po::parsed_options parsed = parser.run();
    for (const po::option& option : parsed.options) {
      if (option.string_key.empty()) {
        throw ConfigError("", fmt::format("{}: belongs to no option", option.value.front()));
      }
      check_text(option, positional);
    }
    po::store(parsed, values);
    po::notify(values);
  } catch (const po::unknown_option& error) {
    std::vector<std::string> known;
    for (const auto& option : options.options()) known.push_back("--" + option->long_name());
    const std::string word = error.get_option_name();
    throw ConfigError("", fmt::format("{}: unknown option{}", one_line(word, kMaxExcerpt),
                                      nearest_word(word, known)));
  } catch (const po::error& error) {
    throw ConfigError("", error.what());
  }
  return values;
}

void add_set_option(po::options_description& options, const std::string& text) {
  options.add_options()("set", po::value<std::vector<std::string>>()->multitoken()->composing(),
                        text.c_str());
}

std::vector<std::string> set_arguments(const po::variables_map& values) {
  return values.contains("set") ? values["set"].as<std::vector<std::string>>()
                                : std::vector<std::string>();
}

void add_config_options(po::options_description& options, const std::string& file) {
  options.add_options()("config", po::value<std::string>(), file.c_str());
  add_set_option(options,
                 "KEY=VALUE ...: above the file, like model.num_layers=24; the last of a key wins");
}

EffectiveConfig read_config(const po::variables_map& values, const std::string& command,
                            int world_size, const std::vector<std::string>& more) {
  if (!values.contains("config")) {
    throw ConfigError(
        "", fmt::format("--config FILE is missing; all options: redspine {} --help", command));
  }
  std::vector<std::string> settings = set_arguments(values);
  settings.insert(settings.end(), more.begin(), more.end());
  return load_config(values["config"].as<std::string>(), settings, world_size);
}

}  // namespace redspine
