// tandem/api/number_in_file.hpp: what the kernel says in a file of one number.
#pragma once

#include <filesystem>
#include <fstream>
#include <optional>

namespace tandem::internal {

/// None: the file is not there, or begins with something else.
inline std::optional<long> number_in_file(const std::filesystem::path& file) {
  std::ifstream stream(file);
  long number = 0;
  if (!(stream >> number)) return std::nullopt;
  return number;
}

}  // namespace tandem::internal
