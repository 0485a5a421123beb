#include "tests/support/mpi_main.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <vector>

#include "parallel/group/mpi_session.h"

namespace redspine::testing {
namespace {

const MpiSession* session = nullptr;
std::vector<std::string> temporary_directories;

// Rank 0 prints as usual, the others only what failed.
class FailurePrinter : public ::testing::EmptyTestEventListener {
  void OnTestPartResult(const ::testing::TestPartResult& result) override {
    if (!result.failed()) return;
    fmt::print(stderr, "[rank {}] {}:{}\n{}\n", world().rank(),
               result.file_name() == nullptr ? "?" : result.file_name(), result.line_number(),
               result.message());
  }
};

}  // namespace

const ProcessGroup& world() { return session->world(); }

std::string shared_temporary_directory() {
  const auto number = temporary_directories.size();
  std::string path = (std::filesystem::temp_directory_path() /
                      fmt::format("redspine_test_{}_{}", getpid(), number))
                         .string();
  path = world().all_gather(path).front();
  if (world().rank() == 0) std::filesystem::create_directories(path);
  temporary_directories.push_back(path);
  world().barrier();
  return path;
}

}  // namespace redspine::testing

int main(int argc, char** argv) {
  using namespace redspine::testing;
  const redspine::MpiSession mpi(&argc, &argv);
  session = &mpi;
  ::testing::InitGoogleTest(&argc, argv);
  // One rank that throws must end all of them.
  GTEST_FLAG_SET(catch_exceptions, false);
  if (world().rank() != 0) {
    auto& listeners = ::testing::UnitTest::GetInstance()->listeners();
    delete listeners.Release(listeners.default_result_printer());
    listeners.Append(new FailurePrinter);
  }
  try {
    const int result = RUN_ALL_TESTS();
    const double failed = world().all_reduce(result == 0 ? 0.0 : 1.0, redspine::ReduceOp::max);
    if (world().rank() == 0) {
      for (const std::string& path : temporary_directories) std::filesystem::remove_all(path);
    }
    return failed == 0.0 ? 0 : 1;
  } catch (const std::exception& error) {
    fmt::print(stderr, "[rank {}] {}\n", world().rank(), error.what());
    mpi.abort(1);
  }
}
