// tandem/base/file_descriptor.cpp: closes a file descriptor once.
#include "tandem/base/file_descriptor.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <mutex>
#include <system_error>

#include <fmt/core.h>

#include "tandem/base/fork.hpp"
#include "tandem/base/shortage.hpp"

namespace tandem::base {

FileDescriptor& FileDescriptor::operator=(FileDescriptor&& other) noexcept {
  if (this != &other) {
    close();
    number_ = std::exchange(other.number_, -1);
  }
  return *this;
}

void FileDescriptor::close() noexcept {
  if (number_ < 0) return;
  const int before = errno;
  internal::give_to_children(number_);
  ::close(std::exchange(number_, -1));
  errno = before;
}

void raise_descriptor_limit() noexcept {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

std::string system_error_text(int code) {
  std::string text = std::generic_category().message(code);
  rlimit limit{};
  if (code == ENFILE) {
    text += ": all processes of this machine together have as many open files as it allows; raise fs.file-max (sysctl)";
  } else if (code == EMFILE && getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    text += fmt::format(
        ": this process may have {} file descriptors, and has no more; raise the limit (`ulimit -n`; the hard limit, "
        "`ulimit -Hn`, is {})",
        limit.rlim_cur, limit.rlim_max);
  }
  return text;
}

namespace {

std::mutex spare_mutex;
int spare = -1;  ///< guarded by the mutex; open to the end of the process

void open_spare() noexcept {
  if (spare < 0) spare = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
}

}  // namespace

void set_spare_descriptor_aside() noexcept {
  const std::lock_guard guard(spare_mutex);
  open_spare();
}

void with_spare_descriptor(const std::function<void()>& act) {
  const std::lock_guard guard(spare_mutex);
  FileDescriptor(std::exchange(spare, -1)).close();
  act();
  open_spare();
}

}  // namespace tandem::base
