// tandem/comm/transport/shm/pieces.hpp: copying between one run of bytes and a list of pieces, a part at a time.
#pragma once

#include <sys/uio.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>

#include "tandem/comm/transport/shm/copy.hpp"

namespace tandem::comm::internal {

/// A position in a list of pieces, which stays the owner's. Single-threaded.
class PieceCursor {
 public:
  PieceCursor() = default;
  explicit PieceCursor(std::span<const iovec> pieces) noexcept : pieces_(pieces) {}

  /// Copies the next `bytes` of the pieces to `to`. Bytes beyond their end do not change.
  void gather(std::byte* to, std::size_t bytes) noexcept {
    walk(bytes, [&to](std::byte* piece, std::size_t part) { std::memcpy(to, piece, part), to += part; });
  }
  /// Like `gather`, with streaming stores; the caller calls `streamed`.
  void gather_streaming(std::byte* to, std::size_t bytes) noexcept {
    walk(bytes, [&to](std::byte* piece, std::size_t part) { copy_streaming(to, piece, part), to += part; });
  }
  /// Copies `bytes` from `from` to the next pieces. Bytes beyond their end are dropped.
  void scatter(const std::byte* from, std::size_t bytes) noexcept {
    walk(bytes, [&from](std::byte* piece, std::size_t part) { std::memcpy(piece, from, part), from += part; });
  }
  void scatter_ahead(const std::byte* from, std::size_t bytes) noexcept {
    walk(bytes, [&from](std::byte* piece, std::size_t part) { copy_ahead(piece, from, part), from += part; });
  }

 private:
  template <class Copy>
  void walk(std::size_t bytes, Copy copy) noexcept {
    while (bytes > 0 && !pieces_.empty()) {
      const iovec& piece = pieces_.front();
      const std::size_t part = std::min(bytes, piece.iov_len - offset_);
      if (part > 0) copy(static_cast<std::byte*>(piece.iov_base) + offset_, part);
      bytes -= part;
      offset_ += part;
      if (offset_ == piece.iov_len) {
        pieces_ = pieces_.subspan(1);
        offset_ = 0;
      }
    }
  }

  std::span<const iovec> pieces_{};
  std::size_t offset_ = 0;  ///< into the first of pieces_
};

}  // namespace tandem::comm::internal
