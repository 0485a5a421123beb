// Requests to a run while it is at work: to stop, or to save. Signals are seen by the rank
// that gets them, files and the clock by rank 0; the ranks agree by adding up their counts with the
// sums of a step, so that all of them act after the same one.
#pragma once

#include <array>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <initializer_list>
#include <optional>
#include <string>

#include "parallel/group/process_group.h"

namespace redspine {

enum class Request {
  sigterm,
  sigusr1,
  sigint,
  sighup,
  sigxcpu,
  stop_file,
  allocation_end,
  save_file,
  failed_save,
  lost_directory
};
inline constexpr std::size_t kNumRequests = 10;

/// How many ranks have seen each request.
struct Requests {
  std::array<double, kNumRequests> counts{};

  void add(Request request) { counts[static_cast<std::size_t>(request)] += 1.0; }
  bool has(Request request) const { return counts[static_cast<std::size_t>(request)] > 0.0; }
  bool stops() const;
  /// In words: "SIGTERM", "the file RUN/STOP", ...; empty where nothing stops.
  std::string stop_cause() const;
};

/// Collective: everybody's counts added up.
Requests agree_on(const Requests& mine, const ProcessGroup& world);

/// The signals that ask a run to stop wait to be asked for, in all threads that start from now on
/// and to the end of the process: whatever arrives after the first cannot change the exit code any
/// more. Those that the process was started to ignore stay ignored, as under nohup. One object in
/// main, before threads and MPI.
class StopSignals {
 public:
  StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  /// Adds the signals that this process has had.
  void poll(Requests& requests) const;
  /// When it began to watch: before MPI, whose start may take seconds.
  std::chrono::system_clock::time_point start() const { return start_; }

 private:
  std::chrono::system_clock::time_point start_ = std::chrono::system_clock::now();
  sigset_t watched_{};
};

/// Local; rank 0 also looks at the run's directory and the clock.
class RequestWatch {
 public:
  /// `signals` outlives it.
  RequestWatch(std::string run_directory, int rank, const StopSignals& signals);

  /// What the user should know of what it goes by; empty where all is well.
  const std::string& warning() const { return warning_; }

  /// Everything asked so far and not yet done, as far as this rank knows.
  Requests poll();
  /// Whether the run is to stop, by what this rank can see for itself: files and the clock, too, on
  /// any rank. For the long parts of the start, in which ranks cannot talk; afterwards poll() still
  /// knows.
  bool is_stop_asked();
  /// What a run does before it can stop: the step it is at, and a save. The longest of each so far
  /// is left for it before the end of the allocation.
  void step_took(double seconds);
  void save_took(double seconds);
  /// The run has saved, or stops: rank 0 deletes the file that asked for it.
  void done(Request request);

 private:
  void look_at(std::initializer_list<Request> files);
  void read_allocation_end();
  bool is_allocation_at_its_end() const;

  std::string run_directory_;
  bool watches_files_;
  const StopSignals& signals_;
  Requests pending_;
  std::string warning_;
  std::optional<std::chrono::system_clock::time_point> allocation_end_;
  double longest_step_seconds_ = 0.0;
  double longest_save_seconds_ = 0.0;
};

}  // namespace redspine
