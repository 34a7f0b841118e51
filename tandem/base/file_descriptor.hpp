// tandem/base/file_descriptor.hpp: the owner of an open file descriptor.
#pragma once

#include <string>
#include <utility>

namespace tandem::base {

/// Owns an open file descriptor, or none (-1), and closes it in the destructor. A move-only value; not thread-safe.
class FileDescriptor {
 public:
  FileDescriptor() = default;
  /// Takes what a system call returned: a descriptor, or -1 when it failed.
  explicit FileDescriptor(int number) noexcept : number_(number) {}
  FileDescriptor(FileDescriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept;
  ~FileDescriptor() { close(); }

  explicit operator bool() const noexcept { return number_ >= 0; }
  /// The number for system calls, still owned by this object; -1 when there is none.
  int get() const noexcept { return number_; }
  /// The number, which its caller owns from now on.
  int release() noexcept { return std::exchange(number_, -1); }
  /// Closes it now, if there is one. Keeps `errno`.
  void close() noexcept;

 private:
  int number_ = -1;
};

/// Raises the limit of open descriptors of this process to the most that it may have; children inherit it. Without
/// effect when the system refuses.
void raise_descriptor_limit() noexcept;

/// The text of an error code of the system. When descriptors have run out (EMFILE, ENFILE), it names the limit and the
/// remedy.
std::string system_error_text(int code);

}  // namespace tandem::base
