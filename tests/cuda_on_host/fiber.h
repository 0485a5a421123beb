// A function with a stack of its own that can stop in the middle and be resumed: what a CUDA
// thread runs in. Owned by one OS thread; AddressSanitizer is told of every change of stacks.
#pragma once

#include <boost/context/fiber.hpp>
#include <cstddef>
#include <functional>

namespace on_host {

class Fiber {
 public:
  /// `body` starts with the first `resume`; it must not throw.
  explicit Fiber(std::function<void()> body);
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;
  /// The body must have returned.
  ~Fiber() = default;

  /// Returns when the body suspends itself or returns.
  void resume();
  /// Called by the body: back to the one who resumed it.
  void suspend();

 private:
  void enter();

  std::function<void()> body_;
  boost::context::fiber fiber_;
  boost::context::fiber caller_;
  // What AddressSanitizer needs to know of the two stacks.
  const void* stack_ = nullptr;
  std::size_t stack_bytes_ = 0;
  const void* caller_stack_ = nullptr;
  std::size_t caller_stack_bytes_ = 0;
  void* fake_stack_ = nullptr;
  void* caller_fake_stack_ = nullptr;
};

}  // namespace on_host
