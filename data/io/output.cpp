#include "data/io/output.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "tensor/error.h"

namespace redspine {
namespace {

[[noreturn]] void fail() {
  throw Error(fmt::format("standard output: writing failed: {}", std::strerror(errno)));
}

}  // namespace

void write_out(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) fail();
}

void flush_out() {
  if (std::fflush(stdout) != 0) fail();
}

void write_error(std::string_view text) noexcept {
  std::fwrite(text.data(), 1, text.size(), stderr);
}

}  // namespace redspine
