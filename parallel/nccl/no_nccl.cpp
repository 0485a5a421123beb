#include "parallel/nccl/nccl_communicator.h"
#include "tensor/error.h"

namespace redspine {

std::string nccl_version() { return ""; }

std::unique_ptr<Communicator> make_nccl_communicator(const ProcessGroup& /*group*/,
                                                     Device& /*device*/,
                                                     const NcclTimeouts& /*timeouts*/) {
  throw Error("NCCL is not in this build");
}

}  // namespace redspine
