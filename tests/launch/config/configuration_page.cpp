// configuration_page: prints docs/configuration.md from the table of keys (launch/config/fields.h).
// A CTest compares the committed page with it (configuration_page_test.sh).
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "launch/config/fields.h"
#include "launch/config/scalars.h"
#include "model/config.h"
#include "trainer/config.h"

namespace redspine {
namespace {

constexpr std::string_view kBegin = R"(# Configuration

<!-- Printed by build/cpu-release/tests/launch/configuration_page from launch/config/fields.cpp. -->

One YAML file describes one run; `configs/` has complete ones. A dot in a key is a level of the file:
`model.rope.theta` is `theta` in `rope` in `model`. `--set KEY=VALUE ...` wins over the file and goes
through the same checks. Unknown keys, wrong types and values that do not fit together are all
reported at once, before anything is touched. `redspine train --config FILE --dry-run` prints the
effective value of every key and where it came from.

Where the default is no constant, the table says what the key follows from. Defaults that depend on
`model.family` are given for each family.

)";

/// What holds where the key is not given.
std::string default_of(const Field& field, const Field& of_llama) {
  if (!field.default_text.empty()) return std::string(field.default_text);
  const std::string text = text_of(field.value);
  const std::string llama = text_of(of_llama.value);
  if (text != llama && field.key != "model.family") {
    return fmt::format("gpt2: `{}`; llama: `{}`", text, llama);
  }
  return fmt::format("`{}`", text);
}

/// How the page calls a kind of values; the choices themselves where they are words.
struct Kind {
  std::string operator()(const std::int64_t* /*value*/) const { return "whole number"; }
  std::string operator()(const std::uint64_t* /*value*/) const { return "whole number from 0"; }
  std::string operator()(const double* /*value*/) const { return "number"; }
  std::string operator()(const std::optional<double>* /*value*/) const { return "number"; }
  std::string operator()(const bool* /*value*/) const { return "true or false"; }
  std::string operator()(const std::string* /*value*/) const { return "text"; }
  std::string operator()(const Choice& choice) const {
    return fmt::format("`{}`", fmt::join(choice.words, "`, `"));
  }
  std::string operator()(const std::vector<DataFileConfig>* /*files*/) const { return "list"; }
  std::string operator()(const FieldList& /*list*/) const { return "list"; }
};

void print_kinds(const std::vector<Field>& fields) {
  fmt::print("| value | written as |\n|---|---|\n");
  std::vector<std::string> seen;
  for (const Field& field : fields) {
    const std::string kind = std::visit(Kind{}, field.value);
    const bool is_new = std::find(seen.begin(), seen.end(), kind) == seen.end();
    if (std::holds_alternative<Choice>(field.value) || !is_new) continue;
    seen.push_back(kind);
    fmt::print("| {} | {} |\n", kind, legal_values(field.value));
  }
}

constexpr std::string_view kHead = "| key | legal | default | meaning |\n|---|---|---|---|\n";

void print_row(const Field& field, const std::string& default_text) {
  fmt::print("| `{}` | {} | {} | {} |\n", field.key, std::visit(Kind{}, field.value), default_text,
             field.description);
}

void print_page() {
  Config config;
  Config llama;
  llama.model = ModelConfig::preset(Family::llama);
  const std::vector<Field> fields = fields_of(config);
  const std::vector<Field> of_llama = fields_of(llama);
  fmt::print("{}", kBegin);
  print_kinds(fields);
  std::string section;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const std::string now = fields[i].key.substr(0, fields[i].key.find('.'));
    if (now != section) fmt::print("\n## {}\n\n{}", now, kHead);
    section = now;
    print_row(fields[i], default_of(fields[i], of_llama[i]));
  }
  fmt::print("\n## Entries of data.train and data.validation\n\n{}", kHead);
  DataFileConfig file;
  for (const Field& field : fields_of(file, "data.train[i]")) {
    print_row(field, default_of(field, field));
  }
}

}  // namespace
}  // namespace redspine

int main() {
  try {
    redspine::print_page();
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
