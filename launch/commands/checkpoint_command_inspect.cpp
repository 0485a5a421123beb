// redspine checkpoint inspect, verify and diff: look at checkpoints and change nothing.

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "data/io/folders.h"
#include "data/io/output.h"
#include "launch/commands/checkpoint_command.h"
#include "launch/commands/table.h"
#include "launch/job/job.h"
#include "launch/run/before_use.h"
#include "trainer/checkpoint/difference.h"
#include "trainer/checkpoint/format/model_json.h"
#include "trainer/checkpoint/format/safetensors.h"
#include "trainer/checkpoint/model_directory.h"
#include "trainer/checkpoint/summary.h"
#include "trainer/checkpoint/verify.h"

namespace redspine {
namespace {

namespace po = boost::program_options;

po::options_description make_options(const std::string& what) {
  po::options_description options("Options");
  options.add_options()                                                   //
      ("directory", po::value<std::vector<std::string>>(), what.c_str())  //
      ("help", "this text");
  return options;
}

int print_help(const std::string& usage, const po::options_description& options) {
  std::ostringstream text;
  text << options;
  print_out("{}\n\n{}", usage, text.str());
  return kExitDone;
}

std::vector<std::string> directories_of(const po::variables_map& values, std::size_t count) {
  std::vector<std::string> directories;
  if (values.contains("directory")) {
    directories = values["directory"].as<std::vector<std::string>>();
  }
  if (directories.size() != count) {
    throw ConfigError("",
                      fmt::format("directories given: {}; legal: {}", directories.size(), count));
  }
  return directories;
}

// --- inspect

std::string describe(const ModelConfig& config) {
  return fmt::format(
      "{} layers, hidden {}, {} heads on {} key/value heads, ffn {}, vocabulary {}, "
      "at most {} tokens",
      config.num_layers, config.hidden_size, config.num_heads, config.num_kv_heads, config.ffn_size,
      config.vocab_size, config.max_sequence_length);
}

std::string loss_text(const std::optional<double>& loss) {
  return loss ? fmt::format("{:.6g}", *loss) : "not known";
}

std::string digest_text(const std::optional<Digest>& digest) {
  return digest ? digest->text() : "none";
}

// A line on what was computed, and on what training.json says where that is something else.
std::string digest_line(const char* what, const std::optional<Digest>& computed,
                        const Digest* recorded) {
  std::string line = fmt::format("{:<12}{}", what, digest_text(computed));
  if (recorded != nullptr && computed == *recorded) line += ", as training.json says";
  if (recorded != nullptr && computed != *recorded) {
    line += fmt::format(": NOT what training.json says, {}", recorded->text());
  }
  return line + "\n";
}

std::string digest_lines(const CheckpointSummary& summary) {
  const StateDigests* recorded =
      summary.training && summary.training->digests ? &*summary.training->digests : nullptr;
  std::string lines =
      digest_line("digest", summary.weights_digest, recorded ? &recorded->weights : nullptr);
  if (summary.num_optimizer_tensors == 0) return lines;
  lines += digest_line("exp_avg", summary.exp_avg_digest, recorded ? &recorded->exp_avg : nullptr);
  return lines + digest_line("exp_avg_sq", summary.exp_avg_sq_digest,
                             recorded ? &recorded->exp_avg_sq : nullptr);
}

std::string summary_text(const std::string& directory, const CheckpointSummary& summary) {
  std::vector<std::vector<std::string>> tensors = {
      {"tensor", "type", "shape", "parameters", "norm", "digest"}};
  for (const TensorSummary& tensor : summary.tensors) {
    tensors.push_back({tensor.name, std::string(name_of(tensor.type)), shape_text(tensor.shape),
                       fmt::format("{}", tensor.count), fmt::format("{:.6g}", tensor.norm),
                       digest_text(tensor.digest)});
  }
  std::vector<std::vector<std::string>> layers = {{"layer", "parameters", "norm"}};
  for (const LayerSummary& layer : summary.layers) {
    layers.push_back(
        {layer.name, fmt::format("{}", layer.count), fmt::format("{:.6g}", layer.norm)});
  }
  std::string text = fmt::format(
      "{}\n\nmodel       {}\nparameters  {}\ntensors     {}, and {} of the optimizer; {} bytes\n",
      directory, describe(summary.config), summary.num_parameters(), summary.tensors.size(),
      summary.num_optimizer_tensors, summary.tensor_bytes);
  text += digest_lines(summary);
  if (summary.training) {
    const TrainingRecord& record = *summary.training;
    text += fmt::format(
        "step        {}, after {} samples and {} tokens\nloss        {}; validation {}\n"
        "layout      {} data x {} tensor ranks wrote it\nrun         {}\n",
        record.progress.step, record.progress.samples_consumed, record.progress.tokens_consumed,
        loss_text(record.loss), loss_text(record.validation_loss), record.num_data_ranks,
        record.num_tensor_ranks, record.run_id);
  }
  text += "\n" + format_table({Align::left, Align::left, Align::left, Align::right, Align::right,
                               Align::left},
                              tensors);
  text += "\n" + format_table({Align::left, Align::right, Align::right}, layers);
  if (summary.training) {
    text += "\nconfiguration of the run\n";
    for (const Setting& setting : summary.training->settings) {
      text += fmt::format("  {}: {}\n", setting.key, setting.value);
    }
  }
  return text;
}

// JSON has no word for numbers that are not finite.
nlohmann::ordered_json number(double value) {
  if (std::isfinite(value)) return value;
  return fmt::format("{}", value);
}

nlohmann::ordered_json json_of(const std::optional<Digest>& digest) {
  if (digest) return digest->text();
  return nullptr;
}

std::string summary_json(const std::string& directory, const CheckpointSummary& summary) {
  nlohmann::ordered_json json = {
      {"directory", directory},
      {"model", nlohmann::ordered_json::parse(model_to_json(summary.config))},
      {"parameters", summary.num_parameters()},
      {"optimizer_tensors", summary.num_optimizer_tensors},
      {"tensor_bytes", summary.tensor_bytes},
      {"weights_digest", json_of(summary.weights_digest)},
      {"exp_avg_digest", json_of(summary.exp_avg_digest)},
      {"exp_avg_sq_digest", json_of(summary.exp_avg_sq_digest)},
      {"training", nullptr},
      {"tensors", nlohmann::ordered_json::array()},
      {"layers", nlohmann::ordered_json::array()}};
  for (const TensorSummary& tensor : summary.tensors) {
    json["tensors"].push_back({{"name", tensor.name},
                               {"dtype", name_of(tensor.type)},
                               {"shape", tensor.shape},
                               {"parameters", tensor.count},
                               {"norm", number(tensor.norm)},
                               {"digest", json_of(tensor.digest)}});
  }
  for (const LayerSummary& layer : summary.layers) {
    json["layers"].push_back(
        {{"name", layer.name}, {"parameters", layer.count}, {"norm", number(layer.norm)}});
  }
  if (summary.training) {
    json["training"] = nlohmann::ordered_json::parse(training_to_json(*summary.training));
  }
  return json.dump() + "\n";
}

// --- diff

std::vector<std::string> difference_row(const TensorDifference& tensor) {
  switch (tensor.relation) {
    case Relation::equal:
      return {tensor.name, "equal", "", ""};
    case Relation::different:
      return {tensor.name, "differs", fmt::format("{:.6g}", tensor.max_absolute),
              fmt::format("{:.6g}", tensor.max_relative)};
    case Relation::other_shape:
      return {tensor.name, "another shape", "", ""};
    case Relation::only_first:
      return {tensor.name, "only in the first", "", ""};
    case Relation::only_second:
      break;
  }
  return {tensor.name, "only in the second", "", ""};
}

std::string difference_text(const DirectoryDifference& difference) {
  std::vector<std::vector<std::string>> rows = {{"tensor", "", "max |a - b|", "/ max |a|"}};
  std::size_t num_equal = 0;
  for (const TensorDifference& tensor : difference.tensors) {
    rows.push_back(difference_row(tensor));
    if (tensor.relation == Relation::equal) ++num_equal;
  }
  std::string text = format_table({Align::left, Align::left, Align::right, Align::right}, rows);
  for (const std::string& line : difference.settings) text += line + "\n";
  for (const std::string& line : difference.not_compared) text += line + "; not compared\n";
  return text + fmt::format("{}: {} of {} tensors are equal\n",
                            difference.is_equal() ? "equal" : "different", num_equal,
                            difference.tensors.size());
}

// --- verify

// Of a checkpoint that was found to be as training.json says.
std::string digest_remark(const std::string& directory) {
  if (!exists(directory + "/training.json", "")) return "";
  const std::optional<StateDigests> digests = read_training_record(directory).digests;
  return digests ? ", weights_digest " + digests->weights.text() : "";
}

int verify(const MpiSession& session, Arguments arguments) {
  const ProcessGroup& world = session.world();
  const std::string directory = agree(world, [&] {
    std::string path =
        directories_of(parse_arguments(arguments, make_options(""), "directory"), 1).front();
    check_is_directory(path);
    return path;
  });
  const std::vector<std::string> problems = verify_checkpoint(directory, Verification::full, world);
  if (world.rank() == 0) {
    for (const std::string& problem : problems) print_error("{}\n", problem);
    if (problems.empty()) {
      print_out("{}: every byte is as it was written{}\n", directory, digest_remark(directory));
    }
  }
  return problems.empty() ? kExitDone : kExitFailed;
}

}  // namespace

int run_checkpoint_inspect(Arguments arguments) {
  po::options_description options =
      make_options("a checkpoint, or a model of transformers; the option's name may be left out");
  options.add_options()("json", "one line of JSON");
  if (asks_for_help(arguments)) {
    return print_help("redspine checkpoint inspect DIR [--json]", options);
  }
  const po::variables_map values = parse_arguments(arguments, options, "directory");
  const std::string directory = directories_of(values, 1).front();
  const CheckpointSummary summary = summarize(directory);
  print_out("{}", values.contains("json") ? summary_json(directory, summary)
                                          : summary_text(directory, summary));
  return kExitDone;
}

int run_checkpoint_verify(Arguments arguments) {
  if (asks_for_help(arguments)) {
    return print_help(
        "redspine checkpoint verify DIR\n"
        "Reads everything, under mpirun with all ranks, and names what is damaged; then the exit\n"
        "code is 1",
        make_options("a checkpoint; the option's name may be left out"));
  }
  return run_job([&](const MpiSession& session) { return verify(session, arguments); });
}

int run_checkpoint_diff(Arguments arguments) {
  po::options_description options =
      make_options("two checkpoints or models of transformers; the option's name may be left out");
  add_verify_option(options);
  if (asks_for_help(arguments)) {
    return print_help(
        "redspine checkpoint diff A B [--no-verify]\n"
        "Compares values, whatever the layout, the files and the types. Exit code 0 for equal "
        "ones,\n"
        "1 for different ones",
        options);
  }
  const po::variables_map values = parse_arguments(arguments, options, "directory");
  const std::vector<std::string> pair = directories_of(values, 2);
  for (const std::string& directory : pair) {
    check_before_use(read_use_check(values), directory, Verification::full);
  }
  const DirectoryDifference difference = compare_directories(pair[0], pair[1]);
  write_out(difference_text(difference));
  return difference.is_equal() ? kExitDone : kExitFailed;
}

}  // namespace redspine
