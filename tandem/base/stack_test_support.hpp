// tandem/base/stack_test_support.hpp: for tests: how large the stack of a thread is.
#pragma once

#include <pthread.h>

#include <cstddef>

namespace tandem::base {

/// Of the thread that calls it, as the system says; 0: unknown.
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
