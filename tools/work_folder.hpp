// tools/work_folder.hpp: a temporary folder for data that pass between programs.
#pragma once

#include <stdlib.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>
#include <utility>

#include "tandem/base/result.hpp"

namespace tandem::tools {

/// A new folder below another one; its destructor removes it.
class WorkFolder {
 public:
  /// Creates a folder whose name begins with `prefix`. Errors: io.
  static base::Result<WorkFolder> create(const std::filesystem::path& parent, const std::string& prefix) {
    std::string name = (parent / (prefix + "XXXXXX")).string();
    if (::mkdtemp(name.data()) == nullptr)
      return base::Error{base::ErrorCode::io, name + ": cannot be made: " + std::strerror(errno)};
    WorkFolder folder;
    folder.path_ = name;
    return folder;
  }
  WorkFolder(WorkFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  WorkFolder& operator=(WorkFolder&&) = delete;
  ~WorkFolder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  const std::filesystem::path& path() const noexcept { return path_; }

 private:
  WorkFolder() = default;
  std::filesystem::path path_;
};

}  // namespace tandem::tools
