#include "launch/config/machine_file.h"

#include <fmt/format.h>

#include <sstream>

#include "launch/config/config_file.h"
#include "launch/config/scalars.h"
#include "launch/config/yaml_binder.h"
#include "tensor/printable.h"

namespace redspine {
namespace {

std::vector<Field> fields_of(MachineRate& rate, const std::string& entry) {
  return {
      {entry + ".operation", &rate.operation, "An operation, or product", kRequired},
      {entry + ".precision", choice(rate.precision), "Of its activations", kRequired},
      {entry + ".rows", &rate.rows, "Of a product's result; of attention: B h"},
      {entry + ".inner", &rate.inner, "What a product adds up over; of attention: T"},
      {entry + ".cols", &rate.cols, "Of a product's result; of attention: K"},
      {entry + ".bytes", &rate.bytes, "Of others: read and written"},
      {entry + ".gigaflops", &rate.gigaflops, "Of products and attention, 10^9 a second"},
      {entry + ".gigabytes_per_second", &rate.gigabytes_per_second, "Of others"},
  };
}

std::vector<Field> fields_of(MachineAllReduce& all_reduce, const std::string& entry) {
  return {
      {entry + ".ranks", &all_reduce.ranks, "Of one node", kRequired},
      {entry + ".bytes", &all_reduce.bytes, "That each gives", kRequired},
      {entry + ".seconds", &all_reduce.seconds, "That it took", kRequired},
  };
}

template <class Entry>
FieldList list_of(std::vector<Entry>& entries, std::string_view legal) {
  return {.clear = [&entries] { entries.clear(); },
          .add = [&entries](
                     const std::string& entry) { return fields_of(entries.emplace_back(), entry); },
          .legal = legal};
}

// One that is not empty in flow style: {operation: AdamW, precision: fp32, bytes: 1000.0}
std::string flow_text(const std::vector<Field>& fields, const std::string& entry) {
  std::string text;
  for (const Field& field : fields) {
    const std::string value = text_of(field.value);
    if (field.default_text != kRequired && (value == "0" || value == "0.0")) continue;
    text += fmt::format("{}{}: {}", text.empty() ? "" : ", ", field.key.substr(entry.size() + 1),
                        value);
  }
  return "{" + text + "}";
}

template <class Entry>
std::string list_text(const std::string& name, std::vector<Entry>& entries) {
  if (entries.empty()) return "";
  std::string text = name + ":\n";
  for (Entry& entry : entries) text += "  - " + flow_text(fields_of(entry, "x"), "x") + '\n';
  return text;
}

std::string commented(const std::string& comment) {
  std::istringstream lines(comment);
  std::string text;
  for (std::string line; std::getline(lines, line);) text += "# " + line + '\n';
  return text;
}

}  // namespace

std::vector<Field> fields_of(Machine& machine) {
  return {
      {"name", &machine.name, "What plans call it", kRequired},
      {"device", choice(machine.device), "What a rank computes on: cpu or cuda", kRequired},
      {"ranks_per_node", &machine.ranks_per_node, "Ranks that share a node", kRequired},
      {"memory_gib", &machine.memory_gib, "Memory of a rank, GiB", kRequired},
      {"memory_gigabytes_per_second", &machine.memory_gigabytes_per_second,
       "Of a rank, read and written together", kRequired},
      {"operation_seconds", &machine.operation_seconds, "Of each operation beside its work"},
      {"step_seconds", &machine.step_seconds, "Of each step beside its operations"},
      {"fp32_tflops", &machine.fp32_tflops, "Of a rank: what MFU refers to", kRequired},
      {"bf16_tflops", &machine.bf16_tflops, "The same; 0: none"},
      {"overlap", &machine.overlap,
       "The part of a collective beneath which computing goes on unhindered, 0 to 1"},
      {"storage_gigabytes_per_second", &machine.storage_gigabytes_per_second,
       "That all ranks write together; 0: not known"},
      {"inside.latency_seconds", &machine.inside.latency_seconds, "Between ranks of a node"},
      {"inside.gigabytes_per_second", &machine.inside.gigabytes_per_second,
       "Of a rank, each way, between ranks of a node", kRequired},
      {"between.latency_seconds", &machine.between.latency_seconds, "Between nodes"},
      {"between.gigabytes_per_second", &machine.between.gigabytes_per_second,
       "Of a rank, each way, between nodes", kRequired},
      {"rates",
       list_of(machine.rates,
               "a list like [{operation: product, precision: fp32, rows: "
               "1024, inner: 1024, cols: 1024, gigaflops: 100.0}]"),
       "How fast operations of a size are", kRequired},
      {"all_reduces",
       list_of(machine.all_reduces, "a list like [{ranks: 2, bytes: 1000000, seconds: 0.001}]"),
       "All-reduces between ranks of a node, as measured; without: by latency and bandwidth"},
  };
}

Machine parse_machine(std::string_view text, const std::string& source) {
  Machine machine;
  Binding binding;
  bind_document(text, source, fields_of(machine), binding);
  const bool is_document =
      binding.text_problems.empty() || !binding.text_problems.front().key.empty();
  for (const Field& field : fields_of(machine)) {
    if (!is_document || field.default_text != kRequired || binding.origins.contains(field.key)) {
      continue;
    }
    binding.text_problems.push_back(
        {one_line(source), field.key, "missing; legal: " + legal_values(field.value)});
  }
  if (!binding.text_problems.empty()) {
    ConfigProblems problems;
    for (const TextProblem& problem : binding.text_problems) {
      problems.add("", fmt::format("{}: {}{}{}", problem.where, problem.key,
                                   problem.key.empty() ? "" : ": ", problem.text));
    }
    problems.throw_if_any();
  }
  ConfigProblems problems;
  machine.validate(problems);
  if (!problems.empty()) {
    throw with_places(ConfigError(problems.all()),
                      {.config = {}, .origins = std::move(binding.origins)});
  }
  return machine;
}

Machine load_machine(const std::string& path) {
  return parse_machine(read_text_file(path, "description of the machine"), path);
}

std::string to_yaml(Machine machine, const std::string& comment) {
  std::string text = commented(comment);
  std::string section;
  for (const Field& field : fields_of(machine)) {
    if (std::holds_alternative<FieldList>(field.value)) continue;
    const std::size_t dot = field.key.find('.');
    const std::string in = dot == std::string::npos ? "" : field.key.substr(0, dot);
    if (in != section && !in.empty()) text += in + ":\n";
    section = in;
    text += fmt::format("{}{}: {}\n", in.empty() ? "" : "  ",
                        dot == std::string::npos ? field.key : field.key.substr(dot + 1),
                        text_of(field.value));
  }
  return text + list_text("rates", machine.rates) + list_text("all_reduces", machine.all_reduces);
}

}  // namespace redspine
