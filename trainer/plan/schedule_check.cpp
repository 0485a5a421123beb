#include "trainer/plan/schedule_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <deque>
#include <iterator>
#include <map>
#include <tuple>
#include <utility>
#include <variant>

#include "tensor/error.h"

namespace redspine {
namespace {

std::size_t index(Stream stream) { return static_cast<std::size_t>(stream); }

std::string describe(const CollectiveCall& call) {
  return fmt::format("{} of {} {} along {} on stream {}", name_of(call.kind), call.count,
                     name_of(call.dtype), name_of(call.axis), index(call.stream));
}

// What stands on a stream: a call, or a place that another stream waits for, or waits at.
struct Signal {
  std::size_t number;
};
struct Wait {
  std::size_t number;
};
using Item = std::variant<CollectiveCall, Signal, Wait>;

struct Rank {
  std::array<std::deque<Item>, kNumStreams> streams;
  std::vector<bool> signals;
  bool is_queued = false;
};

Rank as_streams(const StepTrace& trace) {
  Rank rank;
  const auto add_order = [&rank](Stream first, Stream then) {
    if (first == then) return;
    rank.streams[index(first)].emplace_back(Signal{rank.signals.size()});
    rank.streams[index(then)].emplace_back(Wait{rank.signals.size()});
    rank.signals.push_back(false);
  };
  for (const StepEvent& event : trace) {
    if (const auto* call = std::get_if<CollectiveCall>(&event)) {
      rank.streams[index(call->stream)].emplace_back(*call);
    } else if (const auto* order = std::get_if<StreamOrder>(&event)) {
      add_order(order->first, order->then);
    } else if (const auto* wait = std::get_if<HostWait>(&event)) {
      // Whatever the host gives out later comes after.
      for (int stream = 0; stream < kNumStreams; ++stream) {
        add_order(wait->stream, static_cast<Stream>(stream));
      }
    }
  }
  return rank;
}

class Check {
 public:
  Check(const MeshShape& shape, const std::vector<StepTrace>& of_ranks) : shape_(shape) {
    for (const StepTrace& trace : of_ranks) ranks_.push_back(as_streams(trace));
  }

  void run() {
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) queue(rank);
    while (!queue_.empty()) {
      const std::size_t rank = queue_.front();
      queue_.pop_front();
      ranks_[rank].is_queued = false;
      advance(rank);
    }
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) expect_done(rank);
  }

 private:
  // The ranks of a communicator that have come to their next call on a stream.
  struct Meeting {
    std::vector<std::size_t> ranks;
    std::size_t number = 0;  // of the call
  };
  using Place = std::tuple<Axis, int, Stream>;  // the lowest of the ranks stands for them

  void queue(std::size_t rank) {
    if (std::exchange(ranks_[rank].is_queued, true)) return;
    queue_.push_back(rank);
  }

  void advance(std::size_t rank) {
    for (bool has_moved = true; has_moved;) {
      has_moved = false;
      for (std::size_t stream = 0; stream < kNumStreams; ++stream) {
        while (step(rank, stream)) has_moved = true;
      }
    }
  }

  // Whether the first item of a stream was done.
  bool step(std::size_t rank, std::size_t stream) {
    std::deque<Item>& items = ranks_[rank].streams[stream];
    if (items.empty()) return false;
    if (const auto* signal = std::get_if<Signal>(&items.front())) {
      ranks_[rank].signals[signal->number] = true;
    } else if (const auto* wait = std::get_if<Wait>(&items.front())) {
      if (!ranks_[rank].signals[wait->number]) return false;
    } else {
      arrive(rank, std::get<CollectiveCall>(items.front()));
      return false;  // meet() takes it away
    }
    items.pop_front();
    return true;
  }

  Place place_of(std::size_t rank, const CollectiveCall& call) const {
    return {call.axis, shape_.first_along(static_cast<int>(rank), call.axis), call.stream};
  }

  void arrive(std::size_t rank, const CollectiveCall& call) {
    Meeting& meeting = meetings_[place_of(rank, call)];
    if (std::ranges::find(meeting.ranks, rank) != meeting.ranks.end()) return;
    if (!meeting.ranks.empty()) {
      const std::size_t other = meeting.ranks.front();
      const auto& theirs =
          std::get<CollectiveCall>(ranks_[other].streams[index(call.stream)].front());
      if (call != theirs) {
        throw Error(fmt::format("call {}: rank {} makes {}, rank {} {}", meeting.number + 1, other,
                                describe(theirs), rank, describe(call)));
      }
    }
    meeting.ranks.push_back(rank);
    if (meeting.ranks.size() == static_cast<std::size_t>(shape_.size(call.axis))) {
      meet(meeting, index(call.stream));
    }
  }

  void meet(Meeting& meeting, std::size_t stream) {
    ++meeting.number;
    for (const std::size_t rank : meeting.ranks) {
      ranks_[rank].streams[stream].pop_front();
      queue(rank);
    }
    meeting.ranks.clear();
  }

  void expect_done(std::size_t rank) const {
    for (const std::deque<Item>& items : ranks_[rank].streams) {
      if (items.empty()) continue;
      const auto* call = std::get_if<CollectiveCall>(&items.front());
      if (call == nullptr) continue;
      const auto meeting = meetings_.find(place_of(rank, *call));
      throw Error(
          fmt::format("nothing goes on: rank {} waits in {}, call {}, where {} of {} ranks "
                      "have come",
                      rank, describe(*call), meeting->second.number + 1,
                      meeting->second.ranks.size(), shape_.size(call->axis)));
    }
  }

  MeshShape shape_;
  std::vector<Rank> ranks_;
  std::map<Place, Meeting> meetings_;
  std::deque<std::size_t> queue_;
};

}  // namespace

StepTrace communication_of(const StepTraces& step) {
  StepTrace all;
  step.for_each_part([&all](const StepTrace& part, std::int64_t times) {
    for (std::int64_t i = 0; i < times; ++i) {
      std::ranges::copy_if(part, std::back_inserter(all), [](const StepEvent& event) {
        return !std::holds_alternative<OperationCost>(event);
      });
    }
  });
  return all;
}

AxisTraffic traffic_of(const StepTrace& communication) {
  AxisTraffic traffic{};
  for (const StepEvent& event : communication) {
    const auto* call = std::get_if<CollectiveCall>(&event);
    if (call == nullptr) continue;
    const auto axis = std::ranges::find(kAxes, call->axis) - kAxes.begin();
    Traffic& along = traffic[static_cast<std::size_t>(axis)];
    ++along.num_calls;
    along.bytes += call->bytes();
  }
  return traffic;
}

AxisTraffic traffic_of(const StepTraces& step) {
  AxisTraffic sum{};
  step.for_each_part([&sum](const StepTrace& part, std::int64_t times) {
    const AxisTraffic of_part = traffic_of(part);
    for (std::size_t axis = 0; axis < kNumAxes; ++axis) {
      sum[axis].num_calls += times * of_part[axis].num_calls;
      sum[axis].bytes += times * of_part[axis].bytes;
    }
  });
  return sum;
}

void check_schedule(const MeshShape& shape, const std::vector<StepTrace>& of_ranks) {
  if (of_ranks.size() != static_cast<std::size_t>(shape.num_ranks())) {
    throw Error(
        fmt::format("the schedules of {} ranks for {}", of_ranks.size(), shape.num_ranks()));
  }
  Check(shape, of_ranks).run();
}

}  // namespace redspine
