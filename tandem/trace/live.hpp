// tandem/trace/live.hpp: the layout of a rank's live buffers in shared memory, which survive their program. As in
// FORMAT.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "tandem/trace/packet.hpp"

namespace tandem::trace {

/// The first page of the file; the buffers follow it. Written before the link `live` is made, and constant afterwards.
/// `folder` ends with a zero byte; a trace whose path is longer has no live file.
struct LivePage {
  static constexpr std::uint64_t live_magic = 0x31304556494C4454;  ///< "TDLIVE01"
  static constexpr std::uint32_t live_version = 2;
  static constexpr std::size_t folder_bytes = 4096 - 24;
  static constexpr std::uint32_t most_buffers = 1u << 20;
  static constexpr std::uint32_t most_buffer_bytes = 1u << 30;

  std::uint64_t magic = live_magic;
  std::uint32_t version = live_version;
  std::uint32_t buffer_bytes = 0;  ///< of each buffer, its packet header included
  std::uint32_t buffers = 0;
  std::uint32_t process = 0;       ///< process id
  char folder[folder_bytes] = {};  ///< absolute path of the rank's folder
};
static_assert(sizeof(LivePage) == 4096 && std::is_trivially_copyable_v<LivePage> &&
              std::is_standard_layout_v<LivePage>);
static_assert(offsetof(LivePage, version) == 8 && offsetof(LivePage, buffer_bytes) == 12 &&
              offsetof(LivePage, buffers) == 16 && offsetof(LivePage, process) == 20 &&
              offsetof(LivePage, folder) == 24);

/// What is wrong with a page that was read from a file; empty: nothing. With a correct page no size or offset below
/// overflows.
constexpr std::string_view problem_of(const LivePage& page) noexcept {
  if (page.magic != LivePage::live_magic) return "is no file of live buffers";
  if (page.version != LivePage::live_version)
    return "is of another version: recover it with the version of Tandem that wrote it";
  if (page.buffer_bytes < sizeof(PacketHeader) || page.buffer_bytes % alignof(PacketHeader) != 0 ||
      page.buffer_bytes > LivePage::most_buffer_bytes || page.buffers > LivePage::most_buffers)
    return "is damaged: its sizes of live buffers are impossible";
  for (const char c : page.folder)
    if (c == 0) return {};
  return "is damaged: its name of a folder has no end";
}

/// Names of live files are live_folder/live_prefix + PID + "." + a suffix that differs within a process.
inline constexpr const char* live_folder = "/dev/shm";
inline constexpr const char* live_prefix = "tandem-trace.";

constexpr std::size_t live_buffer_offset(const LivePage& page, std::size_t buffer) noexcept {
  return sizeof(LivePage) + buffer * page.buffer_bytes;
}
constexpr std::size_t live_file_bytes(const LivePage& page) noexcept { return live_buffer_offset(page, page.buffers); }

}  // namespace tandem::trace
