// tools/trace/protobuf_writer.hpp: writes messages in the wire format of protocol buffers, field by field, without
// their library.
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>

#include "tandem/base/utf8.hpp"

namespace tandem::tools {

/// A message that grows. The caller knows the numbers and types of fields; fields that are left out have their
/// defaults. https://protobuf.dev/programming-guides/encoding: a field is a varint of its number and wire type, then
/// its value.
class ProtobufMessage {
 public:
  /// Adds a uint32, uint64, bool, enum, int32 or int64, given by its bits.
  ProtobufMessage& integer(std::uint32_t field, std::uint64_t value) {
    key(field, 0);
    varint(value);
    return *this;
  }
  ProtobufMessage& fixed64(std::uint32_t field, std::uint64_t value) {
    key(field, 1);
    for (unsigned byte = 0; byte < 8; ++byte) bytes_ += static_cast<char>(value >> 8 * byte);
    return *this;
  }
  ProtobufMessage& real(std::uint32_t field, double value) {
    return fixed64(field, std::bit_cast<std::uint64_t>(value));
  }
  /// Adds a string, which must be UTF-8: readers refuse the whole file otherwise. Other bytes become U+FFFD.
  ProtobufMessage& text(std::uint32_t field, std::string_view value) { return raw(field, base::as_utf8(value)); }
  /// Adds bytes, or the fields of a message.
  ProtobufMessage& raw(std::uint32_t field, std::string_view value) {
    key(field, 2);
    varint(value.size());
    bytes_ += value;
    return *this;
  }
  ProtobufMessage& message(std::uint32_t field, const ProtobufMessage& value) { return raw(field, value.bytes_); }

  const std::string& bytes() const noexcept { return bytes_; }
  bool empty() const noexcept { return bytes_.empty(); }
  void clear() noexcept { bytes_.clear(); }

 private:
  void key(std::uint32_t field, std::uint32_t wire_type) { varint(std::uint64_t{field} << 3 | wire_type); }
  void varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
  }

  std::string bytes_;
};

}  // namespace tandem::tools
