// checkpoint_bench FOLDER: how fast checkpoints of GPT-2 124M with its optimizer are written to a
// new FOLDER and read back, beside plain writing and reading of as many bytes on the same disk in
// the same run. Prints the best of some rounds; removes FOLDER.

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>
#include <vector>

#include "data/file.h"
#include "parallel/mpi_session.h"
#include "trainer/checkpoint/files.h"
#include "trainer/checkpoint/loader.h"
#include "trainer/checkpoint/saver.h"
#include "trainer/checkpoint/verify.h"
#include "trainer/trainer.h"

namespace redspine {
namespace {

namespace fs = std::filesystem;

constexpr int kNumRounds = 5;
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

void forget(const std::string& path) {
  const File file = File::open(path, "");
  posix_fadvise(file.descriptor(), 0, 0, POSIX_FADV_DONTNEED);
}

/// Makes the next read of every file of a directory one from the disk.
void forget_all(const std::string& directory) {
  for (const std::string& name : names_in(directory)) forget(directory + "/" + name);
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
  Bench(const std::string& folder, const RankGroup& world)
      : folder_(folder),
        config_(config_in(folder)),
        device_(make_cpu_device(static_cast<int>(std::thread::hardware_concurrency()))),
        data_(config_),
        trainer_(config_, data_, world, *device_) {
    trainer_.train_step();  // moments that are not all zero
  }

  void run() {
    std::vector<Seconds> plain_write;
    std::vector<Seconds> synchronous;
    std::vector<Seconds> stall;
    std::vector<Seconds> plain_read;
    std::vector<Seconds> load;
    std::vector<Seconds> verify;
    for (int round = 0; round < kNumRounds; ++round) {
      SaveReport report = save(SaveMode::synchronous, synchronous);
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
      fs::remove_all(checkpoint);
      const std::string plain = folder_ + "/plain";
      plain_write.push_back(seconds_of([&] { write_plain(plain, num_bytes_); }));
      fs::remove(plain);
      report = save(SaveMode::asynchronous, stall);
      fs::remove_all(report.path);
    }
    tell("plain write with fsync", best(plain_write));
    tell("synchronous save", best(synchronous));
    tell("plain read", best(plain_read));
    tell("load", best(load));
    tell("verify, every hash", best(verify));
    tell("asynchronous, the stall", best(stall));
    fmt::print("\n");
    fmt::print("asynchronous stall / synchronous save  {:.3f}  (to hold: below 0.20)\n",
               best(stall).clock / best(synchronous).clock);
    fmt::print("plain write / synchronous save         {:.2f}  (to hold: at least 0.80)\n",
               best(plain_write).clock / best(synchronous).clock);
    fmt::print("plain read / load                      {:.2f}  (to hold: at least 0.80)\n",
               best(plain_read).clock / best(load).clock);
  }

 private:
  /// Adds how long training stands still; returns when all is written.
  SaveReport save(SaveMode mode, std::vector<Seconds>& seconds) {
    CheckpointSaver saver({.model = config_.model,
                           .mode = mode,
                           .retention = {.keep = 0, .keep_every = 0, .resumed_from = {}}},
                          CheckpointStore(folder_, "0123456789abcdef"), trainer_.mesh(),
                          trainer_.model().parameters(), *device_);
    TrainingRecord record;
    record.progress = trainer_.progress();
    SaveReport report{};
    seconds.push_back(seconds_of([&] { report = saver.save(trainer_.tensors(), record); }));
    saver.wait();
    return report;
  }

  static Seconds cold(const std::string& directory, const std::function<void()>& action) {
    forget_all(directory);
    return seconds_of(action);
  }

  void tell(const char* what, const Seconds& seconds) const {
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
    if (argc != 2) throw redspine::ConfigError("", "checkpoint_bench FOLDER");
    redspine::make_folder(argv[1]);
    redspine::Bench(argv[1], mpi.world()).run();
    std::filesystem::remove_all(argv[1]);
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
