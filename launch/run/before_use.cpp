#include "launch/run/before_use.h"

#include <fmt/format.h>

#include "data/io/output.h"
#include "launch/job/agree.h"

namespace redspine {
namespace {

std::string skipped_text(const std::string& directory) {
  return fmt::format("warning: {} was not compared with its manifest (--no-verify)", directory);
}

/// The problems under `key`, and the way round them.
ConfigError with_way_round(const ConfigError& error, const std::string& key,
                           const std::string& directory) {
  ConfigProblems problems;
  for (const ConfigProblem& problem : error.problems()) problems.add(key, problem.text);
  problems.add(key, fmt::format("{}: is not used, since it is not as it was written; with "
                                "--no-verify it is taken as it is",
                                directory));
  return ConfigError(problems.all());
}

}  // namespace

void add_verify_option(boost::program_options::options_description& options) {
  options.add_options()("no-verify",
                        "use what is read as it is, also where it differs from its manifest");
}

UseCheck read_use_check(const boost::program_options::variables_map& values) {
  return values.contains("no-verify") ? UseCheck::skip : UseCheck::verify;
}

bool check_before_use(UseCheck check, const std::string& directory, Verification verification) {
  if (check == UseCheck::skip) {
    print_error("redspine: {}\n", skipped_text(directory));
    return false;
  }
  try {
    return check_as_written(directory, verification);
  } catch (const ConfigError& error) {
    throw with_way_round(error, "", directory);
  }
}

bool check_before_use(UseCheck check, const std::string& directory, const ProcessGroup& world) {
  if (check == UseCheck::skip) {
    if (world.rank() == 0) log_from_rank(world, skipped_text(directory));
    return false;
  }
  return agree(world, [&] {
    try {
      return check_as_written(directory, Verification::model, world);
    } catch (const ConfigError& error) {
      throw with_way_round(error, "--checkpoint", directory);
    }
  });
}

}  // namespace redspine
