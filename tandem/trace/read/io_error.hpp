// tandem/trace/read/io_error.hpp: the system's error for a file of a trace.
#pragma once

#include <cerrno>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>

#include "tandem/base/result.hpp"

namespace tandem::trace::internal {

/// An error of the call that has just set errno.
inline base::Error io_error(const std::filesystem::path& file, std::string_view what) {
  return {base::ErrorCode::io,
          file.string() + ": " + std::string(what) + ": " + std::generic_category().message(errno)};
}

}  // namespace tandem::trace::internal
