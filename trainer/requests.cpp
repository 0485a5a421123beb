#include "trainer/requests.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>

#include "tensor/error.h"

namespace redspine {
namespace {

struct StopCause {
  Request request;
  const char* words;
};

constexpr std::array<StopCause, 4> kStopCauses = {
    {{Request::sigterm, "SIGTERM"},
     {Request::sigusr1, "SIGUSR1"},
     {Request::stop_file, "the file STOP"},
     {Request::allocation_end, "the end of the Slurm allocation"}}};

// Left for a save on a slow file system; no more than a tenth of what there was at the start.
constexpr double kMarginSeconds = 120.0;
constexpr double kMarginShare = 0.1;

const char* file_of(Request request) { return request == Request::save_file ? "/SAVE" : "/STOP"; }

bool exists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

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

Requests agree_on(const Requests& mine, const RankGroup& world) {
  Requests agreed = mine;
  world.all_reduce(agreed.counts, ReduceOp::sum);
  return agreed;
}

StopSignals::StopSignals() {
  sigemptyset(&watched_);
  sigaddset(&watched_, SIGTERM);
  sigaddset(&watched_, SIGUSR1);
  if (pthread_sigmask(SIG_BLOCK, &watched_, &before_) != 0) {
    throw Error("pthread_sigmask failed");
  }
}

StopSignals::~StopSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

void StopSignals::poll(Requests& requests) const {
  const timespec now{};
  for (int signal = 0; (signal = sigtimedwait(&watched_, nullptr, &now)) > 0;) {
    requests.add(signal == SIGTERM ? Request::sigterm : Request::sigusr1);
  }
}

RequestWatch::RequestWatch(std::string run_directory, int rank, const StopSignals& signals)
    : run_directory_(std::move(run_directory)), watches_files_(rank == 0), signals_(signals) {}

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

bool RequestWatch::is_allocation_at_its_end() const {
  const char* end_time = std::getenv("SLURM_JOB_END_TIME");  // seconds since 1970
  if (end_time == nullptr) return false;
  const auto end = std::chrono::system_clock::from_time_t(std::strtoll(end_time, nullptr, 10));
  if (end.time_since_epoch().count() == 0) return false;
  const std::chrono::duration<double> in_all = end - start_;
  const std::chrono::duration<double> left = end - std::chrono::system_clock::now();
  const double margin = std::min(kMarginSeconds, kMarginShare * in_all.count());
  return left.count() < std::max(margin, 0.0) + longest_step_seconds_ + longest_save_seconds_;
}

}  // namespace redspine
