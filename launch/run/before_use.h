// Verification before use: what a command reads of a checkpoint is compared with its manifest
// first, unless --no-verify is given, which is then reported.
#pragma once

#include <boost/program_options.hpp>
#include <string>

#include "parallel/group/process_group.h"
#include "trainer/checkpoint/verify.h"

namespace redspine {

enum class UseCheck { verify, skip };

void add_verify_option(boost::program_options::options_description& options);
UseCheck read_use_check(const boost::program_options::variables_map& values);

/// ConfigError with everything in `directory` that is not as it was written. Otherwise whether its
/// manifest vouches for it: not where the check is skipped, which is then said on standard error,
/// and not where it has none. Local.
bool check_before_use(UseCheck check, const std::string& directory, Verification verification);

/// The same of the model in --checkpoint by all ranks of `world`, each a share. They reject
/// it together (agree.h). Collective.
bool check_before_use(UseCheck check, const std::string& directory, const ProcessGroup& world);

}  // namespace redspine
