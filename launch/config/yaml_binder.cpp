#include "launch/config/yaml_binder.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

#include "launch/config/fields.h"
#include "launch/config/nearest.h"
#include "launch/config/scalars.h"
#include "tensor/printable.h"

namespace redspine {
namespace {

using Fields = std::vector<Field>;

constexpr std::size_t kMaxShownSetting = 300;  // bytes of a KEY=VALUE

std::string joined(const std::string& section, const std::string& name) {
  return section.empty() ? name : section + "." + name;
}

bool is_inside(std::string_view key, const std::string& section) {
  return section.empty() ||
         (key.size() > section.size() && key.starts_with(section) && key[section.size()] == '.');
}

const Field* find_field(const Fields& fields, const std::string& key) {
  const auto found =
      std::find_if(fields.begin(), fields.end(), [&](const Field& f) { return f.key == key; });
  return found == fields.end() ? nullptr : &*found;
}

bool is_section(const Fields& fields, const std::string& key) {
  return std::any_of(fields.begin(), fields.end(),
                     [&](const Field& field) { return is_inside(field.key, key); });
}

/// The names that may stand directly in a section.
std::vector<std::string> names_in(const Fields& fields, const std::string& section) {
  std::vector<std::string> names;
  for (const Field& field : fields) {
    if (!is_inside(field.key, section)) continue;
    const std::string rest = field.key.substr(section.empty() ? 0 : section.size() + 1);
    std::string name = rest.substr(0, rest.find('.'));
    if (names.empty() || names.back() != name) names.push_back(std::move(name));
  }
  return names;
}

/// Every key and every section.
std::vector<std::string> all_keys(const Fields& fields) {
  std::vector<std::string> keys;
  for (const Field& field : fields) {
    for (std::size_t dot = field.key.find('.'); dot != std::string::npos;
         dot = field.key.find('.', dot + 1)) {
      std::string section = field.key.substr(0, dot);
      if (std::find(keys.begin(), keys.end(), section) == keys.end()) {
        keys.push_back(std::move(section));
      }
    }
    keys.push_back(field.key);
  }
  return keys;
}

std::string describe_node(const YAML::Node& node) {
  if (node.IsSequence()) return "a list";
  if (node.IsMap()) return "a map of keys";
  if (node.IsScalar()) return describe(Scalar{node.Scalar(), node.Tag() != "!"});
  return "no value";
}

/// Walks a parsed text beside a table of fields.
class Binder {
 public:
  using Place = std::function<std::string(const YAML::Mark&)>;

  Binder(Place place, Binding& binding) : place_(std::move(place)), binding_(binding) {}

  /// One value of `fields`: a field or a whole section. A node without a value has no place of its
  /// own, so `key_mark` is taken then.
  void bind(const YAML::Node& node, const Fields& fields, const std::string& key,
            const YAML::Mark& key_mark) {
    const YAML::Mark mark = node.IsNull() ? key_mark : node.Mark();
    binding_.origins[key] = place_(mark);
    const Field* field = find_field(fields, key);
    if (field == nullptr) {
      bind_section(node, fields, key, mark);
    } else if (auto* const* files = std::get_if<std::vector<DataFileConfig>*>(&field->value)) {
      bind_files(node, **files, *field, mark);
    } else if (const auto* list = std::get_if<FieldList>(&field->value)) {
      bind_list(node, *list, *field, mark);
    } else {
      bind_scalar(node, *field, mark);
    }
  }

  void bind_section(const YAML::Node& node, const Fields& fields, const std::string& section,
                    const YAML::Mark& mark) {
    if (node.IsNull()) return;  // all of it is commented out
    if (!node.IsMap()) {
      report(mark, section,
             fmt::format("read {}; legal: a map of the keys {}", describe_node(node),
                         fmt::join(names_in(fields, section), ", ")));
      return;
    }
    std::map<std::string, YAML::Mark> seen;
    for (const auto& pair : node) {
      const YAML::Node& key_node = pair.first;
      if (!key_node.IsScalar()) {
        report(key_node.Mark(), section,
               fmt::format("read {} as a key; legal: a name", describe_node(key_node)));
        continue;
      }
      const std::string& name = key_node.Scalar();
      const std::string key = joined(section, name);
      const auto [first, is_new] = seen.emplace(name, key_node.Mark());
      if (!is_new) {
        report(key_node.Mark(), key,
               fmt::format("duplicate key; first given at {}", place_(first->second)));
      } else if (name.find('.') == std::string::npos &&
                 (find_field(fields, key) != nullptr || is_section(fields, key))) {
        bind(pair.second, fields, key, key_node.Mark());
      } else {
        report_unknown(key_node.Mark(), fields, section, key);
      }
    }
  }

  void report_unknown(const YAML::Mark& mark, const Fields& fields, const std::string& section,
                      const std::string& key) {
    if (find_field(fields, key) != nullptr) {
      report(mark, key, "a dot in a key; in a file, each part is a level of indentation");
      return;
    }
    report(mark, key,
           fmt::format("unknown key{}; legal here: {}", nearest_key(key, all_keys(fields)),
                       fmt::join(names_in(fields, section), ", ")));
  }

 private:
  void report(const YAML::Mark& mark, const std::string& key, std::string text) {
    binding_.text_problems.push_back({place_(mark), key, std::move(text)});
  }

  void bind_scalar(const YAML::Node& node, const Field& field, const YAML::Mark& mark) {
    if (!node.IsScalar()) {
      report(mark, field.key,
             fmt::format("read {}; legal: {}", describe_node(node), legal_values(field.value)));
      return;
    }
    // The parser's tags: "?" without quotes, "!" quoted or a block, anything else was written.
    if (node.Tag() != "?" && node.Tag() != "!") {
      report(mark, field.key,
             fmt::format("read the tag {}; legal: a value without tag",
                         one_line(node.Tag(), kMaxExcerpt)));
      return;
    }
    if (auto problem = store(Scalar{node.Scalar(), node.Tag() == "?"}, field.value)) {
      report(mark, field.key, std::move(*problem));
    }
  }

  void bind_files(const YAML::Node& node, std::vector<DataFileConfig>& files, const Field& field,
                  const YAML::Mark& mark) {
    if (!node.IsSequence()) {
      report(mark, field.key,
             fmt::format("read {}; legal: {}", describe_node(node), legal_values(field.value)));
      return;
    }
    files.clear();
    for (const YAML::Node& item : node) {
      const std::string entry = fmt::format("{}[{}]", field.key, files.size());
      const std::string path = entry + ".path";
      DataFileConfig& file = files.emplace_back();
      const YAML::Mark item_mark = item.IsNull() ? mark : item.Mark();
      binding_.origins.erase(path);
      binding_.origins[entry] = place_(item_mark);
      bind_section(item, fields_of(file, entry), entry, item_mark);
      if (!item.IsScalar() && !item.IsSequence() && !binding_.origins.contains(path)) {
        report(item_mark, path, "missing; legal: the path of a token file");
      }
    }
  }

  void bind_list(const YAML::Node& node, const FieldList& list, const Field& field,
                 const YAML::Mark& mark) {
    if (!node.IsSequence()) {
      report(mark, field.key,
             fmt::format("read {}; legal: {}", describe_node(node), legal_values(field.value)));
      return;
    }
    list.clear();
    std::size_t number = 0;
    for (const YAML::Node& item : node) {
      const std::string entry = fmt::format("{}[{}]", field.key, number++);
      const YAML::Mark item_mark = item.IsNull() ? mark : item.Mark();
      binding_.origins[entry] = place_(item_mark);
      const Fields fields = list.add(entry);
      bind_section(item, fields, entry, item_mark);
      if (item.IsMap()) report_missing(fields, item_mark);
    }
  }

  void report_missing(const Fields& fields, const YAML::Mark& mark) {
    for (const Field& field : fields) {
      if (field.default_text != kRequired || binding_.origins.contains(field.key)) continue;
      report(mark, field.key, "missing; legal: " + legal_values(field.value));
    }
  }

  Place place_;
  Binding& binding_;
};

/// The parser reports a tab in an indentation in several ways, mostly as something else. Where it
/// stopped there is one, that is what is wrong.
std::optional<YAML::Mark> tab_of_indentation(std::string_view text, YAML::Mark mark) {
  for (int line = 0; line < mark.line; ++line) text.remove_prefix(text.find('\n') + 1);
  text = text.substr(0, text.find('\n'));
  const std::size_t tab = text.substr(0, text.find_first_not_of("- \t")).find('\t');
  if (tab == std::string_view::npos) return std::nullopt;
  mark.column = static_cast<int>(tab);
  return mark;
}

/// The only document of a text, or nothing after a problem was noted.
std::optional<YAML::Node> parse(std::string_view text, const Binder::Place& place,
                                Binding& binding) {
  try {
    std::vector<YAML::Node> documents = YAML::LoadAll(std::string(text));
    if (documents.size() > 1) {
      binding.text_problems.push_back(
          {place(documents[1].Mark()), "",
           fmt::format("{} YAML documents; legal: one", documents.size())});
      return std::nullopt;
    }
    return documents.empty() ? YAML::Node() : documents.front();
  } catch (const YAML::Exception& error) {
    if (const auto tab = tab_of_indentation(text, error.mark)) {
      binding.text_problems.push_back({place(*tab), "", "a tab indents the line; legal: spaces"});
    } else {
      binding.text_problems.push_back({place(error.mark), "", "no valid YAML: " + error.msg});
    }
    return std::nullopt;
  }
}

}  // namespace

void bind_document(std::string_view text, const std::string& source, Config& config,
                   Binding& binding) {
  bind_document(text, source, fields_of(config), binding);
}

void bind_document(std::string_view text, const std::string& source,
                   const std::vector<Field>& fields, Binding& binding) {
  // Places stand in comments too, behind the values that come from them.
  const auto place = [name = one_line(source)](const YAML::Mark& mark) {
    return fmt::format("{}:{}:{}", name, mark.line + 1, mark.column + 1);
  };
  const std::optional<YAML::Node> root = parse(text, place, binding);
  if (!root) return;
  if (root->IsMap()) {
    Binder(place, binding).bind_section(*root, fields, "", root->Mark());
    return;
  }
  binding.text_problems.push_back(
      {root->IsNull() ? source : place(root->Mark()), "",
       fmt::format("read {}; legal: a map of the sections {}",
                   root->IsNull() ? "nothing: the file is empty" : describe_node(*root),
                   fmt::join(names_in(fields, ""), ", "))});
}

void bind_setting(const std::string& setting, Config& config, Binding& binding) {
  std::string source = "--set " + one_line(setting, kMaxShownSetting);
  const auto place = [&source](const YAML::Mark& /*mark*/) { return source; };
  const std::size_t equals = setting.find('=');
  if (equals == std::string::npos || equals == 0) {
    binding.text_problems.push_back({source, "", "legal: KEY=VALUE, like model.num_layers=24"});
    return;
  }
  const std::string key = setting.substr(0, equals);
  const std::optional<YAML::Node> value =
      parse(std::string_view(setting).substr(equals + 1), place, binding);
  if (!value) return;
  const Fields fields = fields_of(config);
  Binder binder(place, binding);
  if (find_field(fields, key) != nullptr || is_section(fields, key)) {
    binder.bind(*value, fields, key, YAML::Mark());
    return;
  }
  const std::string section =
      key.substr(0, key.rfind('.') == std::string::npos ? 0 : key.rfind('.'));
  binder.report_unknown(YAML::Mark(), fields, is_section(fields, section) ? section : "", key);
}

std::optional<std::string> yaml_scalar(const std::string& text) {
  try {
    return YAML::Load(text).as<std::string>();
  } catch (const YAML::Exception&) {
    return std::nullopt;
  }
}

}  // namespace redspine
