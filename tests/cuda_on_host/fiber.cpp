#include "tests/cuda_on_host/fiber.h"

#include <boost/context/protected_fixedsize_stack.hpp>
#include <utility>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif

namespace on_host {
namespace {

// Virtual memory; pages are taken as they are touched. A guard page lies below.
constexpr std::size_t kStackBytes = std::size_t{256} << 10;

void start_switch([[maybe_unused]] void** fake_stack, [[maybe_unused]] const void* stack,
                  [[maybe_unused]] std::size_t bytes) {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(fake_stack, stack, bytes);
#endif
}

void finish_switch([[maybe_unused]] void* fake_stack, [[maybe_unused]] const void** from,
                   [[maybe_unused]] std::size_t* bytes) {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(fake_stack, from, bytes);
#endif
}

}  // namespace

Fiber::Fiber(std::function<void()> body) : body_(std::move(body)) {
  boost::context::protected_fixedsize_stack allocator(kStackBytes);
  const boost::context::stack_context stack = allocator.allocate();
  stack_ = static_cast<const char*>(stack.sp) - stack.size;
  stack_bytes_ = stack.size;
  fiber_ = boost::context::fiber(std::allocator_arg,
                                 boost::context::preallocated(stack.sp, stack.size, stack),
                                 allocator, [this](boost::context::fiber&& caller) {
                                   caller_ = std::move(caller);
                                   enter();
                                   body_();
                                   start_switch(nullptr, caller_stack_, caller_stack_bytes_);
                                   return std::move(caller_);
                                 });
}

void Fiber::resume() {
  start_switch(&caller_fake_stack_, stack_, stack_bytes_);
  fiber_ = std::move(fiber_).resume();
  finish_switch(caller_fake_stack_, nullptr, nullptr);
}

void Fiber::suspend() {
  start_switch(&fake_stack_, caller_stack_, caller_stack_bytes_);
  caller_ = std::move(caller_).resume();
  enter();
}

void Fiber::enter() { finish_switch(fake_stack_, &caller_stack_, &caller_stack_bytes_); }

}  // namespace on_host
