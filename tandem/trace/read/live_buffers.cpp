// tandem/trace/read/live_buffers.cpp: copies records out of a file that another process writes.
#include "tandem/trace/read/live_buffers.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>

#include "tandem/trace/live.hpp"
#include "tandem/trace/read/copy_records.hpp"
#include "tandem/trace/read/record.hpp"

namespace tandem::trace {

namespace {

/// Loads a word; the memory may be read-only, which a load does not write.
std::uint32_t word_at(const std::byte* at) noexcept {
  static_assert(std::atomic_ref<std::uint32_t>::is_always_lock_free);
  return std::atomic_ref<std::uint32_t>(*const_cast<std::uint32_t*>(reinterpret_cast<const std::uint32_t*>(at)))
      .load(std::memory_order_relaxed);
}

/// Reads what the file has of these bytes, and returns their number; the others do not change.
std::size_t read_file(int file, std::uint64_t at, std::byte* to, std::size_t bytes) noexcept {
  std::size_t had = 0;
  while (had < bytes) {
    const ssize_t got = ::pread(file, to + had, bytes - had, static_cast<off_t>(at + had));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    had += static_cast<std::size_t>(got);
  }
  return had;
}

}  // namespace

LiveBuffers::LiveBuffers(std::span<const std::byte> memory) noexcept : memory_(memory) {
  if (memory.size() < sizeof(LivePage)) return;
  const auto page = internal::load<LivePage>(memory.data());
  if (problem_of(page).empty()) take(page, memory.size());
}

LiveBuffers::LiveBuffers(LiveFile live) noexcept : file_(std::move(live.file)) {
  if (problem_of(live.page).empty()) take(live.page, file_->bytes());
}

void LiveBuffers::take(const LivePage& page, std::uint64_t file_bytes) noexcept {
  buffer_bytes_ = page.buffer_bytes;
  const std::uint64_t fit = (std::max<std::uint64_t>(file_bytes, sizeof page) - sizeof page) / buffer_bytes_;
  count_ = static_cast<std::size_t>(std::min<std::uint64_t>(page.buffers, fit));
}

void LiveBuffers::read(std::size_t buffer, std::size_t at, void* to, std::size_t bytes) const noexcept {
  const std::size_t from = sizeof(LivePage) + buffer * buffer_bytes_ + at;
  auto* const next = static_cast<std::byte*>(to);
  if (file_) {
    const std::size_t had = read_file(file_->descriptor(), from, next, bytes);
    std::memset(next + had, 0, bytes - had);
  } else {
    for (std::size_t i = 0; i < bytes; i += sizeof(std::uint32_t)) {
      const std::uint32_t word = word_at(memory_.data() + from + i);
      std::memcpy(next + i, &word, sizeof word);
    }
  }
  std::atomic_thread_fence(std::memory_order_acquire);
}

std::optional<PacketHeader> LiveBuffers::header_of(std::size_t buffer) const noexcept {
  return internal::read_header([&](std::size_t at, std::byte* to, std::size_t bytes) { read(buffer, at, to, bytes); });
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
  // This is read before any record: once it is set, no record follows.
  std::uint64_t bits = 0;
  read(held.buffer, offsetof(PacketHeader, content_bits), &bits, sizeof bits);
  const bool is_whole = bits >= sizeof(PacketHeader) * 8 && bits % 8 == 0 && bits / 8 <= buffer_bytes_;
  const std::size_t end = is_whole ? bits / 8 : buffer_bytes_;
  const auto read_here = [&](std::size_t at, std::byte* to, std::size_t bytes) { read(held.buffer, at, to, bytes); };
  auto copied = internal::copy_records(read_here, from, end, is_whole, before, declared);
  Copy copy{std::move(copied), is_whole};
  if (before_check) before_check();
  std::atomic_thread_fence(std::memory_order_acquire);  // pairs with the release fence of `Session::renew`
  const auto now = header_of(held.buffer);
  if (!now || !internal::is_same_packet(*now, held.header)) return std::nullopt;
  return copy;
}

}  // namespace tandem::trace
