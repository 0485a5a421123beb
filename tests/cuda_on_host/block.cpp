#include "tests/cuda_on_host/block.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "tests/cuda_on_host/fiber.h"
#include "tests/cuda_on_host/random.h"
#include "tests/cuda_on_host/shared_memory.h"
#include "tests/cuda_on_host/symbol.h"
#include "tests/cuda_on_host/warp.h"

uint3 threadIdx{};
uint3 blockIdx{};
dim3 blockDim;
dim3 gridDim;

namespace on_host {
namespace {

constexpr unsigned kLanes = 32;

// Ends a thread whose block has a fault already.
struct Abandoned {};

class Block {
 public:
  void start(const Grid& grid, const std::function<void()>& body, std::uint64_t seed) {
    grid_ = &grid;
    body_ = &body;
    random_ = Random(seed);
    const unsigned count = grid.threads.x * grid.threads.y * grid.threads.z;
    threads_.resize(count);
    warps_.assign((count + kLanes - 1) / kLanes, {});
    for (unsigned i = 0; i < count; ++i) {
      threads_[i].index = {i % grid.threads.x, i / grid.threads.x % grid.threads.y,
                           i / (grid.threads.x * grid.threads.y)};
      warps_[i / kLanes].existing |= 1U << i % kLanes;
    }
  }

  void run(uint3 index) {
    blockIdx = index;
    warp_ = random_.below(warps_.size());
    for (Warp& warp : warps_) {
      warp = {.existing = warp.existing, .not_started = warp.existing};
    }
    num_at_barrier_ = 0;
    num_ended_ = 0;
    shared_memory_begin(grid_->shared_bytes);
    go_on(main_);
    if (fault_.empty() && num_ended_ < threads_.size()) report_standstill();
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
      for (Warp& warp : warps_) warp.runnable |= std::exchange(warp.at_barrier, 0);
      return;
    }
    self.place = place;
    warps_[number_of(self) / kLanes].at_barrier |= 1U << number_of(self) % kLanes;
    wait(self);
  }

  std::uint64_t warp_collective(const WarpRequest& request) {
    Thread& self = *current_;
    const unsigned lane = number_of(self) % kLanes;
    const unsigned bit = 1U << lane;
    Warp& warp = warps_[number_of(self) / kLanes];
    Thread* lanes = &self - lane;
    self.request = request;
    check_mask(self, warp, bit);
    const unsigned others = request.mask & ~bit;
    const unsigned present = others & warp.at_call;
    if (present != others) {
      // One of those who wait for this lane stands for all: at the end each is compared.
      if (present != 0) {
        const Thread& peer = lanes[std::countr_zero(present)];
        if ((peer.request.mask & bit) != 0) check_same_call(self, peer);
      }
      warp.at_call |= bit;
      wait(self);
      return self.result;
    }
    for (unsigned rest = others; rest != 0; rest &= rest - 1) {
      check_same_call(self, lanes[std::countr_zero(rest)]);
    }
    for (unsigned rest = request.mask; rest != 0; rest &= rest - 1) {
      const auto other = static_cast<unsigned>(std::countr_zero(rest));
      lanes[other].result = result(lanes, other);
    }
    warp.at_call &= ~others;
    warp.runnable |= others;
    return self.result;
  }

 private:
  // A fiber runs threads from start to end, until one of them blocks in it.
  void fiber_body(Fiber& self) {
    while (true) {
      Thread& thread = *std::exchange(to_start_, nullptr);
      thread.fiber = &self;
      try {
        (*body_)();
      } catch (const Abandoned&) {  // NOLINT(bugprone-empty-catch): the fault is told already
      } catch (const std::exception& error) {
        if (fault_.empty()) report(fmt::format("{} threw: {}", name(thread), error.what()));
      }
      warps_[number_of(thread) / kLanes].ended |= 1U << number_of(thread) % kLanes;
      ++num_ended_;
      if (choose_next() && to_start_ != nullptr) continue;
      idle_.push_back(&self);
      self.switch_to(next_fiber());
    }
  }

  // Chooses the thread that goes on: of the current warp, or when that can't, of a random one.
  // False where none can, or where none shall since there is a fault.
  bool choose_next() {
    current_ = nullptr;
    if (!fault_.empty()) return false;
    const std::uint64_t random = random_.next();
    std::size_t number = warp_;
    if (!can_go_on(warps_[number])) {
      number = (random >> 32) * warps_.size() >> 32;
      for (std::size_t tried = 0; !can_go_on(warps_[number]); ++tried) {
        if (tried == warps_.size()) return false;
        number = (number + 1) % warps_.size();
      }
    }
    Warp& warp = warps_[number];
    const unsigned candidates = warp.runnable | warp.not_started;
    const auto first = static_cast<int>(random % kLanes);
    const unsigned lane = (static_cast<unsigned>(std::countr_zero(std::rotr(candidates, first))) +
                           static_cast<unsigned>(first)) %
                          kLanes;
    const unsigned bit = 1U << lane;
    warp_ = number;
    current_ = &threads_[number * kLanes + lane];
    threadIdx = current_->index;
    if ((warp.not_started & bit) != 0) to_start_ = current_;
    warp.not_started &= ~bit;
    warp.runnable &= ~bit;
    return true;
  }

  static bool can_go_on(const Warp& warp) { return (warp.runnable | warp.not_started) != 0; }

  // Where the thread that was chosen goes on; without one, where the block was started.
  Fiber& next_fiber() {
    if (current_ == nullptr) return main_;
    return to_start_ != nullptr ? idle_fiber() : *current_->fiber;
  }

  // Leaves `from` for the thread that is chosen.
  void go_on(Fiber& from) {
    choose_next();
    from.switch_to(next_fiber());
  }

  void wait(Thread& self) {
    go_on(*self.fiber);
    if (!fault_.empty()) throw Abandoned{};
  }

  Fiber& idle_fiber() {
    if (idle_.empty()) {
      // The fiber learns which one it is when it starts, which is after its creation.
      auto slot = std::make_shared<Fiber*>(nullptr);
      fibers_.push_back(std::make_unique<Fiber>([this, slot] { fiber_body(**slot); }));
      *slot = fibers_.back().get();
      return *fibers_.back();
    }
    Fiber* fiber = idle_.back();
    idle_.pop_back();
    return *fiber;
  }

  // May `self`, lane `bit` of its warp, call a collective with this mask at all?
  void check_mask(const Thread& self, const Warp& warp, unsigned bit) {
    const WarpRequest& request = self.request;
    if ((request.mask & bit) == 0) {
      fail(fmt::format("{} is not in the mask {:#x} of its {}", name(self), request.mask,
                       to_string(request)));
    }
    if ((request.mask & ~warp.existing) != 0) {
      fail(fmt::format("{} calls {} with mask {:#x}, but its warp has {} lanes", name(self),
                       to_string(request), request.mask, std::popcount(warp.existing)));
    }
    if ((request.mask & warp.ended) != 0) {
      fail(fmt::format("{} waits at {} for lane {}, which has ended", name(self),
                       to_string(request), std::countr_zero(request.mask & warp.ended)));
    }
  }

  void check_same_call(const Thread& self, const Thread& peer) {
    if (same_call(self.request, peer.request)) return;
    fail(fmt::format("a warp is divided: {} is at {} with mask {:#x}, {} at {} with mask {:#x}",
                     name(self), to_string(self.request), self.request.mask, name(peer),
                     to_string(peer.request), peer.request.mask));
  }

  std::uint64_t result(const Thread* lanes, unsigned lane) {
    const WarpRequest& request = lanes[lane].request;
    if (request.call == WarpCall::ballot) {
      std::uint64_t votes = 0;
      for (unsigned rest = request.mask; rest != 0; rest &= rest - 1) {
        const int other = std::countr_zero(rest);
        votes |= lanes[other].request.value << other;
      }
      return votes;
    }
    const unsigned source = source_lane(request, lane);
    if ((request.mask >> source & 1U) == 0) {
      fail(fmt::format("{} reads by {} from lane {}, which mask {:#x} leaves out",
                       name(lanes[lane]), to_string(request), source, request.mask));
    }
    return lanes[source].request.value;
  }

  // Nobody can go on, but not all have ended: who waits, and who does not come?
  void report_standstill() {
    const Thread* at_barrier = find(&Warp::at_barrier);
    const Thread* at_call = find(&Warp::at_call);
    const Thread* ended = find(&Warp::ended);
    const Thread& waiting = at_barrier != nullptr ? *at_barrier : *at_call;
    const std::string where = at_barrier != nullptr
                                  ? "__syncthreads of " + to_string(at_barrier->place)
                                  : to_string(at_call->request);
    std::string missing = "nobody else can go on";
    if (ended != nullptr) {
      missing = name(*ended) + " has ended without coming there";
    } else if (at_barrier != nullptr && at_call != nullptr) {
      missing = fmt::format("{} waits at {}", name(*at_call), to_string(at_call->request));
    }
    report(fmt::format("{} waits at {}, and {}", name(waiting), where, missing));
  }

  // The first thread in this set of its warp, or null.
  const Thread* find(unsigned Warp::*set) const {
    for (std::size_t i = 0; i < warps_.size(); ++i) {
      const unsigned lanes = warps_[i].*set;
      if (lanes != 0) return &threads_[i * kLanes + static_cast<unsigned>(std::countr_zero(lanes))];
    }
    return nullptr;
  }

  unsigned number_of(const Thread& thread) const {
    return static_cast<unsigned>(&thread - threads_.data());
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
    for (std::size_t i = 0; i < threads_.size(); ++i) {
      const Warp& warp = warps_[i / kLanes];
      const unsigned bit = 1U << i % kLanes;
      if (((warp.at_barrier | warp.at_call | warp.runnable) & bit) == 0) continue;
      current_ = &threads_[i];
      main_.switch_to(*current_->fiber);
    }
    throw KernelFault(std::exchange(fault_, {}));
  }

  const Grid* grid_ = nullptr;
  const std::function<void()>* body_ = nullptr;
  Random random_{0};
  std::vector<Thread> threads_;  // x varies fastest, as in a warp
  std::vector<Warp> warps_;
  std::size_t warp_ = 0;        // that ran last
  Thread* current_ = nullptr;   // that runs
  Thread* to_start_ = nullptr;  // the current one, if it has not started
  std::size_t num_ended_ = 0;
  std::size_t num_at_barrier_ = 0;
  Place barrier_place_;
  std::string fault_;
  Fiber main_;  // where `run` was called
  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<Fiber*> idle_;
};

// The OS thread that plays the device has one; it lives as long as the process, as its fibers do.
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
