// tandem/comm/wire.cpp: the parts of writing and reading control blocks that need no template.
#include "tandem/comm/wire.hpp"

namespace tandem::comm::wire {

std::span<std::byte> Writer::claim(std::size_t bytes) noexcept {
  const std::size_t whole = padded(bytes);
  TANDEM_DEBUG_ASSERT(used_ + whole <= room_.size());
  std::byte* place = room_.data() + used_;
  if (whole != bytes) std::memset(place + whole - 8, 0, 8);
  used_ += whole;
  return {place, bytes};
}

void Writer::put_bytes(std::span<const std::byte> bytes) noexcept {
  if (bytes.empty()) return;
  std::memcpy(claim(bytes.size()).data(), bytes.data(), bytes.size());
}

Prefix Reader::peek() noexcept {
  Prefix prefix{};
  if (block_.size() - at_ < sizeof prefix) {
    ok_ = false;
  } else {
    std::memcpy(&prefix, block_.data() + at_, sizeof prefix);
  }
  return prefix;
}

std::span<const std::byte> Reader::get_bytes(std::size_t bytes) noexcept {
  // Compared without adding, since `bytes` may be anything.
  if (bytes > block_.size() - at_ || padded(bytes) > block_.size() - at_) {
    ok_ = false;
    return {};
  }
  const auto found = block_.subspan(at_, bytes);
  at_ += padded(bytes);
  return found;
}

}  // namespace tandem::comm::wire
