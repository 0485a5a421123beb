// What a collective call ends with, where that may be an error that all ranks are told.
#pragma once

#include <functional>
#include <string>

#include "parallel/group/failure.h"

namespace redspine::testing {

/// Its text, or nothing.
inline std::string failure_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const CollectiveError& error) {
    return error.what();
  }
  return "";
}

}  // namespace redspine::testing
