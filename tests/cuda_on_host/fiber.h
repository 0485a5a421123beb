// A stack of its own that can be left in the middle and entered again: what a CUDA thread runs on.
// Owned by one OS thread; AddressSanitizer is told of every change of stacks.
#pragma once

#include <boost/context/fiber.hpp>
#include <cstddef>
#include <functional>

namespace on_host {

class Fiber {
 public:
  /// The stack of the calling OS thread.
  Fiber();
  /// `body` starts when the fiber is first switched to. It must neither throw nor return, so the
  /// fiber lives as long as the process.
  explicit Fiber(std::function<void()> body);
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// Called on this fiber: goes on in `next`, and returns when somebody switches back.
  void switch_to(Fiber& next);

 private:
  std::function<void()> body_;
  boost::context::fiber suspended_;  // empty while it runs
  // What AddressSanitizer needs to know.
  const void* stack_ = nullptr;
  std::size_t stack_bytes_ = 0;
  void* fake_stack_ = nullptr;
};

}  // namespace on_host
