#include "trainer/requests.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <ctime>
#include <string_view>

#include "tensor/error.h"

namespace redspine {
namespace {

struct StopCause {
  Request request;
  const char* words;
  int signal = 0;  // 0: none
};

constexpr std::array<StopCause, 7> kStopCauses = {
    {{Request::sigterm, "SIGTERM", SIGTERM},
     {Request::sigusr1, "SIGUSR1", SIGUSR1},
     {Request::sigint, "SIGINT", SIGINT},
     {Request::sighup, "SIGHUP", SIGHUP},
     {Request::sigxcpu, "SIGXCPU", SIGXCPU},
     {Request::stop_file, "the file STOP"},
     {Request::allocation_end, "the end of the Slurm allocation"}}};

// Left for a save on a slow file system; no more than a tenth of what there was at the start.
constexpr double kMarginSeconds = 120.0;
constexpr double kMarginShare = 0.1;

const char* file_of(Request request) { return request == Request::save_file ? "/SAVE" : "/STOP"; }

bool exists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

bool is_ignored(int signal) {
  struct sigaction action = {};
  return ::sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

}  // namespace

bool Requests::stops() const {
  return std::any_of(kStopCauses.begin(), kStopCauses.end(),
                     [this](const StopCause& cause) { return has(cause.request); });
}

std::string Requests::stop_cause() const {
  for (const StopCause& cause : kStopCauses) {
    if (has(cause.request)) return cause.words;
  }
  return "";
}

Requests agree_on(const Requests& mine, const ProcessGroup& world) {
  Requests agreed = mine;
  world.all_reduce(agreed.counts, ReduceOp::sum);
  return agreed;
}

StopSignals::StopSignals() {
  sigemptyset(&watched_);
  for (const StopCause& cause : kStopCauses) {
    // Once blocked, a signal waits even where it is ignored.
    if (cause.signal != 0 && !is_ignored(cause.signal)) sigaddset(&watched_, cause.signal);
  }
  if (pthread_sigmask(SIG_BLOCK, &watched_, nullptr) != 0) throw Error("pthread_sigmask failed");
}

void StopSignals::poll(Requests& requests) const {
  const timespec now{};
  for (int signal = 0; (signal = sigtimedwait(&watched_, nullptr, &now)) > 0;) {
    for (const StopCause& cause : kStopCauses) {
      if (cause.signal == signal) requests.add(cause.request);
    }
  }
}

RequestWatch::RequestWatch(std::string run_directory, int rank, const StopSignals& signals)
    : run_directory_(std::move(run_directory)), watches_files_(rank == 0), signals_(signals) {
  read_allocation_end();
}

Requests RequestWatch::poll() {
  signals_.poll(pending_);
  if (watches_files_) look_at({Request::stop_file, Request::save_file});
  return pending_;
}

bool RequestWatch::is_stop_asked() {
  signals_.poll(pending_);
  look_at({Request::stop_file});
  return pending_.stops();
}

void RequestWatch::step_took(double seconds) {
  longest_step_seconds_ = std::max(longest_step_seconds_, seconds);
}

void RequestWatch::save_took(double seconds) {
  longest_save_seconds_ = std::max(longest_save_seconds_, seconds);
}

void RequestWatch::done(Request request) {
  pending_.counts[static_cast<std::size_t>(request)] = 0.0;
  // A file that cannot be deleted asks again; the run goes on all the same.
  if (watches_files_) ::unlink((run_directory_ + file_of(request)).c_str());
}

void RequestWatch::look_at(std::initializer_list<Request> files) {
  for (const Request request : files) {
    if (exists(run_directory_ + file_of(request))) pending_.add(request);
  }
  if (is_allocation_at_its_end()) pending_.add(Request::allocation_end);
}

void RequestWatch::read_allocation_end() {
  const char* variable = std::getenv("SLURM_JOB_END_TIME");
  if (variable == nullptr || *variable == '\0') return;
  const std::string_view text = variable;
  std::time_t seconds = 0;  // since 1970
  const auto result = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (result.ec == std::errc() && result.ptr == text.data() + text.size()) {
    const auto end = std::chrono::system_clock::from_time_t(seconds);
    if (end > signals_.start()) {
      allocation_end_ = end;
      return;
    }
  }
  // As in a shell that outlived its allocation: each start would end before its first step.
  warning_ = fmt::format(
      "SLURM_JOB_END_TIME is \"{}\", which is no time after the start ({}): the run does not "
      "stop by it",
      text, std::chrono::system_clock::to_time_t(signals_.start()));
}

bool RequestWatch::is_allocation_at_its_end() const {
  if (!allocation_end_) return false;
  const std::chrono::duration<double> in_all = *allocation_end_ - signals_.start();
  const std::chrono::duration<double> left = *allocation_end_ - std::chrono::system_clock::now();
  const double margin = std::min(kMarginSeconds, kMarginShare * in_all.count());
  return left.count() < margin + longest_step_seconds_ + longest_save_seconds_;
}

}  // namespace redspine
