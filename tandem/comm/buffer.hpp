// tandem/comm/buffer.hpp: what a message's bytes are in memory: one piece, a strided block, or a list of pieces.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <type_traits>
#include <vector>

#include "tandem/base/assert.hpp"

namespace tandem::comm {

/// Blocks of equal size at equal distance, such as the columns of a submatrix. Units: bytes; `stride_bytes` >=
/// `block_bytes`.
template <class Pointer>
struct BasicStrided {
  Pointer first = nullptr;       ///< the first block
  std::size_t block_bytes = 0;   ///< of each block
  std::size_t stride_bytes = 0;  ///< from the beginning of a block to that of the next one
  std::size_t count = 0;         ///< of blocks
};
/// What a send reads.
using Strided = BasicStrided<const void*>;
/// What a receive writes.
using MutableStrided = BasicStrided<void*>;

namespace internal {

/// The first of `count` pieces that ends beyond `offset`; `end_of(i)` is where piece i ends. Asks for about log2(count)
/// ends.
template <class EndOf>
constexpr std::size_t piece_at(std::size_t count, std::size_t offset, EndOf end_of) {
  std::size_t first = 0;
  while (count > 0) {
    const std::size_t half = count / 2;
    if (end_of(first + half) <= offset) {
      first += half + 1;
      count -= half + 1;
    } else {
      count = half;
    }
  }
  return first;
}

/// Several pieces of memory. A large message is cut into segments, each of which asks for its pieces: strided blocks
/// need no list, and arithmetic finds the first one; in a list a search does. Immutable.
class PieceList {
 public:
  /// Throws UsageError when the bytes are more than an address space has.
  explicit PieceList(std::span<const iovec> pieces);
  explicit PieceList(const BasicStrided<void*>& strided);

  std::size_t bytes() const noexcept { return bytes_; }
  std::size_t count() const noexcept { return ends_.empty() ? strided_.count : ends_.size(); }
  iovec piece(std::size_t number) const noexcept {
    if (!ends_.empty()) return pieces_[number];
    return {static_cast<std::byte*>(strided_.first) + number * strided_.stride_bytes, strided_.block_bytes};
  }
  /// Calls `take(data, bytes, done_before)` for each part of the range [offset, offset + bytes), which lies inside.
  template <class Take>
  void for_range(std::size_t offset, std::size_t bytes, Take take) const {
    if (bytes == 0) return;
    std::size_t number = at(offset);
    std::size_t skipped = offset - begin_of(number);
    for (std::size_t done = 0; done < bytes; ++number, skipped = 0) {
      const iovec whole = piece(number);
      const std::size_t part = whole.iov_len - skipped < bytes - done ? whole.iov_len - skipped : bytes - done;
      take(static_cast<std::byte*>(whole.iov_base) + skipped, part, done);
      done += part;
    }
  }

 private:
  std::size_t at(std::size_t offset) const noexcept {
    if (ends_.empty()) return offset / strided_.block_bytes;
    return piece_at(ends_.size(), offset, [this](std::size_t number) { return ends_[number]; });
  }
  std::size_t begin_of(std::size_t number) const noexcept {
    if (ends_.empty()) return number * strided_.block_bytes;
    return number == 0 ? 0 : ends_[number - 1];
  }

  std::size_t bytes_ = 0;
  BasicStrided<void*> strided_;  ///< where there is no list
  std::vector<iovec> pieces_;    ///< none of them is empty
  std::vector<std::size_t> ends_;  ///< of each piece: the bytes up to there
};

}  // namespace internal

/// Like memcpy of memory that does not overlap, but without a call for the few bytes of most messages.
[[gnu::always_inline]] inline void copy_few(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
  // Two words that overlap in the middle.
  const auto ends = [&]<class Word>(Word first, Word last) {
    std::memcpy(&first, from, sizeof first);
    std::memcpy(&last, from + bytes - sizeof last, sizeof last);
    std::memcpy(to, &first, sizeof first);
    std::memcpy(to + bytes - sizeof last, &last, sizeof last);
  };
  if (bytes > 16) [[unlikely]] std::memcpy(to, from, bytes);
  else if (bytes >= 8) ends(std::uint64_t{}, std::uint64_t{});
  else if (bytes >= 4) ends(std::uint32_t{}, std::uint32_t{});
  else if (bytes >= 2) ends(std::uint16_t{}, std::uint16_t{});
  else if (bytes == 1) *to = *from;
}

/// Where the bytes of one message lie. A value that does not own them; they must stay until the request is released.
/// Moves cheaply; one piece needs no allocation.
class Pieces {
 public:
  Pieces() noexcept = default;
  Pieces(void* data, std::size_t bytes) noexcept : all_{data, bytes} {}
  Pieces(Pieces&& other) noexcept
      : all_{alone(other.all_.iov_base), alone(other.all_.iov_len)}, many_(std::move(other.many_)) {}
  Pieces& operator=(Pieces&&) noexcept = default;
  /// Both throw UsageError when the bytes are more than an address space has.
  explicit Pieces(std::span<const iovec> pieces);
  explicit Pieces(const MutableStrided& strided);

  std::size_t bytes() const noexcept { return all_.iov_len; }
  bool contiguous() const noexcept { return many_ == nullptr; }
  std::byte* data() const noexcept { return static_cast<std::byte*>(all_.iov_base); }  ///< when contiguous
  /// A second view of the same memory.
  Pieces copy() const { return Pieces(*this); }

  /// The pieces of the bytes [offset, offset + bytes), appended to `out`. The range lies inside. The time is that of
  /// the pieces that are appended, and of a search (`PieceList`).
  void slice(std::size_t offset, std::size_t bytes, std::vector<iovec>& out) const;
  /// Copies into, or out of, the bytes from `offset` on, which are as many at least.
  [[gnu::always_inline]] void copy_in(std::size_t offset, std::span<const std::byte> from) const noexcept {
    if (many_ != nullptr) [[unlikely]] return scatter(offset, from);
    TANDEM_DEBUG_ASSERT(offset + from.size() <= bytes());
    copy_few(data() + offset, from.data(), from.size());
  }
  [[gnu::always_inline]] void copy_out(std::size_t offset, std::span<std::byte> to) const noexcept {
    if (many_ != nullptr) [[unlikely]] return gather(offset, to);
    TANDEM_DEBUG_ASSERT(offset + to.size() <= bytes());
    copy_few(to.data(), data() + offset, to.size());
  }

 private:
  /// Loads one word by itself: both of `all_` in one load would wait until the stores right before are in memory.
  template <class Word>
  static Word alone(const Word& word) noexcept {
    return *static_cast<const volatile Word*>(&word);
  }
  Pieces(const Pieces& other)
      : all_(other.all_), many_(other.many_ ? std::make_unique<internal::PieceList>(*other.many_) : nullptr) {}
  void scatter(std::size_t offset, std::span<const std::byte> from) const noexcept;
  void gather(std::size_t offset, std::span<std::byte> to) const noexcept;

  iovec all_{nullptr, 0};  ///< the one piece; with several pieces, only the sum of their lengths
  std::unique_ptr<const internal::PieceList> many_;
};

/// The parties that can read a message's bytes in place.
enum class BufferMemory : std::uint8_t {
  host,  ///< the processor
  cuda,  ///< CUDA devices, and networks that know their memory; the processor must not touch it
};

/// What a send reads: a span of trivially copyable values, a strided block, or a list of pieces.
class SendBuffer {
 public:
  SendBuffer() noexcept = default;  ///< zero bytes
  /// `bytes` bytes at `data`.
  SendBuffer(const void* data, std::size_t bytes) noexcept : pieces_(const_cast<void*>(data), bytes) {}
  /// All values of the span.
  template <class T, std::size_t N>
    requires std::is_trivially_copyable_v<T>
  SendBuffer(std::span<T, N> values) noexcept : SendBuffer(values.data(), values.size_bytes()) {}
  /// All values of the vector, which keeps its size.
  template <class T>
    requires std::is_trivially_copyable_v<T>
  SendBuffer(const std::vector<T>& values) noexcept : SendBuffer(values.data(), values.size() * sizeof(T)) {}
  /// All blocks.
    SendBuffer(const Strided& s)
        : pieces_(MutableStrided{const_cast<void*>(s.first), s.block_bytes, s.stride_bytes, s.count}) {}
    /// A list of pieces, like the argument of writev(2). Allocates.
    explicit SendBuffer(std::span<const iovec> pieces) : pieces_(pieces) {}

  Pieces&& take() && noexcept { return std::move(pieces_); }  ///< for the library
  const Pieces& pieces() const noexcept { return pieces_; }   ///< for the library

 private:
  Pieces pieces_;
};

/// What a receive writes. It may be longer than the message; a shorter one fails that receive with `truncated`.
class ReceiveBuffer {
 public:
  ReceiveBuffer() noexcept = default;  ///< zero bytes
  /// `bytes` bytes at `data`.
  ReceiveBuffer(void* data, std::size_t bytes) noexcept : pieces_(data, bytes) {}
  /// All values of the span.
  template <class T, std::size_t N>
    requires(std::is_trivially_copyable_v<T> && !std::is_const_v<T>)
  ReceiveBuffer(std::span<T, N> values) noexcept : ReceiveBuffer(values.data(), values.size_bytes()) {}
  /// All values of the vector, which keeps its size.
  template <class T>
    requires std::is_trivially_copyable_v<T>
  ReceiveBuffer(std::vector<T>& values) noexcept : ReceiveBuffer(values.data(), values.size() * sizeof(T)) {}
  /// All blocks.
  ReceiveBuffer(const MutableStrided& strided) : pieces_(strided) {}
  /// A list of pieces, like the argument of readv(2). Allocates.
  explicit ReceiveBuffer(std::span<const iovec> pieces) : pieces_(pieces) {}

  Pieces&& take() && noexcept { return std::move(pieces_); }  ///< for the library

 private:
  Pieces pieces_;
};

}  // namespace tandem::comm
