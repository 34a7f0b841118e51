// tandem/comm/bootstrap/secret_descriptor.cpp: memfd_create, and a word in front that distinguishes it from other
// files.
#include "tandem/comm/bootstrap/secret_descriptor.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include <fmt/core.h>

namespace tandem::comm::internal {
namespace {

using base::Error;
using base::ErrorCode;

constexpr std::string_view opening = "tandem-secret:";
constexpr int preferred_number = 100;  ///< and up: shells use low ones themselves

/// A duplicate with a number that wrapper programs do not use, as far as the limit of descriptors allows.
base::FileDescriptor high_duplicate(int descriptor) {
  base::FileDescriptor high(fcntl(descriptor, F_DUPFD_CLOEXEC, preferred_number));
  rlimit limit{};
  if (high || errno != EINVAL || getrlimit(RLIMIT_NOFILE, &limit) != 0) return high;
  return base::FileDescriptor(fcntl(descriptor, F_DUPFD_CLOEXEC, static_cast<int>(limit.rlim_cur / 2)));
}

}  // namespace

base::Result<base::FileDescriptor> make_secret_descriptor(std::string_view text) {
  const auto failed = [] {
    return Error{ErrorCode::io, fmt::format("no descriptor for the job's secret: {}", base::system_error_text(errno))};
  };
  const base::FileDescriptor low(memfd_create("tandem-secret", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!low) return failed();
  base::FileDescriptor descriptor = high_duplicate(low.get());
  if (!descriptor) return failed();
  const std::string content = std::string(opening) + std::string(text);
  if (write(low.get(), content.data(), content.size()) != static_cast<ssize_t>(content.size()) ||
      fcntl(low.get(), F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) != 0)
    return failed();
  return descriptor;
}

base::Result<std::string> read_secret_descriptor(int descriptor) {
  char buffer[256];
  const ssize_t count = pread(descriptor, buffer, sizeof buffer, 0);
  const std::string_view content(buffer, count > 0 ? static_cast<std::size_t>(count) : 0);
  if (!content.starts_with(opening)) {
    return Error{
        ErrorCode::invalid_argument,
        fmt::format("descriptor {} (TANDEM_JOB_SECRET_FD) does not hold the job's secret any more: a wrapper program "
                    "between `tandem run` and this one closed it; use `tandem run --secret-in-environment`",
                    descriptor)};
  }
  return std::string(content.substr(opening.size()));
}

}  // namespace tandem::comm::internal
