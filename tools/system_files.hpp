// tools/system_files.hpp: reads the kernel's files in /sys and /proc.
#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

namespace tandem::tools {

/// The first word of a file; none: the file cannot be read, or is empty.
inline std::optional<std::string> first_word(const std::filesystem::path& file) {
  std::ifstream stream(file);
  std::string word;
  if (!(stream >> word)) return std::nullopt;
  return word;
}

/// The entries of a folder, sorted by name; empty: the folder does not exist.
inline std::vector<std::filesystem::path> entries_of(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> entries;
  std::error_code failed;
  for (std::filesystem::directory_iterator at(folder, failed), end; !failed && at != end; at.increment(failed))
    entries.push_back(at->path());
  std::sort(entries.begin(), entries.end());
  return entries;
}

}  // namespace tandem::tools
