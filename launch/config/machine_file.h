// The description of a machine (trainer/plan/machine.h) as a file in YAML, read as strictly as a
// configuration. Local.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "launch/config/fields.h"
#include "trainer/plan/machine.h"

namespace redspine {

/// Every key of a machine's file, in the order in which it is written.
std::vector<Field> fields_of(Machine& machine);

/// Throws ConfigError with all problems, each with file, line and key, and what is legal.
Machine load_machine(const std::string& path);
/// The same from a text; `source` names it.
Machine parse_machine(std::string_view text, const std::string& source);

/// A file that reads back to the same values, with `comment` above them.
std::string to_yaml(Machine machine, const std::string& comment);

}  // namespace redspine
