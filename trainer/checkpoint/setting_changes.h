// What it means for a run that resumes when its configuration is no longer the same. Pure.
#pragma once

#include <string>
#include <vector>

#include "model/config.h"
#include "trainer/checkpoint/format/training_json.h"

namespace redspine {

struct SettingChange {
  std::string key;
  std::string before;
  std::string after;
  std::string effect;  // what it affects, or why it is not possible
  bool is_compatible = true;
  bool is_of_layout = false;  // where and how the same is computed
};

/// Settings that differ, in the order of `after`. Those that do not touch the training (names,
/// logging, the keeping of checkpoints) are left out.
std::vector<SettingChange> changed_settings(const std::vector<Setting>& before,
                                            const std::vector<Setting>& after);

/// The same of weights that a model `before` was trained with and that begin a run as `after`. A
/// longer context is no other model, and dropout none of the weights.
std::vector<SettingChange> changed_options(const ModelConfig& before, const ModelConfig& after);

}  // namespace redspine
