// redspine checkpoint import and export. Both write a model that `transformers` and this program
// open; they differ in where it comes from, and in what is worth saying about it.

#include <fmt/format.h>

#include <sstream>

#include "data/io/output.h"
#include "launch/commands/checkpoint_command.h"
#include "launch/run/before_use.h"
#include "model/transformers/stored_tensors.h"
#include "tensor/error.h"
#include "trainer/checkpoint/convert.h"

namespace redspine {
namespace {

namespace po = boost::program_options;

po::options_description make_options() {
  po::options_description options("Options");
  options.add_options()  //
      ("directory", po::value<std::vector<std::string>>(),
       "where the model is; the option's name may be left out")      //
      ("output", po::value<std::string>(), "the directory to make")  //
      ("dtype", po::value<std::string>(),
       "f32 | bf16 | f16; without it, as the tensors are stored")  //
      ("help", "this text");
  add_verify_option(options);
  return options;
}

std::optional<ElementType> read_type(const po::variables_map& values) {
  if (!values.contains("dtype")) return std::nullopt;
  const auto word = values["dtype"].as<std::string>();
  if (word == "f32") return ElementType::f32;
  if (word == "bf16") return ElementType::bf16;
  if (word == "f16") return ElementType::f16;
  throw ConfigError("--dtype", fmt::format("read \"{}\"; legal: f32, bf16, f16", word));
}

Conversion read_conversion(Arguments arguments) {
  const po::variables_map values = parse_arguments(arguments, make_options(), "directory");
  std::vector<std::string> directories;
  if (values.contains("directory")) {
    directories = values["directory"].as<std::vector<std::string>>();
  }
  ConfigProblems problems;
  if (directories.size() != 1) {
    problems.add("",
                 fmt::format("directories given to read from: {}; legal: 1", directories.size()));
  }
  if (!values.contains("output") || values["output"].as<std::string>().empty()) {
    problems.add("", "--output DIR is missing");
  }
  problems.throw_if_any();
  Conversion conversion{.source = directories.front(),
                        .output = values["output"].as<std::string>(),
                        .type = read_type(values)};
  const UseCheck check = read_use_check(values);
  check_before_use(check, conversion.source, Verification::model);
  conversion.writes_manifest = check == UseCheck::verify;
  return conversion;
}

int print_help(const std::string& text) {
  std::ostringstream options;
  options << make_options();
  print_out("{}\n\n{}", text, options.str());
  return kExitDone;
}

ConversionReport convert(const Conversion& conversion) {
  ConversionReport report = convert_model(conversion);
  print_out("{}: {} parameters in {} tensors, {} bytes\n", conversion.output, report.num_parameters,
            report.num_tensors, report.bytes);
  for (const std::string& name : report.copied) print_out("{}: copied\n", name);
  if (!conversion.writes_manifest) {
    print_out("without manifest.json, which would vouch for what nobody has verified\n");
  }
  return report;
}

}  // namespace

int run_checkpoint_import(Arguments arguments) {
  if (asks_for_help(arguments)) {
    return print_help(
        "redspine checkpoint import DIR --output DIR [--dtype TYPE] [--no-verify]\n"
        "Checks a GPT-2 or Llama of transformers and writes its weights to begin training with");
  }
  const Conversion conversion = read_conversion(arguments);
  convert(conversion);
  print_out("to train from it: --set checkpoint.initialize_from={}\n", conversion.output);
  return kExitDone;
}

int run_checkpoint_export(Arguments arguments) {
  if (asks_for_help(arguments)) {
    return print_help(
        "redspine checkpoint export DIR --output DIR [--dtype TYPE] [--no-verify]\n"
        "Writes the model alone, for transformers");
  }
  const Conversion conversion = read_conversion(arguments);
  const ConversionReport report = convert(conversion);
  if (stored_family(report.config) == StoredFamily::redspine) {
    print_error(
        "redspine: warning: transformers has no model with these options, so that only "
        "redspine opens {}\n",
        conversion.output);
  }
  return kExitDone;
}

}  // namespace redspine
