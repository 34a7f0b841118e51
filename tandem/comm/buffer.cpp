// tandem/comm/buffer.cpp: pieces of memory, cut and copied.
#include "tandem/comm/buffer.hpp"

#include <cstring>
#include <utility>

#include "tandem/comm/wrong_argument.hpp"

namespace tandem::comm {
namespace {

/// `bytes` + `more`. Throws UsageError when the sum overflows.
std::size_t sum_of(std::size_t bytes, std::size_t more) {
  std::size_t sum = 0;
  if (__builtin_add_overflow(bytes, more, &sum)) internal::throw_too_long("the pieces of a buffer", bytes, more);
  return sum;
}

/// The bytes of all blocks, and those from the first byte to the last one, must fit into an address space.
std::size_t bytes_of(const MutableStrided& strided) {
  std::size_t bytes = 0, reach = 0;
  if (__builtin_mul_overflow(strided.block_bytes, strided.count, &bytes))
    internal::throw_too_many("the blocks of a strided buffer", strided.count, strided.block_bytes);
  if (strided.count > 1 && bytes > 0 && __builtin_mul_overflow(strided.stride_bytes, strided.count - 1, &reach))
    internal::throw_too_many("the strides of a strided buffer", strided.count - 1, strided.stride_bytes);
  return bytes;
}

}  // namespace

namespace internal {

PieceList::PieceList(std::span<const iovec> pieces) {
  pieces_.reserve(pieces.size());
  ends_.reserve(pieces.size());
  for (const iovec& piece : pieces) {
    if (piece.iov_len == 0) continue;
    bytes_ = sum_of(bytes_, piece.iov_len);
    pieces_.push_back(piece);
    ends_.push_back(bytes_);
  }
}

PieceList::PieceList(const MutableStrided& strided) : bytes_(bytes_of(strided)), strided_(strided) {}

}  // namespace internal

Pieces::Pieces(std::span<const iovec> pieces) {
  if (pieces.size() == 1) {
    all_ = pieces[0];
    return;
  }
  auto list = std::make_unique<const internal::PieceList>(pieces);
  if (list->count() == 1) {
    all_ = list->piece(0);
  } else if (list->count() > 1) {
    all_.iov_len = list->bytes();
    many_ = std::move(list);
  }
}

Pieces::Pieces(const MutableStrided& strided) : all_{nullptr, bytes_of(strided)} {
  if (strided.count <= 1 || strided.block_bytes == strided.stride_bytes || bytes() == 0) all_.iov_base = strided.first;
  else many_ = std::make_unique<const internal::PieceList>(strided);
}

void Pieces::slice(std::size_t offset, std::size_t bytes, std::vector<iovec>& out) const {
  if (many_ == nullptr) {
    TANDEM_DEBUG_ASSERT(offset <= this->bytes() && bytes <= this->bytes() - offset);
    if (bytes > 0) out.push_back(iovec{data() + offset, bytes});
    return;
  }
  many_->for_range(offset, bytes,
                   [&](std::byte* data, std::size_t part, std::size_t) { out.push_back(iovec{data, part}); });
}

void Pieces::scatter(std::size_t offset, std::span<const std::byte> from) const noexcept {
  many_->for_range(offset, from.size(), [&](std::byte* data, std::size_t part, std::size_t done) {
    std::memcpy(data, from.data() + done, part);
  });
}

void Pieces::gather(std::size_t offset, std::span<std::byte> to) const noexcept {
  many_->for_range(offset, to.size(), [&](std::byte* data, std::size_t part, std::size_t done) {
    std::memcpy(to.data() + done, data, part);
  });
}

}  // namespace tandem::comm
