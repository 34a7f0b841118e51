// tandem/base/stack_test_support.hpp: for tests: the size of a thread's stack.
#pragma once

#include <pthread.h>

#include <cstddef>

namespace tandem::base {

/// The calling thread's stack, as the system reports it; 0: unknown.
inline std::size_t own_stack_bytes() {
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return 0;
  std::size_t bytes = 0;
  void* low = nullptr;
  pthread_attr_getstack(&attributes, &low, &bytes);
  pthread_attr_destroy(&attributes);
  return bytes;
}

}  // namespace tandem::base
