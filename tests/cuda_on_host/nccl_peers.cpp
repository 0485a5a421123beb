#include "tests/cuda_on_host/nccl_peers.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <set>
#include <vector>

namespace on_host {
namespace {

constexpr int kFirstTag = 0x4e434300;  // out of the way of other messages between the ranks
constexpr std::size_t kHostNameBytes = MPI_MAX_PROCESSOR_NAME;

// How a rank presents itself to the root of the meeting.
struct Introduction {
  Member member;
  int world_rank;
  char host[kHostNameBytes];
};

// Why these ranks cannot form a communicator, or empty.
std::string objection(const std::vector<Introduction>& introductions) {
  std::set<int> ranks;
  std::set<std::pair<std::string, int>> devices;
  for (const Introduction& introduction : introductions) {
    const Member& member = introduction.member;
    if (member.num_ranks != static_cast<int>(introductions.size())) {
      return fmt::format("rank {} expects {} ranks, not {}", member.rank, member.num_ranks,
                         introductions.size());
    }
    if (!ranks.insert(member.rank).second) return fmt::format("rank {} came twice", member.rank);
    if (!devices.emplace(introduction.host, member.device).second) {
      return fmt::format("duplicate GPU: rank {} uses device {}, as another rank of {} does",
                         member.rank, member.device, introduction.host);
    }
  }
  return {};
}

}  // namespace

int world_rank() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

struct Peers::Messages {
  explicit Messages(int num_ranks) : everyone(static_cast<std::size_t>(num_ranks)) {}

  Introduction mine{};
  std::vector<Introduction> everyone;
};

Peers::Peers(const Meeting& meeting, const Member& self)
    : meeting_(meeting), self_(self), messages_(std::make_unique<Messages>(self.num_ranks)) {}

Peers::~Peers() = default;

void Peers::meet() {
  thread_ = std::thread([this] { run(); });
}

void Peers::start(const Collective& collective) {
  const std::scoped_lock lock(mutex_);
  given_.push_back(collective);
  wake_.notify_one();
}

bool Peers::is_done() const {
  const std::scoped_lock lock(mutex_);
  return given_.empty() && !is_busy_;
}

ncclResult_t Peers::state() const {
  const std::scoped_lock lock(mutex_);
  return state_;
}

std::string Peers::failure() const {
  const std::scoped_lock lock(mutex_);
  return failure_;
}

void Peers::leave() {
  {
    const std::scoped_lock lock(mutex_);
    is_leaving_ = true;
    wake_.notify_one();
  }
  thread_.join();
}

void Peers::fail(ncclResult_t state, const std::string& text) {
  const std::scoped_lock lock(mutex_);
  state_ = state;
  failure_ = text;
}

void Peers::run() {
  if (meet_others()) {
    const std::scoped_lock lock(mutex_);
    state_ = ncclSuccess;
  }
  while (true) {
    Collective collective{};
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [this] { return !given_.empty() || is_leaving_; });
      if (given_.empty()) break;
      collective = given_.front();
      given_.pop_front();
      is_busy_ = true;
    }
    if (state() == ncclSuccess) run_collective(collective);
    const std::scoped_lock lock(mutex_);
    is_busy_ = false;
  }
  if (communicator_ == MPI_COMM_NULL) return;
  MPI_Request left = MPI_REQUEST_NULL;
  MPI_Ibarrier(communicator_, &left);
  wait_for(left);
  MPI_Comm_free(&communicator_);
}

// The root of the meeting hears who is there, and tells everyone; then MPI makes the communicator.
bool Peers::meet_others() {
  const int to_root = kFirstTag + 3 * meeting_.number;
  const int from_root = to_root + 1;
  const int creation = to_root + 2;
  const auto bytes = static_cast<int>(sizeof(Introduction));
  Introduction& mine = messages_->mine;
  std::vector<Introduction>& everyone = messages_->everyone;
  mine = {.member = self_, .world_rank = world_rank(), .host = {}};
  int length = 0;
  MPI_Get_processor_name(mine.host, &length);

  MPI_Request sent = MPI_REQUEST_NULL;
  MPI_Request received = MPI_REQUEST_NULL;
  MPI_Isend(&mine, bytes, MPI_BYTE, meeting_.root, to_root, MPI_COMM_WORLD, &sent);
  if (mine.world_rank == meeting_.root) {
    for (Introduction& introduction : everyone) {
      MPI_Irecv(&introduction, bytes, MPI_BYTE, MPI_ANY_SOURCE, to_root, MPI_COMM_WORLD, &received);
      wait_for(received);
    }
    std::sort(everyone.begin(), everyone.end(), [](const Introduction& a, const Introduction& b) {
      return a.member.rank < b.member.rank;
    });
    for (const Introduction& introduction : everyone) {
      if (introduction.world_rank == meeting_.root) continue;
      MPI_Send(everyone.data(), self_.num_ranks * bytes, MPI_BYTE, introduction.world_rank,
               from_root, MPI_COMM_WORLD);
    }
  } else {
    MPI_Irecv(everyone.data(), self_.num_ranks * bytes, MPI_BYTE, meeting_.root, from_root,
              MPI_COMM_WORLD, &received);
    wait_for(received);
  }
  wait_for(sent);
  const std::string why_not = objection(everyone);
  if (!why_not.empty()) {
    fail(ncclInvalidUsage, why_not);
    return false;
  }
  std::vector<int> world_ranks;
  for (const Introduction& introduction : everyone) world_ranks.push_back(introduction.world_rank);
  MPI_Group world = MPI_GROUP_NULL;
  MPI_Group group = MPI_GROUP_NULL;
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  MPI_Group_incl(world, self_.num_ranks, world_ranks.data(), &group);
  MPI_Comm_create_group(MPI_COMM_WORLD, group, creation, &communicator_);
  MPI_Group_free(&group);
  MPI_Group_free(&world);
  return true;
}

void Peers::run_collective(const Collective& collective) {
  const bool is_message =
      collective.kind == CollectiveKind::send || collective.kind == CollectiveKind::recv;
  if (!is_message) ++num_collectives_;
  const std::string differs = on_host::run(collective, num_collectives_, communicator_);
  if (!differs.empty()) fail(ncclInvalidUsage, differs);
}

}  // namespace on_host
