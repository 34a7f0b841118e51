// tandem/base/replace_file.cpp: writes beside a file, then renames.
#include "tandem/base/replace_file.hpp"

#include <fstream>
#include <string>
#include <system_error>

namespace tandem::base {

std::filesystem::path unfinished(const std::filesystem::path& file) {
  std::string name = ".";
  name += file.filename().string();
  name += ".new";
  return file.parent_path() / name;
}

Result<void> finish_file(const std::filesystem::path& file) {
  std::error_code error;
  std::filesystem::rename(unfinished(file), file, error);
  if (error) return Error{ErrorCode::io, file.string() + ": cannot be replaced: " + error.message()};
  return {};
}

Result<void> replace_file(const std::filesystem::path& file, std::string_view content) {
  const auto written = unfinished(file);
  {
    std::ofstream stream(written, std::ios::binary | std::ios::trunc);
    stream.write(content.data(), static_cast<std::streamsize>(content.size()));
    stream.close();
    if (!stream)
      return Error{ErrorCode::io, written.string() + ": cannot be written: is the disk full, or the folder another user's?"};
  }
  return finish_file(file);
}

}  // namespace tandem::base
