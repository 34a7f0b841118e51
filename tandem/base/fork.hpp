// tandem/base/fork.hpp: a fork()ed child's copies of objects with threads, locks and connections do nothing.
#pragma once

#include <cstdint>

#include "tandem/base/file_descriptor.hpp"

namespace tandem::base {

/// Whether an object was made by this process, or fork() has copied it into a child: there its threads are missing, its
/// locks may be held for ever, and its descriptors are the parent's. Such a copy must do nothing, not even destroy its
/// parts.
///
/// A value, which is copied with its object. Thread-safe; costs a load and a comparison.
class ProcessMark {
 public:
  ProcessMark() noexcept;
  /// False in a child of the process that made the object, and in the child's children. A child by vfork() or by
  /// clone() without the C library is not noticed.
  bool is_of_this_process() const noexcept;

 private:
  std::uint32_t generation_;
};

/// Takes what a system call returned, as `FileDescriptor` does: a descriptor that forked children of this process do
/// not get, or -1. In a child its number stands for /dev/null. So a child keeps no connection of its parent open,
/// writes nothing into one, and changes no epoll set or timer that it shares. The descriptor is closed like any other.
/// Keeps `errno`. Thread-safe. Limits: fork.cpp.
FileDescriptor kept_from_children(int number);

/// Throws UsageError. `what` is the parent's object, such as "runtime".
[[noreturn]] void refuse_in_child(const char* what);

namespace internal {
/// Notes that the number is about to be closed. Called by `FileDescriptor`.
void give_to_children(int number) noexcept;
}  // namespace internal

}  // namespace tandem::base
