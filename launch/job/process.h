// Settings of the process that come before anything else: signals, threads, standard streams.
// Local.
#pragma once

namespace redspine {

/// A write beyond a limit or to a closed pipe is an error of that write (EFBIG, EPIPE), not the end
/// of the process by a signal. A standard stream that is closed is none whose number a file could
/// get. As many files may be open as the system lets this process have. The calling thread, and
/// with it those that it starts, may use all CPUs that the process was given.
void prepare_process();

}  // namespace redspine
