#include "tests/cuda_on_host/nccl_collective.h"

#include <cuda_bf16.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <vector>

namespace on_host {
namespace {

// What a rank is about to do; all must say the same.
struct Announcement {
  std::size_t number;
  std::size_t count;
  CollectiveKind kind;
  int type;
  int op;
  int peer;

  bool operator==(const Announcement&) const = default;
};

const char* name_of(int type) {
  switch (type) {
    case ncclInt32:
      return "int32";
    case ncclInt64:
      return "int64";
    case ncclFloat32:
      return "float32";
    case ncclFloat64:
      return "float64";
    case ncclBfloat16:
      return "bfloat16";
    default:
      return "an unknown type";
  }
}

std::string name_of(const Announcement& announcement) {
  const char* op = announcement.op == ncclSum ? "sum" : "max";
  switch (announcement.kind) {
    case CollectiveKind::all_reduce:
      return fmt::format("all-reduce ({})", op);
    case CollectiveKind::reduce_scatter:
      return fmt::format("reduce-scatter ({})", op);
    case CollectiveKind::all_gather:
      return "all-gather";
    case CollectiveKind::reduce:
      return fmt::format("reduce ({}) to {}", op, announcement.peer);
    case CollectiveKind::broadcast:
      return fmt::format("broadcast from {}", announcement.peer);
    case CollectiveKind::send:
      return fmt::format("send to {}", announcement.peer);
    case CollectiveKind::recv:
      return fmt::format("recv from {}", announcement.peer);
  }
  return "an unknown call";
}

std::string to_string(const Announcement& announcement) {
  return fmt::format("{} number {} of {} {}", name_of(announcement), announcement.number,
                     announcement.count, name_of(announcement.type));
}

MPI_Datatype mpi_type(ncclDataType_t type) {
  switch (type) {
    case ncclInt32:
      return MPI_INT32_T;
    case ncclInt64:
      return MPI_INT64_T;
    case ncclFloat32:
      return MPI_FLOAT;
    case ncclFloat64:
      return MPI_DOUBLE;
    case ncclBfloat16:
      return MPI_UINT16_T;
  }
  return MPI_DATATYPE_NULL;
}

template <class Combine>
void combine_bf16(void* in, void* in_out, const int* count, const Combine& combine) {
  const auto* from = static_cast<const __nv_bfloat16*>(in);
  auto* to = static_cast<__nv_bfloat16*>(in_out);
  for (int i = 0; i < *count; ++i) {
    to[i] = __float2bfloat16_rn(combine(__bfloat162float(from[i]), __bfloat162float(to[i])));
  }
}

void sum_bf16(void* in, void* in_out, int* count, MPI_Datatype*) {
  combine_bf16(in, in_out, count, [](float a, float b) { return a + b; });
}

void max_bf16(void* in, void* in_out, int* count, MPI_Datatype*) {
  combine_bf16(in, in_out, count, [](float a, float b) { return std::max(a, b); });
}

// MPI's operation for a type and NCCL's, for as long as it is needed.
class Operation {
 public:
  Operation(ncclDataType_t type, ncclRedOp_t op)
      : is_own_(type == ncclBfloat16), op_(op == ncclSum ? MPI_SUM : MPI_MAX) {
    constexpr int kCommutes = 1;
    if (is_own_) MPI_Op_create(op == ncclSum ? sum_bf16 : max_bf16, kCommutes, &op_);
  }
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;
  ~Operation() {
    if (is_own_) MPI_Op_free(&op_);
  }
  MPI_Op get() const { return op_; }

 private:
  bool is_own_;
  MPI_Op op_;
};

// Asks every rank what it calls, and says where that is not the same.
std::string difference(const Announcement& mine, int rank, MPI_Comm communicator) {
  int num_ranks = 0;
  MPI_Comm_size(communicator, &num_ranks);
  std::vector<Announcement> all(static_cast<std::size_t>(num_ranks));
  MPI_Request exchanged = MPI_REQUEST_NULL;
  MPI_Iallgather(&mine, sizeof mine, MPI_BYTE, all.data(), sizeof mine, MPI_BYTE, communicator,
                 &exchanged);
  wait_for(exchanged);
  for (std::size_t other = 0; other < all.size(); ++other) {
    if (all[other] == mine) continue;
    return fmt::format("rank {} calls {}, rank {} calls {}", rank, to_string(mine), other,
                       to_string(all[other]));
  }
  return {};
}

void reduce_to(int root, const Collective& collective, int rank, MPI_Comm communicator) {
  const Operation op(collective.type, collective.op);
  const bool is_root = rank == root;
  const void* from = is_root && collective.from == collective.to ? MPI_IN_PLACE : collective.from;
  MPI_Request reduced = MPI_REQUEST_NULL;
  MPI_Ireduce(from, is_root ? collective.to : nullptr, static_cast<int>(collective.count),
              mpi_type(collective.type), op.get(), root, communicator, &reduced);
  wait_for(reduced);
}

void broadcast_from(int root, void* values, const Collective& collective, MPI_Comm communicator) {
  MPI_Request spread = MPI_REQUEST_NULL;
  MPI_Ibcast(values, static_cast<int>(collective.count), mpi_type(collective.type), root,
             communicator, &spread);
  wait_for(spread);
}

void reduce_scatter(const Collective& collective, MPI_Comm communicator) {
  const Operation op(collective.type, collective.op);
  std::vector<std::byte> share(collective.count * size_of(collective.type));
  MPI_Request reduced = MPI_REQUEST_NULL;
  MPI_Ireduce_scatter_block(collective.from, share.data(), static_cast<int>(collective.count),
                            mpi_type(collective.type), op.get(), communicator, &reduced);
  wait_for(reduced);
  std::memcpy(collective.to, share.data(), share.size());
}

void all_gather(const Collective& collective, MPI_Comm communicator) {
  const std::size_t bytes = collective.count * size_of(collective.type);
  const auto* share = static_cast<const std::byte*>(collective.from);
  const std::vector<std::byte> mine(share, share + bytes);
  MPI_Request gathered = MPI_REQUEST_NULL;
  MPI_Iallgather(mine.data(), static_cast<int>(bytes), MPI_BYTE, collective.to,
                 static_cast<int>(bytes), MPI_BYTE, communicator, &gathered);
  wait_for(gathered);
}

void send_bytes(const void* bytes, std::size_t count, int to, MPI_Comm communicator) {
  MPI_Request sent = MPI_REQUEST_NULL;
  MPI_Isend(bytes, static_cast<int>(count), MPI_BYTE, to, 0, communicator, &sent);
  wait_for(sent);
}

void receive_bytes(void* bytes, std::size_t count, int from, MPI_Comm communicator) {
  MPI_Request received = MPI_REQUEST_NULL;
  MPI_Irecv(bytes, static_cast<int>(count), MPI_BYTE, from, 0, communicator, &received);
  wait_for(received);
}

// The rank that receives takes what is sent in any case, so that the other one does not wait.
std::string run_message(const Collective& collective, const Announcement& mine, int rank,
                        MPI_Comm communicator) {
  const std::size_t bytes = collective.count * size_of(collective.type);
  if (collective.kind == CollectiveKind::send) {
    send_bytes(&mine, sizeof mine, collective.peer, communicator);
    send_bytes(collective.from, bytes, collective.peer, communicator);
    return {};
  }
  Announcement theirs{};
  receive_bytes(&theirs, sizeof theirs, collective.peer, communicator);
  if (theirs.count == mine.count && theirs.type == mine.type) {
    receive_bytes(collective.to, bytes, collective.peer, communicator);
    return {};
  }
  std::vector<std::byte> unwanted(theirs.count * size_of(static_cast<ncclDataType_t>(theirs.type)));
  receive_bytes(unwanted.data(), unwanted.size(), collective.peer, communicator);
  return fmt::format("rank {} calls {}, rank {} calls {}", rank, to_string(mine), collective.peer,
                     to_string(theirs));
}

}  // namespace

std::size_t size_of(ncclDataType_t type) {
  switch (type) {
    case ncclInt32:
    case ncclFloat32:
      return 4;
    case ncclInt64:
    case ncclFloat64:
      return 8;
    case ncclBfloat16:
      return 2;
  }
  return 0;
}

void wait_for(MPI_Request& request) {
  constexpr unsigned kPollMicroseconds = 50;
  int is_done = 0;
  while (MPI_Test(&request, &is_done, MPI_STATUS_IGNORE) == MPI_SUCCESS && is_done == 0) {
    usleep(kPollMicroseconds);
  }
}

std::string run(const Collective& collective, std::size_t number, MPI_Comm communicator) {
  int rank = 0;
  MPI_Comm_rank(communicator, &rank);
  Announcement mine{};  // its padding travels, too
  mine.number = number;
  mine.count = collective.count;
  mine.kind = collective.kind;
  mine.type = collective.type;
  mine.op = collective.op;
  mine.peer = collective.peer;
  if (collective.kind == CollectiveKind::send || collective.kind == CollectiveKind::recv) {
    return run_message(collective, mine, rank, communicator);
  }
  std::string differs = difference(mine, rank, communicator);
  if (!differs.empty()) return differs;
  switch (collective.kind) {
    case CollectiveKind::all_reduce:  // to one rank and from there to all: the same bits everywhere
      reduce_to(0, collective, rank, communicator);
      broadcast_from(0, collective.to, collective, communicator);
      break;
    case CollectiveKind::reduce_scatter:
      reduce_scatter(collective, communicator);
      break;
    case CollectiveKind::all_gather:
      all_gather(collective, communicator);
      break;
    case CollectiveKind::reduce:
      reduce_to(collective.peer, collective, rank, communicator);
      break;
    case CollectiveKind::broadcast:
      if (rank == collective.peer && collective.from != collective.to) {
        std::memcpy(collective.to, collective.from, collective.count * size_of(collective.type));
      }
      broadcast_from(collective.peer, collective.to, collective, communicator);
      break;
    case CollectiveKind::send:
    case CollectiveKind::recv:
      break;
  }
  return {};
}

}  // namespace on_host
