// From YAML text to a Config, strictly: every key is known, given once and of its own type.
//
// Nothing is thrown for a problem of the text: all of them are collected, each with its place, so
// that they can be shown together. The only file that knows the YAML library is yaml_binder.cpp.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launch/config/fields.h"
#include "trainer/config.h"

namespace redspine {

struct TextProblem {
  std::string where;  // "run.yaml:3:5" (line and column count from 1) or "--set KEY=VALUE"
  std::string key;    // in full; empty where the text as a whole is no YAML
  std::string text;
};

struct Binding {
  std::map<std::string, std::string> origins;  // where each key, and each section, was given
  std::vector<TextProblem> text_problems;      // in the order of the text
};

/// Binds a whole document. `source` is how places in it are named: a path.
void bind_document(std::string_view text, const std::string& source, Config& config,
                   Binding& binding);

/// The same of what a table of fields describes.
void bind_document(std::string_view text, const std::string& source,
                   const std::vector<Field>& fields, Binding& binding);

/// Binds one `KEY=VALUE`, the value in YAML; it overrides what was bound before. KEY may also be a
/// section: `model.rope={scaling: linear, factor: 4}`.
void bind_setting(const std::string& setting, Config& config, Binding& binding);

/// A scalar's text as YAML reads it, without its quotes; none where it is no scalar of YAML.
std::optional<std::string> yaml_scalar(const std::string& text);

}  // namespace redspine
