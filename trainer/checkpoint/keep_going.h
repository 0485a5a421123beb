// A callback that can end long work early: going through a large checkpoint takes minutes, in which
// a run may be asked to stop.
#pragma once

#include <functional>

namespace redspine {

/// Asked between tensors, in the thread that called: false cuts the work short, and what it was to
/// give is of no use. It may differ between ranks, which have to agree afterwards. Null: true.
using KeepGoing = std::function<bool()>;

inline bool goes_on(const KeepGoing& keep_going) { return !keep_going || keep_going(); }

}  // namespace redspine
