#include "tests/cuda_on_host/fiber.h"

#include <pthread.h>

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

void finish_switch([[maybe_unused]] void* fake_stack) {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(fake_stack, nullptr, nullptr);
#endif
}

// Stacks that all began at the same place of a page would share few lines of the processor's cache.
std::size_t next_stagger() {
  static std::size_t number = 0;
  return number++ % 32 * 192;
}

}  // namespace

Fiber::Fiber() {
  pthread_attr_t attributes{};
  void* stack = nullptr;
  pthread_getattr_np(pthread_self(), &attributes);
  pthread_attr_getstack(&attributes, &stack, &stack_bytes_);
  pthread_attr_destroy(&attributes);
  stack_ = stack;
}

Fiber::Fiber(std::function<void()> body) : body_(std::move(body)) {
  boost::context::protected_fixedsize_stack allocator(kStackBytes);
  const boost::context::stack_context stack = allocator.allocate();
  const std::size_t stagger = next_stagger();
  stack_ = static_cast<const char*>(stack.sp) - stack.size;
  stack_bytes_ = stack.size;
  suspended_ =
      boost::context::fiber(std::allocator_arg,
                            boost::context::preallocated(static_cast<char*>(stack.sp) - stagger,
                                                         stack.size - stagger, stack),
                            allocator, [this](boost::context::fiber&& nobody) {
                              finish_switch(nullptr);
                              body_();
                              return std::move(nobody);
                            });
}

void Fiber::switch_to(Fiber& next) {
  start_switch(&fake_stack_, next.stack_, next.stack_bytes_);
  std::move(next.suspended_).resume_with([this](boost::context::fiber&& self) {
    suspended_ = std::move(self);
    return boost::context::fiber();
  });
  finish_switch(fake_stack_);
}

}  // namespace on_host
