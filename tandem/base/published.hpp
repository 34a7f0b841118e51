// tandem/base/published.hpp: a number that one thread changes and others may read.
#pragma once

#include <atomic>

namespace tandem::base {

/// One writer, any readers, no order: a reader sees some recent value, whole. Costs the writer as much as a plain
/// variable.
template <class T>
class Published {
 public:
  constexpr Published(T value = T()) noexcept : value_(value) {}

  T get() const noexcept { return value_.load(std::memory_order_relaxed); }
  void set(T value) noexcept { value_.store(value, std::memory_order_relaxed); }
  /// Called by the writer: no read-modify-write.
  void add(T more) noexcept { set(get() + more); }

 private:
  std::atomic<T> value_;
};

}  // namespace tandem::base
