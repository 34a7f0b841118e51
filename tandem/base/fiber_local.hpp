// tandem/base/fiber_local.hpp: state of a program that is kept in thread-local storage, where several programs take
// turns on one thread.
#pragma once

#include <array>
#include <cstddef>

namespace tandem::base {

/// A thread-local variable that belongs to the program, not to the thread: what runs now, what was promised. Where
/// programs take turns on one thread (`sim::Fiber`), each has its own value. Reading and writing cost what they cost
/// for any thread-local variable.
///
/// A variable says so once, by a static object:
///
///   const base::FiberLocal own_depth([]() noexcept -> void* { return &depth; }, sizeof depth);
///
/// Its type is trivially copyable, and its first value is all zeros.
///
/// Threads: objects are made before `main`; `exchange` changes the calling thread's variables.
class FiberLocal {
 public:
  using Address = void* (*)() noexcept;

  /// `address` returns where the variable of the calling thread is.
  FiberLocal(Address address, std::size_t bytes) noexcept;
  FiberLocal(const FiberLocal&) = delete;
  FiberLocal& operator=(const FiberLocal&) = delete;

  /// The values of a program that does not run.
  using Values = std::array<std::byte, 96>;
  /// Exchanges the values of this thread's variables with `values`, which were all zeros at first.
  static void exchange(Values& values) noexcept;
};

}  // namespace tandem::base
