// tandem/comm/buffer.cpp: pieces of memory, cut and copied.
#include "tandem/comm/buffer.hpp"

#include <algorithm>
#include <cstring>

namespace tandem::comm {
namespace {

/// Calls `take(data, bytes, done_before)` for each part of the range [offset, offset + bytes).
template <class Take>
void for_range(std::span<const iovec> pieces, std::size_t offset, std::size_t bytes, Take take) {
  std::size_t done = 0;
  for (const iovec& piece : pieces) {
    if (done == bytes) return;
    if (offset >= piece.iov_len) {
      offset -= piece.iov_len;
      continue;
    }
    const std::size_t part = std::min(piece.iov_len - offset, bytes - done);
    take(static_cast<std::byte*>(piece.iov_base) + offset, part, done);
    done += part;
    offset = 0;
  }
}

}  // namespace

Pieces::Pieces(std::span<const iovec> pieces) {
  if (pieces.size() == 1) {
    all_ = pieces[0];
    return;
  }
  for (const iovec& piece : pieces) all_.iov_len += piece.iov_len;
  if (pieces.size() > 1) many_ = std::make_unique<std::vector<iovec>>(pieces.begin(), pieces.end());
}

Pieces::Pieces(const MutableStrided& strided) : all_{nullptr, strided.block_bytes * strided.count} {
  if (strided.count <= 1 || strided.block_bytes == strided.stride_bytes) {
    all_.iov_base = strided.first;
    return;
  }
  many_ = std::make_unique<std::vector<iovec>>(strided.count);
  for (std::size_t i = 0; i < strided.count; ++i) {
    (*many_)[i] = iovec{static_cast<std::byte*>(strided.first) + i * strided.stride_bytes, strided.block_bytes};
  }
}

void Pieces::slice(std::size_t offset, std::size_t bytes, std::vector<iovec>& out) const {
  for_range(list(), offset, bytes, [&](std::byte* data, std::size_t part, std::size_t) { out.push_back(iovec{data, part}); });
}

void Pieces::scatter(std::size_t offset, std::span<const std::byte> from) const noexcept {
  for_range(list(), offset, from.size(),
            [&](std::byte* data, std::size_t part, std::size_t done) { std::memcpy(data, from.data() + done, part); });
}

void Pieces::gather(std::size_t offset, std::span<std::byte> to) const noexcept {
  for_range(list(), offset, to.size(),
            [&](std::byte* data, std::size_t part, std::size_t done) { std::memcpy(to.data() + done, data, part); });
}

}  // namespace tandem::comm
