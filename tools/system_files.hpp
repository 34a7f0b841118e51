// tools/system_files.hpp: what the kernel says in files of /sys and /proc.
#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

namespace tandem::tools {

/// None: the file cannot be read, or has none.
inline std::optional<std::string> first_word(const std::filesystem::path& file) {
  std::ifstream stream(file);
  std::string word;
  if (!(stream >> word)) return std::nullopt;
  return word;
}

/// In the order of their names; empty: the folder is not there.
inline std::vector<std::filesystem::path> entries_of(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> entries;
  std::error_code failed;
  for (std::filesystem::directory_iterator at(folder, failed), end; !failed && at != end; at.increment(failed)) entries.push_back(at->path());
  std::sort(entries.begin(), entries.end());
  return entries;
}

}  // namespace tandem::tools
