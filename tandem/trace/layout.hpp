// tandem/trace/layout.hpp: names of files and folders in a rank's folder. As in FORMAT.md.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>

namespace tandem::trace {

/// The number of the format, in rank.json. Readers refuse others.
inline constexpr int manifest_format = 2;

/// Files that are not CTF's have a folder of their own: CTF's readers take every file beside `metadata` for a stream.
inline constexpr const char* own_folder = "tandem";
inline constexpr const char* manifest_file = "tandem/rank.json";
/// The symbolic link to the live buffers (live.hpp).
inline constexpr const char* live_link = "tandem/live";
/// The names of the manifest and the link within `own_folder`.
inline constexpr const char* manifest_name = "rank.json";
inline constexpr const char* live_name = "live";
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
