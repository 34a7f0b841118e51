// tandem/trace/live.hpp: how a rank's live buffers lie in shared memory, so that they survive their program. FORMAT.md says the
// same.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "tandem/trace/packet.hpp"

namespace tandem::trace {

/// What the file begins with. Written before the link `live` to it is made, and not changed after; the buffers follow at once.
/// `folder` is ended by a zero byte: a longer path has no live file.
struct LivePage {
  static constexpr std::uint64_t live_magic = 0x31304556494C4454;  ///< "TDLIVE01"
  static constexpr std::uint32_t live_version = 1;
  static constexpr std::size_t folder_bytes = 4096 - 24;

  std::uint64_t magic = live_magic;
  std::uint32_t version = live_version;
  std::uint32_t buffer_bytes = 0;  ///< of each buffer, its packet header included
  std::uint32_t buffers = 0;
  std::uint32_t process = 0;       ///< that records
  char folder[folder_bytes] = {};  ///< absolute path of the rank's folder
};
static_assert(sizeof(LivePage) == 4096 && std::is_trivially_copyable_v<LivePage> && std::is_standard_layout_v<LivePage>);
static_assert(offsetof(LivePage, version) == 8 && offsetof(LivePage, buffer_bytes) == 12 && offsetof(LivePage, buffers) == 16 &&
              offsetof(LivePage, process) == 20 && offsetof(LivePage, folder) == 24);

/// Live files are called live_folder/live_prefix + PID + "." + whatever tells those of one process apart.
inline constexpr const char* live_folder = "/dev/shm";
inline constexpr const char* live_prefix = "tandem-trace.";

constexpr std::size_t live_buffer_offset(const LivePage& page, std::size_t buffer) noexcept {
  return sizeof(LivePage) + buffer * page.buffer_bytes;
}
constexpr std::size_t live_file_bytes(const LivePage& page) noexcept { return live_buffer_offset(page, page.buffers); }

}  // namespace tandem::trace
