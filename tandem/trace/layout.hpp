// tandem/trace/layout.hpp: the names of what lies in a rank's folder. FORMAT.md says the same.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>

namespace tandem::trace {

/// What is not CTF's lies in a folder of its own: CTF's readers take every file beside `metadata` for a stream.
inline constexpr const char* own_folder = "tandem";
inline constexpr const char* manifest_file = "tandem/rank.json";
/// The symbolic link to the live buffers (live.hpp).
inline constexpr const char* live_link = "tandem/live";
inline constexpr const char* metadata_file = "metadata";

inline std::string rank_folder_name(std::uint32_t rank) {
  char name[32];
  std::snprintf(name, sizeof name, "rank-%04u", rank);
  return name;
}
inline std::string stream_file_name(std::uint32_t actor) {
  char name[32];
  std::snprintf(name, sizeof name, "stream_%04u", actor);
  return name;
}

}  // namespace tandem::trace
