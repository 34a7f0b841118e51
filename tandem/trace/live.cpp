// tandem/trace/live.cpp: finds live files, and the packets in their buffers.
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <system_error>

#include "tandem/base/file_descriptor.hpp"
#include "tandem/trace/layout.hpp"
#include "tandem/trace/live.hpp"
#include "tandem/trace/read/record.hpp"
#include "tandem/trace/read/record_events.hpp"
#include "tandem/trace/recover.hpp"

namespace tandem::trace {

using base::Error;
using base::ErrorCode;
using base::Result;

namespace {

/// Pairs with the release stores of the writer. The memory may be mapped for reading only: a load of a word does not write.
template <class T>
T acquire(const std::byte* at) noexcept {
  static_assert(std::atomic_ref<T>::is_always_lock_free);
  return std::atomic_ref<T>(*const_cast<T*>(reinterpret_cast<const T*>(at))).load(std::memory_order_acquire);
}

std::uint64_t content_bits_of(const std::byte* buffer) noexcept {
  return acquire<std::uint64_t>(buffer + offsetof(PacketHeader, content_bits));
}

/// Goes through the records that are there, as a reader of the file will, and sets the header's sizes and counts accordingly.
void complete_header(const std::byte* buffer, std::size_t end, const DeclaredTypes& declared, PacketHeader* header) noexcept {
  internal::RecordEvents events;
  events.begin_packet(header->begin_ticks);
  std::size_t at = sizeof(PacketHeader);
  std::size_t content = at;
  header->end_ticks = header->begin_ticks;
  header->event_count = 0;
  while (at + RecordHeader::compact_bytes <= end) {
    const auto word = acquire<std::uint32_t>(buffer + at);
    if (word == 0 || events.enter(buffer, at, end, word, declared) != internal::RecordFault::none) break;
    header->end_ticks = events.last_event();
    ++header->event_count;
    content = events.record().end;
    at = events.record().next();
  }
  header->content_bits = std::uint64_t{content} * 8;
  header->packet_bits = (header->content_bits + 31) / 32 * 32;
}

std::optional<LivePacket> packet_in(const std::byte* buffer, std::size_t bytes, const DeclaredTypes& declared) noexcept {
  if (acquire<std::uint32_t>(buffer) != PacketHeader::ctf_magic) return std::nullopt;
  // Read before the rest of the header: once it is set, the rest does not change.
  const std::uint64_t bits = content_bits_of(buffer);
  LivePacket packet;
  packet.header = internal::load<PacketHeader>(buffer);
  packet.header.magic = PacketHeader::ctf_magic;
  packet.header.reserved = 0;
  packet.content = buffer + sizeof(PacketHeader);
  const bool is_whole = bits >= sizeof(PacketHeader) * 8 && bits % 8 == 0 && bits / 8 <= bytes;
  complete_header(buffer, is_whole ? bits / 8 : bytes, declared, &packet.header);
  // A packet without events still has the count of lost ones.
  if (packet.header.event_count == 0 && packet.header.lost_events == 0) return std::nullopt;
  return packet;
}

}  // namespace

std::vector<LivePacket> collect_live(std::span<const std::byte> file, const DeclaredTypes& declared) {
  if (file.size() < sizeof(LivePage)) return {};
  const auto page = internal::load<LivePage>(file.data());
  if (page.magic != LivePage::live_magic || page.version != LivePage::live_version) return {};
  if (page.buffer_bytes < sizeof(PacketHeader) || page.buffer_bytes % alignof(PacketHeader) != 0) return {};
  const std::size_t fit = (file.size() - sizeof(LivePage)) / page.buffer_bytes;
  const std::size_t buffers = std::min<std::size_t>(page.buffers, fit);
  std::vector<LivePacket> packets;
  for (std::size_t i = 0; i < buffers; ++i)
    if (auto packet = packet_in(file.data() + live_buffer_offset(page, i), page.buffer_bytes, declared))
      packets.push_back(*packet);
  std::ranges::sort(packets, {}, [](const LivePacket& packet) { return std::pair(packet.header.actor, packet.header.sequence); });
  return packets;
}

bool LiveFile::is_alive() const noexcept {
  const auto process = static_cast<pid_t>(page.process);
  return process > 0 && (::kill(process, 0) == 0 || errno == EPERM);
}

Result<std::optional<LiveFile>> find_live(const std::filesystem::path& folder) {
  const auto link = folder / live_link;
  std::error_code error;
  if (std::filesystem::symlink_status(link, error).type() == std::filesystem::file_type::not_found)
    return std::optional<LiveFile>{};
  LiveFile live;
  live.file = std::filesystem::read_symlink(link, error);
  if (error) return Error{ErrorCode::malformed, link.string() + ": is no symbolic link to live buffers: " + error.message()};
  const base::FileDescriptor file(::open(link.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file) {
    const ErrorCode code = errno == ENOENT ? ErrorCode::not_found : ErrorCode::io;
    return Error{code, link.string() + ": its live buffers " + live.file.string() + " cannot be opened: " +
                           std::generic_category().message(errno)};
  }
  const ssize_t bytes = ::pread(file.get(), &live.page, sizeof live.page, 0);
  if (bytes != ssize_t{sizeof live.page} || live.page.magic != LivePage::live_magic)
    return Error{ErrorCode::malformed, live.file.string() + ": is no file of live buffers"};
  if (live.page.version != LivePage::live_version)
    return Error{ErrorCode::malformed, live.file.string() + ": is of version " + std::to_string(live.page.version) +
                                           ": recover it with the version of Tandem that wrote it"};
  live.page.folder[sizeof live.page.folder - 1] = 0;
  return std::optional(live);
}

std::vector<std::filesystem::path> live_files_of(std::uint32_t process) {
  const std::string prefix = live_prefix + std::to_string(process) + ".";
  std::vector<std::filesystem::path> files;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(live_folder, error), end; !error && entry != end; entry.increment(error))
    if (entry->path().filename().string().starts_with(prefix)) files.push_back(entry->path());
  std::ranges::sort(files);
  return files;
}

}  // namespace tandem::trace
