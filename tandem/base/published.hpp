// tandem/base/published.hpp: a number that one thread changes and others may look at.
#pragma once

#include <atomic>

namespace tandem::base {

/// One writer, any readers, no order: a reader sees some recent value, whole. Costs the writer what a plain variable costs.
template <class T>
class Published {
 public:
  constexpr Published(T value = T()) noexcept : value_(value) {}

  T get() const noexcept { return value_.load(std::memory_order_relaxed); }
  void set(T value) noexcept { value_.store(value, std::memory_order_relaxed); }
  /// By the writer: no read-modify-write.
  void add(T more) noexcept { set(get() + more); }

 private:
  std::atomic<T> value_;
};

}  // namespace tandem::base
