#include "parallel/group/process_group.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <limits>
#include <numeric>

#include "parallel/group/mpi_handle.h"
#include "tensor/error.h"

namespace redspine {

void check_mpi(int code, const char* call, const char* file, int line) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(code, text, &length);
  throw Error(
      fmt::format("{} failed: {}", call, std::string(text, static_cast<std::size_t>(length))), file,
      line);
}

ProcessGroup::Handle::Handle(MPI_Comm owned) : communicator(owned) {
  check_mpi(MPI_Comm_set_errhandler(communicator, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
}

ProcessGroup::Handle::~Handle() {
  int finalized = 0;
  MPI_Finalized(&finalized);
  if (communicator != MPI_COMM_WORLD && finalized == 0) MPI_Comm_free(&communicator);
}

ProcessGroup::ProcessGroup(std::unique_ptr<Handle> handle)
    : handle_(std::move(handle)), rank_(0), size_(1) {
  check_mpi(MPI_Comm_rank(handle_->communicator, &rank_), "MPI_Comm_rank");
  check_mpi(MPI_Comm_size(handle_->communicator, &size_), "MPI_Comm_size");
}

ProcessGroup::ProcessGroup(int rank, int size) : rank_(rank), size_(size) {}

ProcessGroup::ProcessGroup(ProcessGroup&&) noexcept = default;
ProcessGroup::~ProcessGroup() = default;

const ProcessGroup::Handle& ProcessGroup::handle() const {
  if (handle_) return *handle_;
  throw Error(
      fmt::format("rank {} of {} is only thought of: it has nobody to talk to", rank_, size_));
}

std::string ProcessGroup::host_name() {
  char name[HOST_NAME_MAX + 1];
  if (gethostname(name, sizeof(name)) != 0) throw Error("gethostname failed");
  return name;
}

void ProcessGroup::all_reduce(std::span<double> values, ReduceOp op) const {
  if (is_imagined()) {
    const double factor = op == ReduceOp::sum ? size_ : 1;
    for (double& value : values) value *= factor;
    return;
  }
  check_mpi(MPI_Allreduce(MPI_IN_PLACE, values.data(), static_cast<int>(values.size()), MPI_DOUBLE,
                          op == ReduceOp::sum ? MPI_SUM : MPI_MAX, handle().communicator),
            "MPI_Allreduce");
}

double ProcessGroup::all_reduce(double value, ReduceOp op) const {
  all_reduce(std::span<double>(&value, 1), op);
  return value;
}

std::uint64_t ProcessGroup::sum(std::uint64_t value) const {
  sum(std::span<std::uint64_t>(&value, 1));
  return value;
}

void ProcessGroup::sum(std::span<std::uint64_t> values) const {
  if (is_imagined()) {
    for (std::uint64_t& value : values) value *= static_cast<std::uint64_t>(size_);
    return;
  }
  check_mpi(MPI_Allreduce(MPI_IN_PLACE, values.data(), static_cast<int>(values.size()),
                          MPI_UINT64_T, MPI_SUM, handle().communicator),
            "MPI_Allreduce");
}

std::vector<std::string> ProcessGroup::all_gather(const std::string& bytes) const {
  const auto num_ranks = static_cast<std::size_t>(size_);
  if (is_imagined()) return std::vector<std::string>(num_ranks, bytes);
  std::vector<std::uint64_t> sizes(num_ranks);
  const std::uint64_t size = bytes.size();
  check_mpi(
      MPI_Allgather(&size, 1, MPI_UINT64_T, sizes.data(), 1, MPI_UINT64_T, handle().communicator),
      "MPI_Allgather");
  const std::uint64_t total = std::accumulate(sizes.begin(), sizes.end(), std::uint64_t{0});
  if (total > static_cast<std::uint64_t>(std::numeric_limits<int>::max())) {
    throw Error(fmt::format("{} bytes are more than one all-gather takes", total));
  }
  std::vector<int> counts(num_ranks);
  std::vector<int> offsets(num_ranks);
  int offset = 0;
  for (std::size_t r = 0; r < num_ranks; ++r) {
    counts[r] = static_cast<int>(sizes[r]);
    offsets[r] = offset;
    offset += counts[r];
  }
  std::string all(total, '\0');
  check_mpi(MPI_Allgatherv(bytes.data(), static_cast<int>(size), MPI_BYTE, all.data(),
                           counts.data(), offsets.data(), MPI_BYTE, handle().communicator),
            "MPI_Allgatherv");
  std::vector<std::string> parts;
  parts.reserve(num_ranks);
  for (std::size_t r = 0; r < num_ranks; ++r) {
    parts.push_back(all.substr(static_cast<std::size_t>(offsets[r]), sizes[r]));
  }
  return parts;
}

void ProcessGroup::barrier() const {
  if (!is_imagined()) check_mpi(MPI_Barrier(handle().communicator), "MPI_Barrier");
}

namespace {

// MPI counts are `int`; longer messages go in pieces of this many bytes.
constexpr std::size_t kMaxMessageBytes = std::size_t{1} << 30;

}  // namespace

void ProcessGroup::send(std::span<const std::byte> bytes, int to) const {
  while (!bytes.empty()) {
    const std::size_t count = std::min(bytes.size(), kMaxMessageBytes);
    check_mpi(
        MPI_Send(bytes.data(), static_cast<int>(count), MPI_BYTE, to, 0, handle().communicator),
        "MPI_Send");
    bytes = bytes.subspan(count);
  }
}

void ProcessGroup::receive(std::span<std::byte> bytes, int from) const {
  while (!bytes.empty()) {
    const std::size_t count = std::min(bytes.size(), kMaxMessageBytes);
    check_mpi(MPI_Recv(bytes.data(), static_cast<int>(count), MPI_BYTE, from, 0,
                       handle().communicator, MPI_STATUS_IGNORE),
              "MPI_Recv");
    bytes = bytes.subspan(count);
  }
}

void ProcessGroup::exchange(std::span<const Outgoing> outgoing,
                            std::span<const Incoming> incoming) const {
  std::vector<MPI_Request> requests;
  for (auto [bytes, from] : incoming) {
    while (!bytes.empty()) {
      const std::size_t count = std::min(bytes.size(), kMaxMessageBytes);
      check_mpi(MPI_Irecv(bytes.data(), static_cast<int>(count), MPI_BYTE, from, 0,
                          handle_->communicator, &requests.emplace_back()),
                "MPI_Irecv");
      bytes = bytes.subspan(count);
    }
  }
  for (auto [bytes, to] : outgoing) {
    while (!bytes.empty()) {
      const std::size_t count = std::min(bytes.size(), kMaxMessageBytes);
      check_mpi(MPI_Isend(bytes.data(), static_cast<int>(count), MPI_BYTE, to, 0,
                          handle_->communicator, &requests.emplace_back()),
                "MPI_Isend");
      bytes = bytes.subspan(count);
    }
  }
  check_mpi(MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE),
            "MPI_Waitall");
}

ProcessGroup ProcessGroup::split(int color) const {
  MPI_Comm part = MPI_COMM_NULL;
  check_mpi(MPI_Comm_split(handle().communicator, color, rank_, &part), "MPI_Comm_split");
  return ProcessGroup(std::make_unique<Handle>(part));
}

}  // namespace redspine
