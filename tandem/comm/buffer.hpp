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

/// Blocks of equal size at equal distance, as the columns of a submatrix are. All in bytes; `stride_bytes` >= `block_bytes`.
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

/// As memcpy, for what is a few bytes most of the time: without a call then. The two do not overlap.
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

/// Where the bytes of one message lie. A value that does not own them; they must stay until the request is released. Moves
/// cheaply; one piece needs no allocation.
class Pieces {
 public:
  Pieces() noexcept = default;
  Pieces(void* data, std::size_t bytes) noexcept : all_{data, bytes} {}
  Pieces(Pieces&& other) noexcept : all_{alone(other.all_.iov_base), alone(other.all_.iov_len)}, many_(std::move(other.many_)) {}
  Pieces& operator=(Pieces&&) noexcept = default;
  explicit Pieces(std::span<const iovec> pieces);
  explicit Pieces(const MutableStrided& strided);

  std::size_t bytes() const noexcept { return all_.iov_len; }
  bool contiguous() const noexcept { return many_ == nullptr; }
  std::byte* data() const noexcept { return static_cast<std::byte*>(all_.iov_base); }  ///< when contiguous
  std::span<const iovec> list() const noexcept {
    return many_ ? std::span<const iovec>(*many_) : std::span<const iovec>(&all_, bytes() > 0 ? 1 : 0);
  }

  /// The pieces of the bytes [offset, offset + bytes), appended to `out`. The range lies inside.
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
  /// Loads one word. The two of `all_` are often stored right before, and then one load of both waits until they are in memory.
  template <class Word>
  static Word alone(const Word& word) noexcept {
    return *static_cast<const volatile Word*>(&word);
  }
  void scatter(std::size_t offset, std::span<const std::byte> from) const noexcept;
  void gather(std::size_t offset, std::span<std::byte> to) const noexcept;

  iovec all_{nullptr, 0};  ///< the piece; of several, the sum of their lengths alone
  std::unique_ptr<std::vector<iovec>> many_;
};

/// Who can read the bytes of a message where they lie.
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
  SendBuffer(const Strided& s) : pieces_(MutableStrided{const_cast<void*>(s.first), s.block_bytes, s.stride_bytes, s.count}) {}
  /// A list of pieces, as writev(2) has it. Allocates.
  explicit SendBuffer(std::span<const iovec> pieces) : pieces_(pieces) {}

  Pieces&& take() && noexcept { return std::move(pieces_); }  ///< for the library
  const Pieces& pieces() const noexcept { return pieces_; }   ///< for the library

 private:
  Pieces pieces_;
};

/// What a receive writes. Longer than the message is fine; shorter fails that receive with `truncated`.
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
  /// A list of pieces, as writev(2) has it. Allocates.
  explicit ReceiveBuffer(std::span<const iovec> pieces) : pieces_(pieces) {}

  Pieces&& take() && noexcept { return std::move(pieces_); }  ///< for the library

 private:
  Pieces pieces_;
};

}  // namespace tandem::comm
