#include "tests/cuda_on_host/block.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <memory>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "tests/cuda_on_host/fiber.h"
#include "tests/cuda_on_host/random.h"
#include "tests/cuda_on_host/shared_memory.h"
#include "tests/cuda_on_host/symbol.h"

uint3 threadIdx{};
uint3 blockIdx{};
dim3 blockDim;
dim3 gridDim;

namespace on_host {
namespace {

// Ends a thread whose block has a fault already.
struct Abandoned {};

enum class State { not_started, running, runnable, at_barrier, at_warp_call, ended };

struct Thread {
  State state = State::not_started;
  uint3 index{};
  Fiber* fiber = nullptr;  // that it started in
  Place place;             // where it waits
  WarpRequest request{};
  std::uint64_t result = 0;
};

// Sets of lanes, a bit each.
struct Warp {
  unsigned existing = 0;
  unsigned waiting = 0;  // at a collective
  unsigned ended = 0;
};

const char* name_of(WarpCall call) {
  switch (call) {
    case WarpCall::sync:
      return "__syncwarp";
    case WarpCall::shuffle:
      return "__shfl_sync";
    case WarpCall::shuffle_up:
      return "__shfl_up_sync";
    case WarpCall::shuffle_down:
      return "__shfl_down_sync";
    case WarpCall::shuffle_xor:
      return "__shfl_xor_sync";
    case WarpCall::ballot:
      return "__ballot_sync";
  }
  return "an unknown warp collective";
}

std::string to_string(const Place& place) {
  std::string_view file = place.file_name();
  return fmt::format("{}:{}", file.substr(file.rfind('/') + 1), place.line());
}

bool same_place(const Place& a, const Place& b) {
  return a.line() == b.line() && a.column() == b.column() &&
         (a.file_name() == b.file_name() || std::strcmp(a.file_name(), b.file_name()) == 0);
}

std::string to_string(const uint3& index) {
  return fmt::format("({},{},{})", index.x, index.y, index.z);
}

// The lane that `lane` reads from, as the PTX manual defines shfl.sync for segments of `width`.
unsigned source_lane(const WarpRequest& request, unsigned lane) {
  const auto width = static_cast<unsigned>(request.width);
  const unsigned first = lane & ~(width - 1);
  const unsigned last = first | (width - 1);
  const auto operand = static_cast<unsigned>(request.operand);
  switch (request.call) {
    case WarpCall::shuffle:
      return first | (operand & (width - 1));
    case WarpCall::shuffle_up:
      return lane >= first + operand ? lane - operand : lane;
    case WarpCall::shuffle_down:
      return lane + operand <= last ? lane + operand : lane;
    case WarpCall::shuffle_xor:
      return (lane ^ operand) <= last ? lane ^ operand : lane;
    default:
      return lane;
  }
}

class Block {
 public:
  void start(const Grid& grid, const std::function<void()>& body, std::uint64_t seed) {
    grid_ = &grid;
    body_ = &body;
    random_ = Random(seed);
    const std::size_t count = std::size_t{grid.threads.x} * grid.threads.y * grid.threads.z;
    if (threads_.size() != count) {
      threads_.assign(count, {});
      warps_.assign((count + 31) / 32, {});
      order_.resize(count);
      std::iota(order_.begin(), order_.end(), 0U);
      for (std::size_t i = 0; i < count; ++i) warps_[i / 32].existing |= 1U << i % 32;
    }
    // Blocks of as many threads may have another shape.
    for (std::size_t i = 0; i < count; ++i) {
      const auto n = static_cast<unsigned>(i);
      threads_[i].index = {n % grid.threads.x, n / grid.threads.x % grid.threads.y,
                           n / (grid.threads.x * grid.threads.y)};
    }
  }

  void run(uint3 index) {
    blockIdx = index;
    for (Thread& thread : threads_) thread.state = State::not_started;
    for (Warp& warp : warps_) warp.waiting = warp.ended = 0;
    random_.shuffle(order_);
    next_ = 0;
    num_ended_ = 0;
    num_at_barrier_ = 0;
    runnable_.clear();
    shared_memory_begin(grid_->shared_bytes);
    while (num_ended_ < threads_.size()) {
      if (fault_.empty() && runnable_.empty() && next_ == threads_.size()) report_standstill();
      if (!fault_.empty()) break;
      resume_one();
    }
    if (fault_.empty() && !shared_memory_is_intact(grid_->shared_bytes)) {
      report(fmt::format("wrote behind its {} bytes of shared memory", grid_->shared_bytes));
    }
    if (!fault_.empty()) abandon();
  }

  void barrier(Place place) {
    Thread& self = *current_;
    if (num_at_barrier_ > 0 && !same_place(place, barrier_place_)) {
      fail(fmt::format("{} is at __syncthreads of {}, while others of its block wait at {}",
                       name(self), to_string(place), to_string(barrier_place_)));
    }
    barrier_place_ = place;
    if (++num_at_barrier_ == threads_.size()) {
      num_at_barrier_ = 0;
      release_all_but(self);
      return;
    }
    wait(self, State::at_barrier, place);
  }

  std::uint64_t warp_collective(const WarpRequest& request) {
    Thread& self = *current_;
    const auto number = static_cast<std::size_t>(current_ - threads_.data());
    Warp& warp = warps_[number / 32];
    Thread* lanes = threads_.data() + number / 32 * 32;
    const auto lane = static_cast<unsigned>(number % 32);
    const unsigned bit = 1U << lane;
    self.request = request;
    check_mask(self, warp, bit);
    const unsigned others = request.mask & ~bit;
    const unsigned waiting = others & warp.waiting;
    if (waiting != others) {
      // One of those who wait for this lane stands for all: at the end each is compared.
      if (waiting != 0) {
        const Thread& peer = lanes[std::countr_zero(waiting)];
        if ((peer.request.mask & bit) != 0) check_same_call(self, peer);
      }
      warp.waiting |= bit;
      wait(self, State::at_warp_call, request.place);
      return self.result;
    }
    for (unsigned rest = others; rest != 0; rest &= rest - 1) {
      check_same_call(self, lanes[std::countr_zero(rest)]);
    }
    for (unsigned rest = request.mask; rest != 0; rest &= rest - 1) {
      const auto other = static_cast<unsigned>(std::countr_zero(rest));
      lanes[other].result = result(lanes, other);
    }
    warp.waiting &= ~others;
    for (unsigned rest = others; rest != 0; rest &= rest - 1) {
      make_runnable(lanes[std::countr_zero(rest)]);
    }
    return self.result;
  }

 private:
  // A fiber runs threads from start to end, until one of them blocks in it.
  void fiber_body(Fiber*& self) {
    while (true) {
      while (fault_.empty() && next_ < threads_.size()) {
        Thread& thread = threads_[order_[next_++]];
        thread.fiber = self;
        go_on(thread);
        try {
          (*body_)();
        } catch (const Abandoned&) {
        } catch (const std::exception& error) {
          if (fault_.empty()) report(fmt::format("{} threw: {}", name(thread), error.what()));
        }
        thread.state = State::ended;
        ++num_ended_;
        const auto number = static_cast<std::size_t>(&thread - threads_.data());
        warps_[number / 32].ended |= 1U << number % 32;
      }
      idle_.push_back(self);
      self->suspend();
    }
  }

  void resume_one() {
    // Threads that have not started and those that may go on, in turns that the seed decides.
    const std::size_t num_new = threads_.size() - next_;
    if (!runnable_.empty() && (num_new == 0 || random_.below(2) == 0)) {
      const std::size_t chosen = random_.below(runnable_.size());
      std::swap(runnable_[chosen], runnable_.back());
      Thread* thread = runnable_.back();
      runnable_.pop_back();
      Fiber* fiber = thread->fiber;
      go_on(*thread);
      fiber->resume();
    } else {
      idle_fiber().resume();
    }
  }

  void go_on(Thread& thread) {
    thread.state = State::running;
    current_ = &thread;
    threadIdx = thread.index;
  }

  Fiber& idle_fiber() {
    if (idle_.empty()) {
      // The fiber learns where it lies when it starts, which is after its creation.
      fibers_.push_back(nullptr);
      auto slot = std::make_shared<Fiber*>(nullptr);
      fibers_.back() = std::make_unique<Fiber>([this, slot] { fiber_body(*slot); });
      *slot = fibers_.back().get();
      return *fibers_.back();
    }
    Fiber* fiber = idle_.back();
    idle_.pop_back();
    return *fiber;
  }

  void wait(Thread& self, State state, Place place) {
    self.state = state;
    self.place = place;
    self.fiber->suspend();
    if (!fault_.empty()) throw Abandoned{};
  }

  void make_runnable(Thread& thread) {
    thread.state = State::runnable;
    runnable_.push_back(&thread);
  }

  void release_all_but(const Thread& self) {
    for (Thread& thread : threads_) {
      if (&thread != &self) make_runnable(thread);
    }
  }

  // May `self`, lane `bit` of its warp, call a collective with this mask at all?
  void check_mask(const Thread& self, const Warp& warp, unsigned bit) {
    const WarpRequest& request = self.request;
    if ((request.mask & bit) == 0) {
      fail(fmt::format("{} is not in the mask {:#x} of its {}", name(self), request.mask,
                       call_of(request)));
    }
    if ((request.mask & ~warp.existing) != 0) {
      fail(fmt::format("{} calls {} with mask {:#x}, but its warp has {} lanes", name(self),
                       call_of(request), request.mask, std::popcount(warp.existing)));
    }
    if ((request.mask & warp.ended) != 0) {
      const auto ended = std::countr_zero(request.mask & warp.ended);
      fail(fmt::format("{} waits at {} for lane {}, which has ended", name(self), call_of(request),
                       ended));
    }
  }

  static std::string call_of(const WarpRequest& request) {
    return fmt::format("{} of {}", name_of(request.call), to_string(request.place));
  }

  std::uint64_t result(const Thread* warp, unsigned lane) {
    const WarpRequest& request = warp[lane].request;
    if (request.call == WarpCall::ballot) {
      std::uint64_t votes = 0;
      for (unsigned other = 0; other < 32; ++other) {
        if ((request.mask >> other & 1U) != 0) votes |= warp[other].request.value << other;
      }
      return votes;
    }
    const unsigned source = source_lane(request, lane);
    if ((request.mask >> source & 1U) == 0) {
      fail(fmt::format("{} reads by {} at {} from lane {}, which mask {:#x} leaves out",
                       name(warp[lane]), name_of(request.call), to_string(request.place), source,
                       request.mask));
    }
    return warp[source].request.value;
  }

  void check_same_call(const Thread& self, const Thread& peer) {
    const WarpRequest& mine = self.request;
    const WarpRequest& other = peer.request;
    if (mine.call == other.call && mine.mask == other.mask && mine.width == other.width &&
        same_place(mine.place, other.place)) {
      return;
    }
    fail(fmt::format(
        "a warp is divided: {} is at {} of {} with mask {:#x}, {} at {} of {} with mask {:#x}",
        name(self), name_of(mine.call), to_string(mine.place), mine.mask, name(peer),
        name_of(other.call), to_string(other.place), other.mask));
  }

  void report_standstill() {
    const Thread* waiting = nullptr;
    const Thread* missing = nullptr;
    for (const Thread& thread : threads_) {
      if (thread.state == State::ended) {
        missing = &thread;
      } else if (waiting == nullptr) {
        waiting = &thread;
      }
    }
    for (const Thread& thread : threads_) {
      if (missing == nullptr && thread.state != waiting->state) missing = &thread;
    }
    report(fmt::format("{} waits at {}, and {} {}", name(*waiting), wait_of(*waiting),
                       missing == nullptr ? "nobody" : name(*missing),
                       missing == nullptr               ? "else can go on"
                       : missing->state == State::ended ? "has ended without coming there"
                                                        : "waits at " + wait_of(*missing)));
  }

  static std::string wait_of(const Thread& thread) {
    return fmt::format(
        "{} of {}",
        thread.state == State::at_barrier ? "__syncthreads" : name_of(thread.request.call),
        to_string(thread.place));
  }

  static std::string name(const Thread& thread) { return "thread " + to_string(thread.index); }

  // What this throws ends the calling thread; the others are ended by `abandon`.
  [[noreturn]] void fail(const std::string& what) {
    report(what);
    throw Abandoned{};
  }

  void report(const std::string& what) {
    fault_ = fmt::format("kernel {}, block {}: {}", symbol_name(grid_->kernel), to_string(blockIdx),
                         what);
  }

  [[noreturn]] void abandon() {
    for (Thread& thread : threads_) {
      if (thread.state == State::at_barrier || thread.state == State::at_warp_call ||
          thread.state == State::runnable) {
        Fiber* fiber = thread.fiber;
        go_on(thread);
        fiber->resume();
      }
    }
    throw KernelFault(std::exchange(fault_, {}));
  }

  const Grid* grid_ = nullptr;
  const std::function<void()>* body_ = nullptr;
  Random random_{0};
  std::vector<Thread> threads_;  // x varies fastest, as in a warp
  std::vector<Warp> warps_;
  std::vector<unsigned> order_;  // in which the threads start
  std::size_t next_ = 0;         // in order_
  std::size_t num_ended_ = 0;
  std::size_t num_at_barrier_ = 0;
  Place barrier_place_;
  std::vector<Thread*> runnable_;
  Thread* current_ = nullptr;
  std::string fault_;
  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<Fiber*> idle_;
};

// The OS thread that plays the device has one; it lives as long as the process, as fibers that
// wait for their next thread cannot be destroyed.
Block& block() {
  static Block* const kBlock = new Block;
  return *kBlock;
}

}  // namespace

void run_grid(const Grid& grid, const std::function<void()>& thread_body, std::uint64_t seed) {
  blockDim = grid.threads;
  gridDim = grid.blocks;
  block().start(grid, thread_body, seed);
  const std::uint64_t count = std::uint64_t{grid.blocks.x} * grid.blocks.y * grid.blocks.z;
  // Blocks run in any order: here from a random one on, by a step that leaves none out.
  Random random(seed);
  const std::uint64_t first = random.below(count);
  std::uint64_t step = 1 + random.below(count);
  while (std::gcd(step, count) != 1) step = 1 + random.below(count);
  for (std::uint64_t i = 0, number = first; i < count; ++i, number = (number + step) % count) {
    block().run({static_cast<unsigned>(number % grid.blocks.x),
                 static_cast<unsigned>(number / grid.blocks.x % grid.blocks.y),
                 static_cast<unsigned>(number / grid.blocks.x / grid.blocks.y)});
  }
}

void block_barrier(Place place) { block().barrier(place); }

std::uint64_t warp_collective(const WarpRequest& request) {
  return block().warp_collective(request);
}

}  // namespace on_host
