// tandem/comm/short_slice.hpp: short turns on the core, for threads that sleep until the network needs them.
#pragma once

#include <cstdint>

namespace tandem::comm::internal {

/// Requests short time slices on the core. Since Linux 6.12 a thread that wakes interrupts one whose slice is longer;
/// otherwise it may wait for the next tick, 4 ms at 250 Hz, behind an application that computes on the same core. Needs
/// no privilege; older kernels ignore it. A thread that computes restores its slice, so as not to be interrupted at the
/// end of each short one.
///
/// Used by one thread at a time, which takes it and gives it back.
class ShortSlice {
 public:
  void take() noexcept;
  void give_back() noexcept;

 private:
  /// The kernel's `struct sched_attr` in its first version, which glibc knows only since 2.41.
  struct Attributes {
    std::uint32_t size = sizeof(Attributes);
    std::uint32_t policy = 0;
    std::uint64_t flags = 0;
    std::int32_t nice = 0;
    std::uint32_t priority = 0;
    std::uint64_t runtime_ns = 0, deadline_ns = 0, period_ns = 0;
  };
  static_assert(sizeof(Attributes) == 48);
  static bool get(Attributes& attributes) noexcept;
  static bool set(Attributes& attributes) noexcept;

  Attributes before_;
  bool taken_ = false;
  bool useless_ = false;  ///< the kernel ignores it
};

}  // namespace tandem::comm::internal
