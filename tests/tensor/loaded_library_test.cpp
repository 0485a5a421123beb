#include "tensor/loaded_library.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tensor/error.h"

namespace redspine {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

const LoadedLibrary& mathematics() {
  static const LoadedLibrary opened("libm.so.6", "run.device", "cpu");
  return opened;
}

// Stands for the functions that pass their arguments on.
double times_power_of_two(double x, int power) {
  return call<&times_power_of_two>(mathematics, "ldexp", x, power);
}

TEST(LoadedLibrary, PassesArgumentsAndResultsOn) {
  EXPECT_EQ(times_power_of_two(3.0, 2), 12.0);
  EXPECT_EQ(times_power_of_two(-5.0, -1), -2.5);
}

TEST(LoadedLibrary, ThatIsMissingIsTheKeysProblem) {
  try {
    const LoadedLibrary missing("libno_such.so.13", "run.device", "cpu");
    ADD_FAILURE() << "it was found";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), AllOf(StartsWith("run.device: needs a library that this machine "
                                               "lacks: libno_such.so.13: "),
                                    HasSubstr("; legal here: cpu")));
  }
}

TEST(LoadedLibrary, WithoutAFunctionSaysWhich) {
  try {
    mathematics().find("no_such_function");
    ADD_FAILURE() << "it was found";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), StartsWith("libm.so.6 has no function no_such_function"));
  }
}

}  // namespace
}  // namespace redspine
