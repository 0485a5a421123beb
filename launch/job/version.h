// The version of this binary: build, backends and libraries.
#pragma once

#include <string>

namespace redspine {

/// The lines of `redspine --version`: version, build, backends and libraries.
std::string version_text();

/// "0.1.0".
std::string version_number();

}  // namespace redspine
