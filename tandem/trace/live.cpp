// tandem/trace/live.cpp: finds live files, and the packets in their buffers.
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <system_error>
#include <utility>

#include "tandem/base/owned_file.hpp"
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

/// Loads with acquire; pairs with the release stores of the writer. The memory may be mapped for reading only: a load
/// of a word does not write.
template <class T>
T acquire(const std::byte* at) noexcept {
  static_assert(std::atomic_ref<T>::is_always_lock_free);
  return std::atomic_ref<T>(*const_cast<T*>(reinterpret_cast<const T*>(at))).load(std::memory_order_acquire);
}

std::uint64_t content_bits_of(const std::byte* buffer) noexcept {
  return acquire<std::uint64_t>(buffer + offsetof(PacketHeader, content_bits));
}

/// Iterates over the existing records, as a reader of the file will, and sets the header's sizes and counts
/// accordingly.
void complete_header(const std::byte* buffer, std::size_t end, const DeclaredTypes& declared,
                     PacketHeader* header) noexcept {
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

std::optional<LivePacket> packet_in(const std::byte* buffer, std::size_t bytes,
                                    const DeclaredTypes& declared) noexcept {
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
  if (!problem_of(page).empty()) return {};
  const std::size_t fit = (file.size() - sizeof(LivePage)) / page.buffer_bytes;
  const std::size_t buffers = std::min<std::size_t>(page.buffers, fit);
  std::vector<LivePacket> packets;
  for (std::size_t i = 0; i < buffers; ++i)
    if (auto packet = packet_in(file.data() + live_buffer_offset(page, i), page.buffer_bytes, declared))
      packets.push_back(*packet);
  std::ranges::sort(packets, {},
                    [](const LivePacket& packet) { return std::pair(packet.header.actor, packet.header.sequence); });
  return packets;
}

bool LiveFile::is_alive() const noexcept {
  const auto process = static_cast<pid_t>(page.process);
  return process > 0 && (::kill(process, 0) == 0 || errno == EPERM);
}

Result<LiveFile> open_live(const std::filesystem::path& file, base::Owners owners) {
  auto opened = base::OwnedFile::open(file, owners);
  if (!opened) return opened.error();
  LiveFile live{.file = std::move(opened).value(), .page = {}};
  if (!live.file.read_at(0, &live.page, sizeof live.page)) live.page.magic = 0;
  if (const auto problem = problem_of(live.page); !problem.empty())
    return Error{ErrorCode::malformed, file.string() + ": " + std::string(problem)};
  return live;
}

Result<std::optional<LiveFile>> find_live(const std::filesystem::path& folder) {
  const auto opened = base::OwnedFolder::open(folder, base::Owners::anyone);
  if (!opened && opened.error().code == ErrorCode::not_found) return std::optional<LiveFile>{};
  if (!opened) return opened.error();
  return find_live(opened.value());
}

Result<std::optional<LiveFile>> find_live(const base::OwnedFolder& folder) {
  const auto own = folder.folder(own_folder);
  if (!own && own.error().code == ErrorCode::not_found) return std::optional<LiveFile>{};
  if (!own) return own.error();
  const auto target = own.value().target_of(live_name);
  if (!target && target.error().code == ErrorCode::not_found) return std::optional<LiveFile>{};
  if (!target) return Error{target.error().code, target.error().message + ", as one to live buffers would be"};
  const std::filesystem::path link = own.value().path() / live_name;
  auto live = open_live(own.value().path() / target.value(), base::Owners::anyone);
  if (!live) return Error{live.error().code, link.string() + " points to its live buffers: " + live.error().message};
  if (live.value().file.owner() != folder.owner())
    return Error{ErrorCode::io, fmt::format("{}: belongs to user {}, and the folder that points to it, {}, to user {}",
                                            live.value().file.path().string(), live.value().file.owner(),
                                            folder.path().string(), folder.owner())};
  return std::optional(std::move(live).value());
}

std::vector<std::filesystem::path> live_files_of(std::uint32_t process) {
  const std::string prefix = live_prefix + std::to_string(process) + ".";
  std::vector<std::filesystem::path> files;
  std::error_code error;
  std::filesystem::directory_iterator entry(live_folder, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    struct stat status {};
    if (!entry->path().filename().string().starts_with(prefix) || ::lstat(entry->path().c_str(), &status) != 0)
      continue;
    if (S_ISREG(status.st_mode) && status.st_uid == ::geteuid()) files.push_back(entry->path());
  }
  std::ranges::sort(files);
  return files;
}

Result<void> remove_live_file(const base::OwnedFile& file) {
  if (!file.is_at(file.path()) || ::unlink(file.path().c_str()) == 0 || errno == ENOENT) return {};
  return Error{ErrorCode::io, file.path().string() + ": cannot be removed: " + std::generic_category().message(errno)};
}

}  // namespace tandem::trace
