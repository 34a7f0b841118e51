// tandem/comm/transport/shm/copy.hpp: two ways to copy from and to memory that another core uses.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace tandem::comm::internal {

/// Prefetches a line for writing, so that it has left the other core's cache by then.
inline void claim_line(const std::byte* line) noexcept {
#if defined(__x86_64__)
  // Without a processor option the compiler makes __builtin_prefetch(line, 1) a read prefetch.
  asm volatile("prefetchw %0" : : "m"(*line));
#else
  __builtin_prefetch(line, 1);
#endif
}

/// Copies, and prefetches the source's lines also across page boundaries, where the processor's own prefetching stops.
inline void copy_ahead(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
  constexpr std::size_t kBlock = 512;
  constexpr std::size_t kAhead = 1024;
  for (; bytes > kBlock; to += kBlock, from += kBlock, bytes -= kBlock) {
    for (std::size_t line = 0; line < kBlock; line += 64) __builtin_prefetch(from + kAhead + line);
    std::memcpy(to, from, kBlock);
  }
  std::memcpy(to, from, bytes);
}

/// Copies with streaming stores, which do not fetch lines that the other core holds. Better where cores are so far
/// apart that such a fetch is slower than memory. `streamed` must be called before the bytes are published.
inline void copy_streaming(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
#if defined(__SSE2__)
  const std::size_t before = std::min(bytes, (64 - reinterpret_cast<std::uintptr_t>(to) % 64) % 64);
  std::memcpy(to, from, before);
  to += before;
  from += before;
  bytes -= before;
  for (; bytes >= 64; to += 64, from += 64, bytes -= 64) {
    __builtin_prefetch(from + 1024);
    const auto* source = reinterpret_cast<const __m128i*>(from);
    auto* target = reinterpret_cast<__m128i*>(to);
    const __m128i a = _mm_loadu_si128(source), b = _mm_loadu_si128(source + 1);
    const __m128i c = _mm_loadu_si128(source + 2), d = _mm_loadu_si128(source + 3);
    _mm_stream_si128(target, a);
    _mm_stream_si128(target + 1, b);
    _mm_stream_si128(target + 2, c);
    _mm_stream_si128(target + 3, d);
  }
#endif
  std::memcpy(to, from, bytes);
}

/// Orders streaming stores before a later release, which by itself does not.
inline void streamed() noexcept {
#if defined(__SSE2__)
  _mm_sfence();
#endif
}

}  // namespace tandem::comm::internal
