#include "parallel/shared_memory/shared_memory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <string>

#include "parallel/group/mpi_handle.h"

namespace redspine {
namespace {

bool all_agree(const ProcessGroup& group, bool mine) {
  return group.all_reduce(mine ? 0.0 : 1.0, ReduceOp::max) == 0.0;
}

bool is_on_one_host(const ProcessGroup& group) {
  MPI_Comm host = MPI_COMM_NULL;
  check_mpi(MPI_Comm_split_type(group.handle().communicator, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL,
                                &host),
            "MPI_Comm_split_type");
  int host_size = 0;
  check_mpi(MPI_Comm_size(host, &host_size), "MPI_Comm_size");
  check_mpi(MPI_Comm_free(&host), "MPI_Comm_free");
  return all_agree(group, host_size == group.size());
}

struct SharedFile {
  std::string name;
  int descriptor = -1;  // negative where there is none
};

// `size` bytes under a name that nobody had.
SharedFile create(std::size_t size) {
  static std::atomic<int> number = 0;
  SharedFile file;
  do {
    file.name = fmt::format("/redspine-{}-{}", getpid(), number++);
    file.descriptor =
        shm_open(file.name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR);
  } while (file.descriptor < 0 && errno == EEXIST);
  // Reserved now: a full file system would kill the process when a page is touched.
  if (file.descriptor >= 0 && posix_fallocate(file.descriptor, 0, static_cast<off_t>(size)) != 0) {
    shm_unlink(file.name.c_str());
    close(file.descriptor);
    file.descriptor = -1;
  }
  return file;
}

}  // namespace

std::unique_ptr<SharedMemory> SharedMemory::make(const ProcessGroup& group, std::size_t size) {
  if (!is_on_one_host(group)) return nullptr;

  const bool is_first = group.rank() == 0;
  SharedFile file = is_first ? create(size) : SharedFile{};
  file.name = group.all_gather(file.name).front();
  if (!is_first) {
    file.descriptor = shm_open(file.name.c_str(), O_RDWR | O_CLOEXEC, S_IRUSR | S_IWUSR);
  }
  void* mapping = MAP_FAILED;
  const bool is_open = file.descriptor >= 0;
  if (is_open) {
    mapping = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file.descriptor, 0);
    close(file.descriptor);
  }
  const bool is_made = all_agree(group, mapping != MAP_FAILED);
  if (is_first && is_open) shm_unlink(file.name.c_str());  // all have it who will
  if (!is_made) {
    if (mapping != MAP_FAILED) munmap(mapping, size);
    return nullptr;
  }
  return std::unique_ptr<SharedMemory>(
      new SharedMemory(std::span(static_cast<std::byte*>(mapping), size)));
}

SharedMemory::~SharedMemory() { munmap(bytes_.data(), bytes_.size()); }

}  // namespace redspine
