// tools/standard_output.cpp: flushes standard output and checks for errors.
#include "tools/standard_output.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <system_error>

namespace tandem::tools {

void write_output(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size()) return;
  throw std::system_error(errno, std::generic_category(), "standard output cannot be written");
}

std::string name_of_standard(int descriptor) {
  const std::string stream = descriptor == STDOUT_FILENO ? "standard output" : "standard error";
  // `hold_standard_streams` has opened a closed stream read-only.
  const int flags = ::fcntl(descriptor, F_GETFL);
  if (flags < 0 || (flags & O_ACCMODE) == O_RDONLY) return stream + " (closed)";
  std::error_code unknown;
  const auto file = std::filesystem::read_symlink(fmt::format("/proc/self/fd/{}", descriptor), unknown);
  // Pipes and sockets have a number there instead of a path.
  return !unknown && file.is_absolute() ? fmt::format("{} ({})", stream, file.string()) : stream;
}

base::Result<void> finish_output(int cause) {
  errno = 0;
  std::cout.flush();
  const bool is_lost = !std::cout || std::ferror(stdout) != 0;
  if (std::fflush(stdout) == 0 && !is_lost) return {};
  const int reason = errno != 0 ? errno : cause;
  return base::Error{base::ErrorCode::io, fmt::format("{} cannot be written: {}", name_of_standard(STDOUT_FILENO),
                                                      reason != 0 ? std::generic_category().message(reason)
                                                                  : "an earlier write has failed")};
}

void write_note(std::string_view text) noexcept { (void)!std::fwrite(text.data(), 1, text.size(), stderr); }

}  // namespace tandem::tools
