// MPI from initialisation to finalisation: one object in main, before anything else that talks to
// other ranks. Its construction and destruction are collective.
#pragma once

#include <memory>
#include <string>

#include "parallel/group/process_group.h"

namespace redspine {

class MpiSession {
 public:
  MpiSession(int* argc, char*** argv);
  MpiSession(const MpiSession&) = delete;
  MpiSession& operator=(const MpiSession&) = delete;
  /// Finalises MPI. Must not run while an exception unwinds on one rank alone: call abort() then.
  ~MpiSession();

  const ProcessGroup& world() const { return *world_; }
  /// This rank among those of the same host, and how many they are.
  int local_rank() const { return local_rank_; }
  int local_size() const { return local_size_; }

  /// Ends every rank of the job at once; the launcher reports `exit_code`.
  [[noreturn]] static void abort(int exit_code);

  /// The MPI library in one line.
  static std::string library_version();

 private:
  std::unique_ptr<ProcessGroup> world_;
  int local_rank_ = 0;
  int local_size_ = 1;
};

}  // namespace redspine
