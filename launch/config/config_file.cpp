#include "launch/config/config_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <functional>
#include <sstream>
#include <utility>
#include <vector>

#include "launch/config/fields.h"
#include "launch/config/scalars.h"
#include "launch/config/yaml_binder.h"

namespace redspine {
namespace {

using Origins = std::map<std::string, std::string>;

constexpr std::string_view kDerived = "from ";  // how the origin of a derived value begins

/// Takes over what a family presets for the keys of `model` that nobody gave.
void apply_preset(Config& config, Origins& origins) {
  Config preset;
  preset.model = ModelConfig::preset(config.model.family);
  Config plain;
  const std::vector<Field> presets = fields_of(preset);
  const std::vector<Field> defaults = fields_of(plain);
  const std::vector<Field> fields = fields_of(config);
  std::string family;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (fields[i].key == "model.family") family = text_of(fields[i].value);
    const std::string text = text_of(presets[i].value);
    if (origins.contains(fields[i].key) || text == text_of(defaults[i].value)) continue;
    store(Scalar{text}, fields[i].value);
    origins[fields[i].key] = "preset " + family;
  }
}

/// Fills in the values that follow from others and that nobody gave; the headers of the sections
/// say which those are.
void derive_defaults(Config& config, Origins& origins) {
  const auto derive = [&origins](const std::string& key, const std::string& from, auto& value,
                                 auto derived) {
    if (origins.contains(key) && !origins[key].starts_with("preset")) return;
    value = derived;
    origins[key] = std::string(kDerived) + from;
  };
  ModelConfig& model = config.model;
  derive("model.num_kv_heads", "model.num_heads", model.num_kv_heads, model.num_heads);
  derive("model.ffn_size", "model.hidden_size", model.ffn_size,
         default_ffn_size(model.family, model.hidden_size));
  derive("model.rope.original_length", "model.max_sequence_length", model.rope.original_length,
         model.max_sequence_length);
  derive("batch.sequence_length", "model.max_sequence_length", config.batch.sequence_length,
         model.max_sequence_length);
  derive("schedule.decay_steps", "train.steps", config.schedule.decay_steps, config.train.steps);
  derive("schedule.warmup_steps", "schedule.decay_steps", config.schedule.warmup_steps,
         default_warmup_steps(config.schedule.decay_steps));
  // 0 is as good as not given.
  if (config.run.exact && config.run.exact_leaves == 0) {
    origins.erase("run.exact_leaves");
    derive("run.exact_leaves", "run.exact", config.run.exact_leaves, kDefaultExactLeaves);
  }
  if (config.run.exact && config.run.exact_lanes == 0 && config.batch.global_batch_size > 0) {
    origins.erase("run.exact_lanes");
    derive("run.exact_lanes", "batch.global_batch_size", config.run.exact_lanes,
           default_exact_lanes(config.batch.global_batch_size));
  }
  if (config.data.validation.empty()) {
    derive("train.eval_interval", "data.validation", config.train.eval_interval, 0);
  }
}

void report_missing(const std::string& source, Config& config, Binding& binding) {
  for (const Field& field : fields_of(config)) {
    if (field.default_text != kRequired) continue;
    if (binding.origins.contains(field.key)) continue;
    const std::string section = field.key.substr(0, field.key.find('.'));
    const auto found = binding.origins.find(section);
    binding.text_problems.push_back({found == binding.origins.end() ? source : found->second,
                                     field.key, "missing; legal: " + legal_values(field.value)});
  }
}

/// Where `key` or, failing that, the nearest thing around it was given: "" for a default.
std::string origin_of(std::string key, const Origins& origins) {
  while (!key.empty()) {
    const auto found = origins.find(key);
    if (found != origins.end()) return found->second;
    const std::size_t end = key.find_last_of(".[");
    // A section is no origin of a value in it, but an entry of a list is.
    if (end == std::string::npos || key.find('[') == std::string::npos) break;
    key.resize(end);
  }
  return "";
}

bool is_key_character(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

bool mentions(const std::string& text, const std::string& key) {
  for (std::size_t at = text.find(key); at != std::string::npos; at = text.find(key, at + 1)) {
    const std::size_t end = at + key.size();
    if (end == text.size() || !is_key_character(text[end])) return true;
  }
  return false;
}

/// A wrong text leaves its key at the default, so what is found about that value is no problem of
/// the user's: neither at the key, nor inside it, nor where the key is spoken of.
bool follows_from(const ConfigProblem& problem, const TextProblem& text_problem) {
  if (text_problem.key.empty()) return false;
  return (problem.key.starts_with(text_problem.key) && mentions(problem.key, text_problem.key)) ||
         mentions(problem.text, text_problem.key);
}

/// What was derived from a wrong value is wrong as well, and goes away with it.
bool is_derived_from(const ConfigProblem& problem, const std::string& key, const Origins& origins) {
  return origin_of(problem.key, origins) == std::string(kDerived) + key;
}

// A place comes first, as editors find it; an origin that is no place stands behind the key.
ConfigProblem with_place(const ConfigProblem& problem, const Origins& origins) {
  const std::string origin = origin_of(problem.key, origins);
  if (problem.key.empty()) return problem;
  const bool is_place = origin.starts_with("--set ") || origin.find(':') != std::string::npos;
  if (is_place) return {"", fmt::format("{}: {}: {}", origin, problem.key, problem.text)};
  return {"", fmt::format("{} ({}): {}", problem.key, origin.empty() ? "default" : origin,
                          problem.text)};
}

/// All problems, those of the text and those of the values.
std::vector<ConfigProblem> in_words(const Binding& binding, const ConfigProblems& problems) {
  std::vector<ConfigProblem> lines;
  for (const TextProblem& text_problem : binding.text_problems) {
    lines.push_back({"", fmt::format("{}: {}{}{}", text_problem.where, text_problem.key,
                                     text_problem.key.empty() ? "" : ": ", text_problem.text)});
  }
  for (const ConfigProblem& problem : problems.all()) {
    const auto follows = [&](const TextProblem& text_problem) {
      return follows_from(problem, text_problem) ||
             is_derived_from(problem, text_problem.key, binding.origins);
    };
    const auto derives = [&](const ConfigProblem& other) {
      return is_derived_from(problem, other.key, binding.origins);
    };
    if (std::any_of(binding.text_problems.begin(), binding.text_problems.end(), follows)) continue;
    if (std::any_of(problems.all().begin(), problems.all().end(), derives)) continue;
    lines.push_back(with_place(problem, binding.origins));
  }
  return lines;
}

std::string write(Config config, const std::function<std::string(const std::string&)>& comment) {
  std::string yaml;
  std::vector<std::string> open;  // the sections around the last line
  for (const Field& field : fields_of(config)) {
    const std::string text = text_of(field.value);
    if (text.empty()) continue;
    std::vector<std::string> parts;
    std::istringstream key(field.key);
    for (std::string part; std::getline(key, part, '.');) parts.push_back(part);
    const std::size_t depth = parts.size() - 1;
    std::size_t same = 0;
    while (same < depth && same < open.size() && open[same] == parts[same]) ++same;
    for (std::size_t level = same; level < depth; ++level) {
      yaml += fmt::format("{:{}}{}:\n", "", 2 * level, parts[level]);
    }
    open.assign(parts.begin(), parts.end() - 1);
    yaml += fmt::format("{:{}}{}: {}{}\n", "", 2 * depth, parts.back(), text, comment(field.key));
  }
  return yaml;
}

}  // namespace

EffectiveConfig parse_config(std::string_view text, const std::string& source,
                             std::span<const std::string> settings, int world_size) {
  EffectiveConfig effective;
  Binding binding;
  bind_document(text, source, effective.config, binding);
  const bool is_document =
      binding.text_problems.empty() || !binding.text_problems.front().key.empty();
  for (const std::string& setting : settings) bind_setting(setting, effective.config, binding);

  ConfigProblems problems;
  if (is_document) {  // else nothing is known of its values
    report_missing(source, effective.config, binding);
    apply_preset(effective.config, binding.origins);
    derive_defaults(effective.config, binding.origins);
    effective.config.validate(problems, world_size);
  }
  const std::vector<ConfigProblem> lines = in_words(binding, problems);
  if (!lines.empty()) throw ConfigError(lines);
  effective.origins = std::move(binding.origins);
  return effective;
}

std::string read_text_file(const std::string& path, const std::string& what) {
  // A folder opens like a file and fails at the first read; both failures leave errno.
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (file && file.peek() != std::ifstream::traits_type::eof()) text << file.rdbuf();
  if (!file.is_open() || errno != 0 || file.bad()) {
    throw ConfigError("", fmt::format("{}: cannot read the {}: {}", path, what,
                                      std::strerror(errno == 0 ? EIO : errno)));
  }
  return text.str();
}

EffectiveConfig load_config(const std::string& path, std::span<const std::string> settings,
                            int world_size) {
  return parse_config(read_text_file(path, "configuration"), path, settings, world_size);
}

ConfigError with_places(const ConfigError& error, const EffectiveConfig& effective) {
  std::vector<ConfigProblem> lines;
  for (const ConfigProblem& problem : error.problems()) {
    lines.push_back(with_place(problem, effective.origins));
  }
  return ConfigError(lines);
}

std::string to_yaml(Config config) {
  return write(std::move(config), [](const std::string& /*key*/) { return std::string(); });
}

std::string to_yaml_with_origins(EffectiveConfig effective) {
  return write(effective.config, [&](const std::string& key) {
    const auto found = effective.origins.find(key);
    return "  # " + (found == effective.origins.end() ? "default" : found->second);
  });
}

}  // namespace redspine
