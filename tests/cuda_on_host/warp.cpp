#include "tests/cuda_on_host/warp.h"

#include <fmt/format.h>

#include <cstring>
#include <string_view>

namespace on_host {
namespace {

const char* name_of(WarpCall call) {
  switch (call) {
    case WarpCall::sync:
      return "__syncwarp";
    case WarpCall::shuffle:
      return "__shfl_sync";
    case WarpCall::shuffle_xor:
      return "__shfl_xor_sync";
    case WarpCall::ballot:
      return "__ballot_sync";
  }
  return "an unknown warp collective";
}

}  // namespace

unsigned source_lane(const WarpRequest& request, unsigned lane) {
  const auto width = static_cast<unsigned>(request.width);
  const unsigned first = lane & ~(width - 1);
  const unsigned last = first | (width - 1);
  const auto operand = static_cast<unsigned>(request.operand);
  switch (request.call) {
    case WarpCall::shuffle:
      return first | (operand & (width - 1));
    case WarpCall::shuffle_xor:
      return (lane ^ operand) <= last ? lane ^ operand : lane;
    default:
      return lane;
  }
}

bool same_place(const Place& a, const Place& b) {
  return a.line == b.line && (a.file == b.file || std::strcmp(a.file, b.file) == 0);
}

bool same_call(const WarpRequest& a, const WarpRequest& b) {
  return a.call == b.call && a.mask == b.mask && a.width == b.width && same_place(a.place, b.place);
}

std::string to_string(const Place& place) {
  const std::string_view file = place.file;
  return fmt::format("{}:{}", file.substr(file.rfind('/') + 1), place.line);
}

std::string to_string(const uint3& index) {
  return fmt::format("({},{},{})", index.x, index.y, index.z);
}

std::string to_string(const WarpRequest& request) {
  return fmt::format("{} of {}", name_of(request.call), to_string(request.place));
}

}  // namespace on_host
