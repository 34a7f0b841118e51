// tandem/trace/read/live_buffers.cpp: copies records out of memory that another process writes.
#include "tandem/trace/read/live_buffers.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <utility>

#include "tandem/base/file_descriptor.hpp"
#include "tandem/trace/live.hpp"
#include "tandem/trace/read/copy_records.hpp"
#include "tandem/trace/read/io_error.hpp"
#include "tandem/trace/read/record.hpp"

namespace tandem::trace {

namespace {

/// The memory is mapped for reading only: a load of a word does not write.
std::uint32_t word_at(const std::byte* at) noexcept {
  static_assert(std::atomic_ref<std::uint32_t>::is_always_lock_free);
  return std::atomic_ref<std::uint32_t>(*const_cast<std::uint32_t*>(reinterpret_cast<const std::uint32_t*>(at)))
      .load(std::memory_order_acquire);
}

std::uint64_t long_word_at(const std::byte* at) noexcept {
  static_assert(std::atomic_ref<std::uint64_t>::is_always_lock_free);
  return std::atomic_ref<std::uint64_t>(*const_cast<std::uint64_t*>(reinterpret_cast<const std::uint64_t*>(at)))
      .load(std::memory_order_acquire);
}

PacketHeader load_header(const std::byte* buffer) noexcept {
  PacketHeader header;
  header.magic = word_at(buffer);
  header.actor = word_at(buffer + offsetof(PacketHeader, actor));
  header.begin_ticks = long_word_at(buffer + offsetof(PacketHeader, begin_ticks));
  header.content_bits = long_word_at(buffer + offsetof(PacketHeader, content_bits));  // before what it completes
  header.end_ticks = long_word_at(buffer + offsetof(PacketHeader, end_ticks));
  header.packet_bits = long_word_at(buffer + offsetof(PacketHeader, packet_bits));
  header.lost_events = long_word_at(buffer + offsetof(PacketHeader, lost_events));
  header.sequence = long_word_at(buffer + offsetof(PacketHeader, sequence));
  header.event_count = word_at(buffer + offsetof(PacketHeader, event_count));
  return header;
}

bool is_same(const PacketHeader& a, const PacketHeader& b) noexcept {
  return a.magic == b.magic && a.actor == b.actor && a.sequence == b.sequence && a.begin_ticks == b.begin_ticks;
}

}  // namespace

LiveBuffers::LiveBuffers(std::span<const std::byte> file) noexcept : file_(file) {
  if (file.size() < sizeof(LivePage)) return;
  const auto page = internal::load<LivePage>(file.data());
  if (page.magic != LivePage::live_magic || page.version != LivePage::live_version) return;
  if (page.buffer_bytes < sizeof(PacketHeader) || page.buffer_bytes % alignof(PacketHeader) != 0) return;
  buffers_ = file.data() + sizeof(LivePage);
  buffer_bytes_ = page.buffer_bytes;
  count_ = std::min<std::size_t>(page.buffers, (file.size() - sizeof(LivePage)) / buffer_bytes_);
}

LiveBuffers::~LiveBuffers() {
  if (mapped_) ::munmap(const_cast<std::byte*>(file_.data()), file_.size());
}

base::Result<std::unique_ptr<LiveBuffers>> LiveBuffers::map(const LiveFile& live) {
  const base::FileDescriptor file(::open(live.file.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return internal::io_error(live.file, "cannot be opened");
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) return internal::io_error(live.file, "its size is unknown");
  const auto bytes = static_cast<std::size_t>(status.st_size);
  if (bytes < sizeof(LivePage))
    return base::Error{base::ErrorCode::malformed, live.file.string() + ": is no file of live buffers"};
  void* const memory = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file.get(), 0);
  if (memory == MAP_FAILED) return internal::io_error(live.file, "cannot be mapped");
  auto buffers = std::make_unique<LiveBuffers>(std::span(static_cast<const std::byte*>(memory), bytes));
  buffers->mapped_ = true;
  return buffers;
}

/// Read twice: a header of which the first reading has got one part before the buffer was reused, and one part after, differs.
std::optional<PacketHeader> LiveBuffers::header_of(std::size_t buffer) const noexcept {
  const PacketHeader first = load_header(at(buffer));
  if (first.magic != PacketHeader::ctf_magic) return std::nullopt;
  std::atomic_thread_fence(std::memory_order_acquire);
  const PacketHeader second = load_header(at(buffer));
  if (!is_same(first, second)) return std::nullopt;
  return second;
}

std::vector<LiveBuffers::Held> LiveBuffers::held() const {
  std::vector<Held> all;
  for (std::size_t i = 0; i < count_; ++i) {
    if (const auto header = header_of(i)) all.push_back({i, *header});
    if (after_look) after_look();
  }
  std::ranges::sort(all, {}, [](const Held& held) { return std::pair(held.header.actor, held.header.sequence); });
  return all;
}

std::optional<LiveBuffers::Copy> LiveBuffers::copy(const Held& held, std::size_t from, std::uint64_t before,
                                                   const DeclaredTypes& declared) const {
  const std::byte* const packet = at(held.buffer);
  // Read before any record: once it is set, no record follows.
  const std::uint64_t bits = long_word_at(packet + offsetof(PacketHeader, content_bits));
  const bool is_whole = bits >= sizeof(PacketHeader) * 8 && bits % 8 == 0 && bits / 8 <= buffer_bytes_;
  const std::size_t end = is_whole ? bits / 8 : buffer_bytes_;
  auto copied = internal::copy_records([packet](std::size_t at) { return word_at(packet + at); }, from, end, is_whole, before, declared);
  Copy copy{std::move(copied), is_whole};
  if (before_check) before_check();
  std::atomic_thread_fence(std::memory_order_acquire);  // pairs with the release fence of `Session::renew`
  const auto now = header_of(held.buffer);
  if (!now || !is_same(*now, held.header)) return std::nullopt;
  return copy;
}

}  // namespace tandem::trace
