#include "trainer/checkpoint/setting_changes.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string_view>

#include "trainer/checkpoint/format/model_json.h"

namespace redspine {
namespace {

enum class Kind { silent, affects, impossible };

struct Rule {
  std::string_view prefix;  // of the key
  Kind kind;
  const char* effect;
};

constexpr const char* kOtherShape = "the tensors of the checkpoint have other shapes or meanings";
constexpr const char* kOtherFunction = "the network computes another function of the same weights";
constexpr const char* kRate = "the learning rate from the next step on";
constexpr const char* kSameResults = "losses by rounding alone";

// The first that fits counts.
constexpr std::array kRules = {
    Rule{"run.seed", Kind::affects, "the order of the samples, and dropout"},
    Rule{"run.device", Kind::affects, kSameResults},
    Rule{"run.collectives", Kind::affects, kSameResults},
    Rule{"run.precision", Kind::affects, "the rounding of everything that is computed"},
    Rule{"run.exact", Kind::affects, "the order of every sum: the bits from the next step on"},
    Rule{"run.", Kind::silent, ""},
    Rule{"model.family", Kind::silent, ""},  // its presets are keys of their own
    Rule{"model.rope.", Kind::affects, kOtherFunction},
    Rule{"model.norm_epsilon", Kind::affects, kOtherFunction},
    Rule{"model.dropout", Kind::affects, "dropout from the next step on"},
    Rule{"model.max_sequence_length", Kind::impossible, kOtherShape},
    Rule{"model.", Kind::impossible, kOtherShape},
    Rule{"data.train", Kind::affects, "which samples come next"},
    Rule{"data.validation", Kind::affects, "the validation loss"},
    Rule{"data.format", Kind::affects, "how the token files are read"},
    Rule{"data.", Kind::silent, ""},
    Rule{"batch.sequence_length", Kind::affects, "how the tokens are cut into samples"},
    Rule{"batch.global_batch_size", Kind::affects,
         "the samples of a step; none is left out or seen twice"},
    Rule{"batch.micro_batch_size", Kind::affects, kSameResults},
    Rule{"parallel.recompute", Kind::silent, ""},  // the same bits
    Rule{"parallel.", Kind::affects, kSameResults},
    Rule{"optimizer.learning_rate", Kind::affects, kRate},
    Rule{"optimizer.", Kind::affects, "the updates from the next step on"},
    Rule{"schedule.", Kind::affects, kRate},
    Rule{"train.steps", Kind::affects, "where the run ends"},
    Rule{"train.eval", Kind::affects, "when and on how much the validation loss is taken"},
};

const Rule* rule_for(const std::string& key) {
  const auto rule = std::find_if(kRules.begin(), kRules.end(),
                                 [&](const Rule& r) { return key.starts_with(r.prefix); });
  return rule == kRules.end() ? nullptr : &*rule;
}

constexpr const char* kUnset = "unset";  // no option has it as its value

std::string value_of(const std::vector<Setting>& settings, const std::string& key) {
  const auto found = std::find_if(settings.begin(), settings.end(),
                                  [&key](const Setting& setting) { return setting.key == key; });
  return found == settings.end() ? kUnset : found->value;
}

bool asks_for_length(const ModelConfig& config) {
  switch (config.rope.scaling) {
    case RopeScaling::none:
    case RopeScaling::linear:
    case RopeScaling::ntk:
      return false;
    case RopeScaling::yarn:
    case RopeScaling::llama3:
      return true;
  }
  __builtin_unreachable();
}

/// Earlier versions wrote 1e-08 where this one writes 1.0e-08.
bool is_same(const std::string& before, const std::string& after) {
  if (before == after) return true;
  const auto number_of = [](const std::string& text) -> std::optional<double> {
    double number = 0.0;
    const char* end = text.data() + text.size();
    const auto result = std::from_chars(text.data(), end, number);
    if (result.ec != std::errc() || result.ptr != end || text.find('e') == text.npos) return {};
    return number;
  };
  const std::optional<double> number = number_of(before);
  return number && number == number_of(after);
}

}  // namespace

std::vector<SettingChange> changed_settings(const std::vector<Setting>& before,
                                            const std::vector<Setting>& after) {
  std::vector<SettingChange> changes;
  for (const Setting& setting : after) {
    const auto old = std::find_if(before.begin(), before.end(),
                                  [&](const Setting& s) { return s.key == setting.key; });
    // A checkpoint of an earlier version does not know every key.
    if (old == before.end() || is_same(old->value, setting.value)) continue;
    const Rule* rule = rule_for(setting.key);
    if (rule == nullptr || rule->kind == Kind::silent) continue;
    changes.push_back({.key = setting.key,
                       .before = old->value,
                       .after = setting.value,
                       .effect = rule->effect,
                       .is_compatible = rule->kind != Kind::impossible,
                       .is_of_layout = rule->effect == kSameResults});
  }
  return changes;
}

std::vector<SettingChange> changed_options(const ModelConfig& before, const ModelConfig& after) {
  const bool both_turn = before.position == Position::rope && after.position == Position::rope;
  const auto counts = [&](const std::string& key) {
    if (key == "model.dropout") return false;
    if (key == "model.max_sequence_length") return !both_turn;
    if (key == "model.rope.original_length") {
      return both_turn && (asks_for_length(before) || asks_for_length(after));
    }
    return both_turn || !key.starts_with("model.rope.");
  };
  std::vector<SettingChange> changes;
  const std::vector<Setting> old = model_options(before);
  std::vector<Setting> all = model_options(after);
  for (const Setting& setting : old) {
    if (value_of(all, setting.key) == kUnset) all.push_back({setting.key, kUnset});
  }
  for (const Setting& setting : all) {
    const std::string value = value_of(old, setting.key);
    if (value == setting.value || !counts(setting.key)) continue;
    const bool is_rope = setting.key.starts_with("model.rope.");
    const bool has_same_tensors = is_rope || setting.key == "model.norm_epsilon";
    changes.push_back({.key = setting.key,
                       .before = value,
                       .after = setting.value,
                       .effect = has_same_tensors ? kOtherFunction : kOtherShape,
                       .is_compatible = is_rope});
  }
  return changes;
}

}  // namespace redspine
