#include "parallel/group/mpi_session.h"

#include <cstdlib>

#include "parallel/group/mpi_handle.h"
#include "tensor/address_space.h"
#include "tensor/error.h"

namespace redspine {
namespace {

// What Open MPI's threads and their heaps take at the start. With less it crashes now and then.
constexpr std::size_t kMpiBytes = std::size_t{256} << 20;

}  // namespace

MpiSession::MpiSession(int* argc, char*** argv) {
  if (!has_address_space(kMpiBytes)) {
    throw Error("MPI needs 256 MiB of address space, more than this process may have (ulimit -v)");
  }
  int provided = MPI_THREAD_SINGLE;
  check_mpi(MPI_Init_thread(argc, argv, MPI_THREAD_MULTIPLE, &provided), "MPI_Init_thread");
  // Streams run collectives in threads of their own.
  if (provided < MPI_THREAD_MULTIPLE) {
    throw Error("this MPI library was built without MPI_THREAD_MULTIPLE, which is needed");
  }
  world_ = std::make_unique<ProcessGroup>(std::make_unique<ProcessGroup::Handle>(MPI_COMM_WORLD));
  MPI_Comm host = MPI_COMM_NULL;
  check_mpi(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host),
            "MPI_Comm_split_type");
  check_mpi(MPI_Comm_rank(host, &local_rank_), "MPI_Comm_rank");
  check_mpi(MPI_Comm_size(host, &local_size_), "MPI_Comm_size");
  check_mpi(MPI_Comm_free(&host), "MPI_Comm_free");
}

MpiSession::~MpiSession() {
  world_.reset();
  MPI_Finalize();
}

void MpiSession::abort(int exit_code) {
  MPI_Abort(MPI_COMM_WORLD, exit_code);
  std::abort();  // MPI_Abort does not return, but is not declared so
}

std::string MpiSession::library_version() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  check_mpi(MPI_Get_library_version(text, &length), "MPI_Get_library_version");
  const std::string version(text, static_cast<std::size_t>(length));
  return version.substr(0, version.find_first_of(",\n"));
}

}  // namespace redspine
