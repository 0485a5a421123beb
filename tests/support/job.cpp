#include "tests/support/job.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <stdexcept>
#include <thread>

#include "tests/support/scratch.h"

namespace redspine::testing {
namespace {

using std::chrono::steady_clock;

// What mpirun leaves to itself may take a moment longer than mpirun.
constexpr double kGraceSeconds = 5.0;

void pause() { std::this_thread::sleep_for(std::chrono::milliseconds(2)); }

double seconds_since(steady_clock::time_point start) {
  return std::chrono::duration<double>(steady_clock::now() - start).count();
}

struct Process {
  pid_t pid;
  std::string name;
};

std::vector<Process> children_of(pid_t parent) {
  std::vector<Process> children;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    // "PID (NAME) STATE PARENT ...", where a name may hold anything. What has just ended reads as
    // nothing, and so does what is no process.
    std::string line;
    std::getline(std::ifstream(entry.path() / "stat"), line);
    const std::size_t open = line.find('(');
    const std::size_t close = line.rfind(')');
    if (open == std::string::npos || close == std::string::npos) continue;
    if (std::stoi(line.substr(close + 4)) != parent) continue;
    children.push_back({std::stoi(line), line.substr(open + 1, close - open - 1)});
  }
  return children;
}

/// Kills every child of this process, and theirs as they come to it.
std::vector<std::string> kill_all_children() {
  std::vector<std::string> killed;
  for (std::vector<Process> all; !(all = children_of(getpid())).empty();) {
    for (const Process& process : all) {
      if (waitpid(process.pid, nullptr, WNOHANG) != 0) continue;  // had ended
      killed.push_back(fmt::format("{} {}", process.pid, process.name));
      kill(process.pid, SIGKILL);
      waitpid(process.pid, nullptr, 0);
    }
  }
  return killed;
}

/// As a shell finds them at a terminal. A test that runs in the background or under nohup has some
/// ignored, and its children would have, too.
void reset_signals() {
  for (int signal = 1; signal < NSIG; ++signal) std::signal(signal, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
}

}  // namespace

std::string unprivileged(const std::string& command) {
  constexpr const char* kFewer = "-dac_override,-dac_read_search";
  if (geteuid() != 0) return command;
  return fmt::format("setpriv --bounding-set={0} --inh-caps={0} {1}", kFewer, command);
}

Job::Job(const std::string& command, std::filesystem::path folder)
    : folder_(std::move(folder)), start_(steady_clock::now()) {
  // Orphans of the job become children of this process.
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  pid_ = fork();
  if (pid_ < 0) throw std::runtime_error("fork failed");
  if (pid_ > 0) return;
  reset_signals();
  const auto redirect = [&](const char* name, int to) {
    const int file = open((folder_ / name).c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666);
    return file >= 0 && dup2(file, to) == to && close(file) == 0;
  };
  const int null = open("/dev/null", O_RDONLY);
  if (dup2(null, STDIN_FILENO) == STDIN_FILENO && redirect("stdout", STDOUT_FILENO) &&
      redirect("stderr", STDERR_FILENO) && chdir(folder_.c_str()) == 0) {
    execl("/bin/sh", "sh", "-c", ("exec " + command).c_str(), nullptr);
  }
  _exit(127);
}

Job::~Job() {
  if (pid_ > 0) kill_all_children();
}

bool Job::is_anything_left(Ended& ended) {
  int status = 0;
  rusage usage = {};
  pid_t pid = 0;
  while ((pid = wait4(-1, &status, WNOHANG, &usage)) > 0) {
    // Of a process that waited for its own, this is the largest among all of them.
    ended.peak_bytes = std::max(ended.peak_bytes, std::int64_t{usage.ru_maxrss} * 1024);
    if (pid != pid_) continue;
    ended.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    pid_ = -1;
  }
  return pid == 0;
}

Ended Job::wait(double limit_seconds) {
  Ended ended;
  steady_clock::time_point begin = steady_clock::now();
  double limit = limit_seconds;
  bool was_running = true;
  while (is_anything_left(ended) && seconds_since(begin) < limit) {
    if (was_running && pid_ == -1) {
      was_running = false;
      begin = steady_clock::now();
      limit = kGraceSeconds;
    }
    pause();
  }
  ended.seconds = seconds_since(start_);
  ended.left_behind = kill_all_children();
  pid_ = -1;
  ended.output = read_file(folder_ / "stdout");
  ended.errors = read_file(folder_ / "stderr");
  return ended;
}

}  // namespace redspine::testing
