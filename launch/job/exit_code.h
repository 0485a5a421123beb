// The exit codes of `redspine`, which scripts and schedulers rely on.
#pragma once

namespace redspine {

inline constexpr int kExitDone = 0;
inline constexpr int kExitFailed = 1;
inline constexpr int kExitUserError = 2;
inline constexpr int kExitStopped = 75;

}  // namespace redspine
