// Collectives between ranks; and ranks that call differently, which are told so and do not hang.
#include <cuda_bf16.h>
#include <gmock/gmock.h>
#include <nccl.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <thread>

#include "tests/cuda_on_host/device_fixture.h"
#include "tests/support/mpi_main.h"

namespace redspine {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::world;

class NcclOnHost : public CudaOnHost {
 protected:
  NcclOnHost() {
    setenv("REDSPINE_ON_HOST_DEVICES", std::to_string(world().size()).c_str(), 1);
    cudaSetDevice(world().rank());
  }

  static ncclUniqueId common_id() {
    ncclUniqueId id{};
    if (world().rank() == 0) {
      EXPECT_EQ(ncclGetUniqueId(&id), ncclSuccess);
    }
    const std::string bytes = world().all_gather(std::string(id.internal, sizeof id)).front();
    std::memcpy(&id, bytes.data(), sizeof id);
    return id;
  }

  static ncclComm_t connect(ncclResult_t expected = ncclSuccess) {
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    ncclComm_t communicator = nullptr;
    EXPECT_EQ(
        ncclCommInitRankConfig(&communicator, world().size(), common_id(), world().rank(), &config),
        ncclInProgress);
    EXPECT_EQ(finish(communicator), expected);
    return communicator;
  }

  static ncclResult_t finish(ncclComm_t communicator) {
    ncclResult_t state = ncclInProgress;
    while (state == ncclInProgress) {
      usleep(1000);
      EXPECT_EQ(ncclCommGetAsyncError(communicator, &state), ncclSuccess);
    }
    return state;
  }

  // In place over the first `count` elements; returns when NCCL has taken the call.
  ncclResult_t all_reduce(const DeviceArray<float>& values, std::size_t count,
                          ncclComm_t communicator) const {
    const ncclResult_t result = ncclAllReduce(values.get(), values.get(), count, ncclFloat32,
                                              ncclSum, communicator, stream);
    return result == ncclInProgress ? finish(communicator) : result;
  }
};

TEST_F(NcclOnHost, SumsAndMaximaReachEveryRank) {
  const ncclComm_t communicator = connect();
  const auto rank = static_cast<float>(world().rank());
  const auto size = static_cast<float>(world().size());
  const DeviceArray<float> values(std::vector<float>{1.0F, rank, -rank});
  EXPECT_EQ(all_reduce(values, 3, communicator), ncclSuccess);
  ASSERT_EQ(outcome(), "");
  const float sum = size * (size - 1) / 2;
  EXPECT_EQ(values.values(), (std::vector<float>{size, sum, -sum}));

  const DeviceArray<__nv_bfloat16> narrow(
      std::vector<__nv_bfloat16>{__float2bfloat16_rn(1.5F), __float2bfloat16_rn(rank)});
  for (const ncclRedOp_t op : {ncclSum, ncclMax}) {
    EXPECT_EQ(ncclAllReduce(narrow.get(), narrow.get(), 2, ncclBfloat16, op, communicator, stream),
              ncclInProgress);
    EXPECT_EQ(finish(communicator), ncclSuccess);
  }
  ASSERT_EQ(outcome(), "");
  EXPECT_EQ(__bfloat162float(narrow.values()[0]), 1.5F * size);
  EXPECT_EQ(__bfloat162float(narrow.values()[1]), sum);
  EXPECT_EQ(ncclCommDestroy(communicator), ncclSuccess);
}

TEST_F(NcclOnHost, ACallThatWasNotTakenYetForbidsTheNext) {
  const ncclComm_t communicator = connect();
  const DeviceArray<float> values(std::vector<float>{1.0F});
  EXPECT_EQ(
      ncclAllReduce(values.get(), values.get(), 1, ncclFloat32, ncclSum, communicator, stream),
      ncclInProgress);
  EXPECT_EQ(
      ncclAllReduce(values.get(), values.get(), 1, ncclFloat32, ncclSum, communicator, stream),
      ncclInvalidUsage);
  EXPECT_EQ(finish(communicator), ncclSuccess);
  ASSERT_EQ(outcome(), "");
  ncclCommDestroy(communicator);
}

TEST_F(NcclOnHost, ARankWithAnotherCountIsNamedAndNobodyHangs) {
  const ncclComm_t communicator = connect();
  const DeviceArray<float> values(std::vector<float>(8, 1.0F));
  const std::size_t mine = world().rank() == 1 ? 7 : 8;
  EXPECT_EQ(all_reduce(values, mine, communicator), ncclSuccess);  // NCCL itself cannot know yet
  const std::string other = world().rank() == 1 ? "of 8 float32" : "rank 1 calls";
  EXPECT_THAT(outcome(), AllOf(HasSubstr("number 1 of 7 float32"), HasSubstr(other)));
  EXPECT_EQ(finish(communicator), ncclInvalidUsage);
  EXPECT_THAT(ncclGetLastError(communicator), HasSubstr("of 7 float32"));
  EXPECT_EQ(all_reduce(values, 8, communicator), ncclInvalidUsage);
  ncclCommDestroy(communicator);
}

TEST_F(NcclOnHost, RanksWithAnotherOrderAreNamed) {
  const ncclComm_t communicator = connect();
  const DeviceArray<float> values(std::vector<float>(8, 1.0F));
  EXPECT_EQ(all_reduce(values, world().rank() == 0 ? 4 : 8, communicator), ncclSuccess);
  all_reduce(values, world().rank() == 0 ? 8 : 4, communicator);
  EXPECT_THAT(outcome(), HasSubstr("number 1 of 4 float32"));
  ncclCommDestroy(communicator);
}

TEST_F(NcclOnHost, RanksWithAnotherTypeAreNamed) {
  const ncclComm_t communicator = connect();
  const DeviceArray<double> values(std::vector<double>(8, 1.0));
  const ncclDataType_t type = world().rank() == 0 ? ncclFloat64 : ncclInt64;
  EXPECT_EQ(ncclAllReduce(values.get(), values.get(), 8, type, ncclSum, communicator, stream),
            ncclInProgress);
  EXPECT_EQ(finish(communicator), ncclSuccess);
  EXPECT_THAT(outcome(), AllOf(HasSubstr("8 float64"), HasSubstr("8 int64")));
  ncclCommDestroy(communicator);
}

TEST_F(NcclOnHost, AnotherKindOfCallIsNamed) {
  const ncclComm_t communicator = connect();
  const DeviceArray<float> values(std::vector<float>(8, 1.0F));
  if (world().rank() == 0) {
    EXPECT_EQ(ncclBroadcast(values.get(), values.get(), 8, ncclFloat32, 0, communicator, stream),
              ncclInProgress);
    EXPECT_EQ(finish(communicator), ncclSuccess);
  } else {
    EXPECT_EQ(all_reduce(values, 8, communicator), ncclSuccess);
  }
  EXPECT_THAT(outcome(), AllOf(HasSubstr("broadcast from 0 number 1 of 8 float32"),
                               HasSubstr("all-reduce (sum) number 1 of 8 float32")));
  ncclCommDestroy(communicator);
}

TEST_F(NcclOnHost, AMessageOfAnotherLengthIsNamedByTheRankThatReceives) {
  const ncclComm_t communicator = connect();
  const DeviceArray<float> values(std::vector<float>(8, 1.0F));
  if (world().rank() == 0) {
    EXPECT_EQ(ncclSend(values.get(), 8, ncclFloat32, 1, communicator, stream), ncclInProgress);
    EXPECT_EQ(finish(communicator), ncclSuccess);
    EXPECT_EQ(outcome(), "");
  } else if (world().rank() == 1) {
    EXPECT_EQ(ncclRecv(values.get(), 7, ncclFloat32, 0, communicator, stream), ncclInProgress);
    EXPECT_EQ(finish(communicator), ncclSuccess);
    EXPECT_THAT(outcome(), AllOf(HasSubstr("recv from 0"), HasSubstr("of 7 float32"),
                                 HasSubstr("send to 1"), HasSubstr("of 8 float32")));
  }
  ncclCommDestroy(communicator);
}

TEST_F(NcclOnHost, TheCallsOfAGroupAreInProgressFromItsEndOn) {
  const ncclComm_t communicator = connect();
  std::vector<float> mine(static_cast<std::size_t>(world().size()), -1.0F);
  mine[static_cast<std::size_t>(world().rank())] = static_cast<float>(world().rank());
  const DeviceArray<float> values(mine);
  EXPECT_EQ(ncclGroupStart(), ncclSuccess);
  for (int root = 0; root < world().size(); ++root) {
    float* value = values.get() + root;
    EXPECT_EQ(ncclBroadcast(value, value, 1, ncclFloat32, root, communicator, stream), ncclSuccess);
  }
  EXPECT_EQ(ncclGroupEnd(), ncclInProgress);
  EXPECT_EQ(all_reduce(values, 1, communicator), ncclInvalidUsage);
  EXPECT_EQ(finish(communicator), ncclSuccess);
  ASSERT_EQ(outcome(), "");
  for (int rank = 0; rank < world().size(); ++rank) {
    EXPECT_EQ(values.values()[static_cast<std::size_t>(rank)], static_cast<float>(rank));
  }
  EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage);
  ncclCommDestroy(communicator);
}

TEST_F(NcclOnHost, MemoryThatDoesNotHoldAllSharesIsRefused) {
  const ncclComm_t communicator = connect();
  const DeviceArray<float> values(std::vector<float>(8, 1.0F));
  EXPECT_EQ(ncclAllGather(values.get(), values.get(), 8, ncclFloat32, communicator, stream),
            ncclInvalidArgument);
  ncclCommDestroy(communicator);
}

TEST_F(NcclOnHost, TwoRanksOnOneDeviceAreRefused) {
  setenv("REDSPINE_ON_HOST_DEVICES", "1", 1);
  cudaSetDevice(0);
  const ncclComm_t communicator = connect(ncclInvalidUsage);
  EXPECT_THAT(ncclGetLastError(communicator), HasSubstr("duplicate GPU"));
  ncclCommDestroy(communicator);
}

TEST_F(NcclOnHost, MemoryOfTheHostIsRefused) {
  const ncclComm_t communicator = connect();
  float host = 0.0F;
  EXPECT_EQ(ncclAllReduce(&host, &host, 1, ncclFloat32, ncclSum, communicator, stream),
            ncclInvalidArgument);
  ncclCommDestroy(communicator);
}

TEST_F(NcclOnHost, TwoThreadsAtOnceAreRefused) {
  const ncclComm_t communicator = connect();
  setenv("REDSPINE_ON_HOST_NCCL_CALL_MS", "20", 1);
  const auto poll = [communicator] {
    ncclResult_t state = ncclSuccess;
    ncclCommGetAsyncError(communicator, &state);
  };
  std::thread other(poll);
  poll();
  other.join();
  unsetenv("REDSPINE_ON_HOST_NCCL_CALL_MS");
  EXPECT_EQ(finish(communicator), ncclInvalidUsage);
  EXPECT_THAT(ncclGetLastError(communicator), HasSubstr("two threads"));
  ncclCommDestroy(communicator);
}

}  // namespace
}  // namespace redspine
