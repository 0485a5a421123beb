// The ranks of one NCCL communicator, as one of them sees them: they meet through a place that a
// unique id names, then run collectives over MPI, each checked against what the others call.
#pragma once

#include <mpi.h>
#include <nccl.h>

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "tests/cuda_on_host/nccl_collective.h"

namespace on_host {

/// What a unique id stands for.
struct Meeting {
  int root;    // rank of MPI_COMM_WORLD that made the id
  int number;  // of its ids
};

struct Member {
  int rank;
  int num_ranks;
  int device;
};

int world_rank();

class Peers {
 public:
  Peers(const Meeting& meeting, const Member& self);
  ~Peers();

  /// Starts the thread, which first waits for the other ranks.
  void meet();

  /// The device's side: one collective at a time.
  void start(const Collective& collective);
  bool is_done() const;

  int num_ranks() const { return self_.num_ranks; }
  ncclResult_t state() const;
  std::string failure() const;
  void fail(ncclResult_t state, const std::string& text);

  /// When all collectives are done: waits for the other ranks to leave, too.
  void leave();

 private:
  void run();
  bool meet_others();
  void run_collective(const Collective& collective);

  /// What goes to the other ranks and comes from them.
  struct Messages;

  const Meeting meeting_;
  const Member self_;
  MPI_Comm communicator_ = MPI_COMM_NULL;
  std::size_t num_collectives_ = 0;
  std::unique_ptr<Messages> messages_;
  std::thread thread_;

  mutable std::mutex mutex_;  // of everything below
  std::condition_variable wake_;
  std::deque<Collective> given_;
  bool is_busy_ = false;
  bool is_leaving_ = false;
  ncclResult_t state_ = ncclInProgress;
  std::string failure_;
};

}  // namespace on_host
