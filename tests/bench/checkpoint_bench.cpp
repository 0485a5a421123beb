// checkpoint_bench [--check] FOLDER: how fast checkpoints of GPT-2 124M with its optimizer are
// written to a new FOLDER, with and without an older one that goes, and read back, beside plain
// writing and reading of as many bytes on the same disk in the same run. Prints the best of some
// rounds; removes FOLDER. With --check the exit code is 3 where a ratio is not what is to hold.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>
#include <vector>

#include "data/io/file.h"
#include "data/io/folders.h"
#include "parallel/group/mpi_session.h"
#include "trainer/checkpoint/loader.h"
#include "trainer/checkpoint/saver.h"
#include "trainer/checkpoint/verify.h"
#include "trainer/trainer.h"

namespace redspine {
namespace {

namespace fs = std::filesystem;

constexpr int kNumRounds = 5;
constexpr int kExitMissed = 3;
constexpr const char* kRunId = "0123456789abcdef";
constexpr std::size_t kBytesAtOnce = std::size_t{1} << 20;  // dd bs=1M

/// Where CPU time is far below the time by the clock, others held the machine or the disk was slow.
struct Seconds {
  double clock;
  double cpu;  // of all threads of this process

  bool operator<(const Seconds& other) const { return clock < other.clock; }
};

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

Seconds seconds_of(const std::function<void()>& action) {
  const auto start = std::chrono::steady_clock::now();
  const double cpu_start = cpu_seconds();
  action();
  const std::chrono::duration<double> clock = std::chrono::steady_clock::now() - start;
  return {.clock = clock.count(), .cpu = cpu_seconds() - cpu_start};
}

// What others do on the machine makes a round slower, never faster.
Seconds best(const std::vector<Seconds>& values) {
  return *std::min_element(values.begin(), values.end());
}

/// As `dd bs=1M conv=fsync` does.
void write_plain(const std::string& path, std::int64_t num_bytes) {
  std::vector<std::byte> block(kBytesAtOnce);
  for (std::size_t i = 0; i < block.size(); ++i) block[i] = static_cast<std::byte>(i * 2654435761U);
  File file = File::create(path);
  for (; num_bytes > 0; num_bytes -= static_cast<std::int64_t>(block.size())) file.write(block);
  file.sync();
}

/// Makes the next read of every file of a directory one from the disk.
void forget_all(const std::string& directory) {
  for (const std::string& name : names_in(directory)) forget_file(directory + "/" + name);
}

void read_plain(const std::string& directory) {
  std::vector<std::byte> block(kBytesAtOnce);
  for (const std::string& name : names_in(directory)) {
    const File file = File::open(directory + "/" + name, "");
    const std::int64_t size = file.size();
    for (std::int64_t offset = 0; offset < size;) {
      const auto count = std::min(size - offset, static_cast<std::int64_t>(block.size()));
      file.read_at(offset, std::span(block).first(static_cast<std::size_t>(count)));
      offset += count;
    }
  }
}

Config config_in(const std::string& folder) {
  std::ofstream(folder + "/tokens.u16", std::ios::binary) << std::string(4096, '\0');
  Config config;
  config.data.train = {{.path = folder + "/tokens.u16"}};
  config.data.format = TokenFormat::raw_u16;
  config.batch = {.sequence_length = 16, .global_batch_size = 1, .micro_batch_size = 1};
  return config;
}

class Bench {
 public:
  Bench(const std::string& folder, const ProcessGroup& world)
      : folder_(folder),
        config_(config_in(folder)),
        device_(make_cpu_device(static_cast<int>(std::thread::hardware_concurrency()))),
        data_(config_),
        trainer_(config_, data_, world, *device_) {
    trainer_.train_step();  // moments that are not all zero
  }

  /// Whether all ratios hold.
  bool run() {
    std::vector<Seconds> plain_write;
    std::vector<Seconds> synchronous;
    std::vector<Seconds> removing;
    std::vector<Seconds> stall;
    std::vector<Seconds> plain_read;
    std::vector<Seconds> load;
    std::vector<Seconds> verify;
    for (int round = 0; round < kNumRounds; ++round) {
      SaveReport report = save(SaveMode::synchronous, kKeepAll, synchronous);
      const std::string checkpoint = report.path;
      num_bytes_ = report.bytes;
      // The first reading after a write takes longer, whoever reads: the kernel has to put the
      // memory of the pages that are dropped together again.
      cold(checkpoint, [&] { read_plain(checkpoint); });
      plain_read.push_back(cold(checkpoint, [&] { read_plain(checkpoint); }));
      load.push_back(cold(checkpoint, [&] {
        load_state(checkpoint, config_.model, trainer_.tensors(),
                   {.store = trainer_.model().parameters(), .device = *device_});
      }));
      verify.push_back(cold(checkpoint, [&] {
        if (!verify_checkpoint(checkpoint, Verification::full).empty()) throw Error("is damaged");
      }));
      // Now there is one that goes, once the new one has been read back.
      trainer_.train_step();
      report = save(SaveMode::synchronous, kKeepOne, removing);
      if (fs::exists(checkpoint)) throw Error(checkpoint + " was to go");
      fs::remove_all(report.path);
      const std::string plain = folder_ + "/plain";
      plain_write.push_back(seconds_of([&] { write_plain(plain, num_bytes_); }));
      fs::remove(plain);
      report = save(SaveMode::asynchronous, kKeepAll, stall);
      fs::remove_all(report.path);
    }
    print("plain write with fsync", best(plain_write));
    print("synchronous save", best(synchronous));
    print("the same with a removal", best(removing));
    print("plain read", best(plain_read));
    print("load", best(load));
    print("verify, every hash", best(verify));
    print("asynchronous, the stall", best(stall));
    fmt::print("\n");
    const double stall_share = best(stall).clock / best(synchronous).clock;
    const double write_share = best(plain_write).clock / best(synchronous).clock;
    const double read_share = best(plain_read).clock / best(load).clock;
    fmt::print(
        "asynchronous stall / synchronous save  {:.3f}  (to hold: below 0.20)\n"
        "plain write / synchronous save         {:.2f}  (to hold: at least 0.80)\n"
        "plain read / load                      {:.2f}  (to hold: at least 0.80)\n",
        stall_share, write_share, read_share);
    return stall_share < 0.2 && write_share >= 0.8 && read_share >= 0.8;
  }

 private:
  static constexpr std::int64_t kKeepAll = 0;
  static constexpr std::int64_t kKeepOne = 1;

  /// Adds how long training stands still; returns when all is written.
  SaveReport save(SaveMode mode, std::int64_t keep, std::vector<Seconds>& seconds) {
    CheckpointSaver saver({.model = config_.model,
                           .mode = mode,
                           .retention = {.keep = keep, .keep_every = 0, .resumed_from = {}}},
                          CheckpointStore(folder_, kRunId), trainer_.mesh(),
                          trainer_.model().parameters(), *device_);
    TrainingRecord record;
    record.progress = trainer_.progress();
    record.run_id = kRunId;  // retention takes no other run's
    seconds.push_back(seconds_of([&] { saver.save(trainer_.tensors(), record); }));
    saver.wait();
    return saver.take_published().at(0);
  }

  static Seconds cold(const std::string& directory, const std::function<void()>& action) {
    forget_all(directory);
    return seconds_of(action);
  }

  void print(const char* what, const Seconds& seconds) const {
    fmt::print("{:<24} {:7.3f} s  {:7.1f} MB/s  {:7.3f} CPU s\n", what, seconds.clock,
               static_cast<double>(num_bytes_) * 1e-6 / seconds.clock, seconds.cpu);
  }

  std::string folder_;
  Config config_;
  std::unique_ptr<Device> device_;
  RunData data_;
  Trainer trainer_;
  std::int64_t num_bytes_ = 0;
};

}  // namespace
}  // namespace redspine

int main(int argc, char** argv) {
  const redspine::MpiSession mpi(&argc, &argv);
  try {
    std::vector<std::string> words(argv + 1, argv + argc);
    const bool is_check = !words.empty() && words.front() == "--check";
    if (is_check) words.erase(words.begin());
    if (words.size() != 1) throw redspine::ConfigError("", "checkpoint_bench [--check] FOLDER");
    redspine::make_folder(words[0]);
    const bool all_hold = redspine::Bench(words[0], mpi.world()).run();
    std::filesystem::remove_all(words[0]);
    return is_check && !all_hold ? redspine::kExitMissed : 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
