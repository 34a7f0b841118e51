// tandem/comm/bootstrap/bytes.hpp: numbers and texts as bytes, and frames on a stream. For start-up, not for the fast
// path.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "tandem/base/narrow.hpp"

namespace tandem::comm::internal {

/// A view of bytes as text; it lives as long as they do.
template <std::size_t N>
std::string_view text_of(const std::array<std::byte, N>& bytes) noexcept {
  return {reinterpret_cast<const char*>(bytes.data()), N};
}

/// Appends numbers (little-endian) and texts (a 32-bit length, then the bytes) to a string.
class ByteWriter {
 public:
  ByteWriter& u8(std::uint8_t value) { return number(value, 1); }
  ByteWriter& u32(std::uint32_t value) { return number(value, 4); }
  ByteWriter& u64(std::uint64_t value) { return number(value, 8); }
  ByteWriter& raw(std::string_view bytes) { return bytes_.append(bytes), *this; }
  ByteWriter& text(std::string_view text) { return u32(base::narrow<std::uint32_t>(text.size())).raw(text); }
  std::string take() { return std::move(bytes_); }

 private:
  ByteWriter& number(std::uint64_t value, unsigned bytes) {
    for (unsigned i = 0; i < bytes; ++i) bytes_.push_back(static_cast<char>(value >> (8 * i)));
    return *this;
  }

  std::string bytes_;
};

/// Reads what a ByteWriter wrote, from bytes that are not trusted: missing values read as zero or empty, and ok() is
/// false from then on. Does not own the bytes.
class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : rest_(bytes) {}

  std::uint8_t u8() { return static_cast<std::uint8_t>(number(1)); }
  std::uint32_t u32() { return static_cast<std::uint32_t>(number(4)); }
  std::uint64_t u64() { return number(8); }
  std::string_view raw(std::size_t bytes) {
    if (!ok_ || bytes > rest_.size()) return ok_ = false, std::string_view();
    const std::string_view taken = rest_.substr(0, bytes);
    rest_.remove_prefix(bytes);
    return taken;
  }
  /// Texts longer than `most_bytes` are not ok.
  std::string_view text(std::size_t most_bytes) {
    const std::uint32_t bytes = u32();
    return bytes <= most_bytes ? raw(bytes) : (ok_ = false, std::string_view());
  }

  bool ok() const noexcept { return ok_; }
  bool finished() const noexcept { return ok_ && rest_.empty(); }
  std::string_view rest() const noexcept { return rest_; }

 private:
  std::uint64_t number(unsigned bytes) {
    std::uint64_t value = 0;
    unsigned shift = 0;
    for (const char byte : raw(bytes)) value |= std::uint64_t(static_cast<unsigned char>(byte)) << shift, shift += 8;
    return value;
  }

  std::string_view rest_;
  bool ok_ = true;
};

/// One message on a stream: its kind, then its body.
struct Frame {
  std::uint8_t kind = 0;
  std::string body;
};

/// A frame as bytes: a 32-bit length (of kind and body), the kind, the body.
inline std::string frame_bytes(std::uint8_t kind, std::string_view body) {
  return ByteWriter().u32(base::narrow<std::uint32_t>(body.size() + 1)).u8(kind).raw(body).take();
}

/// Cuts a stream into frames. Holds at most one frame's limit beyond what add() was given.
class FrameBuffer {
 public:
  explicit FrameBuffer(std::size_t most_bytes) : most_bytes_(most_bytes) {}

  /// Frames longer than this are malformed.
  void set_limit(std::size_t most_bytes) { most_bytes_ = most_bytes; }
  void add(std::string_view bytes) { bytes_.append(bytes); }

  /// True with the next frame; false when it is not complete, or when the stream is malformed (then always).
  bool next(Frame& frame) {
    if (malformed_ || bytes_.size() - begin_ < 4) return compact(), false;
    const std::uint32_t length = ByteReader(std::string_view(bytes_).substr(begin_)).u32();
    if (length == 0 || length > most_bytes_) return malformed_ = true, false;
    if (bytes_.size() - begin_ - 4 < length) return compact(), false;
    frame.kind = static_cast<std::uint8_t>(bytes_[begin_ + 4]);
    frame.body.assign(bytes_, begin_ + 5, length - 1);
    begin_ += 4 + length;
    return true;
  }

  bool malformed() const noexcept { return malformed_; }

 private:
  void compact() {
    bytes_.erase(0, begin_);
    begin_ = 0;
  }

  std::size_t most_bytes_;
  std::string bytes_;
  std::size_t begin_ = 0;  ///< index of the first byte that `next` has not taken
  bool malformed_ = false;
};

}  // namespace tandem::comm::internal
