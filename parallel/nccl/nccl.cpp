// The functions of NCCL that are used, by those of the library that this machine has.

#include <nccl.h>

#include <string>

#include "tensor/loaded_library.h"

namespace {

using redspine::call;
using redspine::LoadedLibrary;

const LoadedLibrary& library() {
  static const LoadedLibrary opened("libnccl.so." + std::to_string(NCCL_MAJOR), "run.collectives",
                                    "mpi");
  return opened;
}

}  // namespace

extern "C" {

ncclResult_t ncclGetVersion(int* version) {
  return call<&ncclGetVersion>(library, "ncclGetVersion", version);
}

const char* ncclGetErrorString(ncclResult_t result) {
  return call<&ncclGetErrorString>(library, "ncclGetErrorString", result);
}

const char* ncclGetLastError(ncclComm_t communicator) {
  return call<&ncclGetLastError>(library, "ncclGetLastError", communicator);
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  return call<&ncclGetUniqueId>(library, "ncclGetUniqueId", id);
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* communicator, int num_ranks, ncclUniqueId id,
                                    int rank, ncclConfig_t* config) {
  return call<&ncclCommInitRankConfig>(library, "ncclCommInitRankConfig", communicator, num_ranks,
                                       id, rank, config);
}

ncclResult_t ncclCommDestroy(ncclComm_t communicator) {
  return call<&ncclCommDestroy>(library, "ncclCommDestroy", communicator);
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t communicator, ncclResult_t* state) {
  return call<&ncclCommGetAsyncError>(library, "ncclCommGetAsyncError", communicator, state);
}

ncclResult_t ncclAllReduce(const void* from, void* to, std::size_t count, ncclDataType_t type,
                           ncclRedOp_t op, ncclComm_t communicator, cudaStream_t stream) {
  return call<&ncclAllReduce>(library, "ncclAllReduce", from, to, count, type, op, communicator,
                              stream);
}

ncclResult_t ncclReduceScatter(const void* from, void* to, std::size_t count, ncclDataType_t type,
                               ncclRedOp_t op, ncclComm_t communicator, cudaStream_t stream) {
  return call<&ncclReduceScatter>(library, "ncclReduceScatter", from, to, count, type, op,
                                  communicator, stream);
}

ncclResult_t ncclAllGather(const void* from, void* to, std::size_t count, ncclDataType_t type,
                           ncclComm_t communicator, cudaStream_t stream) {
  return call<&ncclAllGather>(library, "ncclAllGather", from, to, count, type, communicator,
                              stream);
}

ncclResult_t ncclReduce(const void* from, void* to, std::size_t count, ncclDataType_t type,
                        ncclRedOp_t op, int root, ncclComm_t communicator, cudaStream_t stream) {
  return call<&ncclReduce>(library, "ncclReduce", from, to, count, type, op, root, communicator,
                           stream);
}

ncclResult_t ncclBroadcast(const void* from, void* to, std::size_t count, ncclDataType_t type,
                           int root, ncclComm_t communicator, cudaStream_t stream) {
  return call<&ncclBroadcast>(library, "ncclBroadcast", from, to, count, type, root, communicator,
                              stream);
}

ncclResult_t ncclSend(const void* from, std::size_t count, ncclDataType_t type, int peer,
                      ncclComm_t communicator, cudaStream_t stream) {
  return call<&ncclSend>(library, "ncclSend", from, count, type, peer, communicator, stream);
}

ncclResult_t ncclRecv(void* to, std::size_t count, ncclDataType_t type, int peer,
                      ncclComm_t communicator, cudaStream_t stream) {
  return call<&ncclRecv>(library, "ncclRecv", to, count, type, peer, communicator, stream);
}

ncclResult_t ncclGroupStart() { return call<&ncclGroupStart>(library, "ncclGroupStart"); }

ncclResult_t ncclGroupEnd() { return call<&ncclGroupEnd>(library, "ncclGroupEnd"); }

}  // extern "C"
