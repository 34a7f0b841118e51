// tandem/api/number_in_file.hpp: reads a file of the kernel with one number.
#pragma once

#include <filesystem>
#include <fstream>
#include <optional>

namespace tandem::internal {

/// The number; none: there is no such file, or it begins with something else.
inline std::optional<long> number_in_file(const std::filesystem::path& file) {
  std::ifstream stream(file);
  long number = 0;
  if (!(stream >> number)) return std::nullopt;
  return number;
}

}  // namespace tandem::internal
