// tandem/dist/flat_bytes.hpp: numbers and texts, one after the other, as the bytes of a message.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tandem::dist {

class FlatWriter {
 public:
  FlatWriter& number(std::uint64_t value) {
    const auto* from = reinterpret_cast<const std::byte*>(&value);
    bytes_.insert(bytes_.end(), from, from + sizeof value);
    return *this;
  }
  FlatWriter& text(std::string_view value) {
    number(value.size());
    const auto* from = reinterpret_cast<const std::byte*>(value.data());
    bytes_.insert(bytes_.end(), from, from + value.size());
    return *this;
  }
  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

/// Reads what `FlatWriter` has written. A missing number reads as 0, a missing text as empty, so a malformed message
/// does no harm.
class FlatReader {
 public:
  explicit FlatReader(std::span<const std::byte> bytes) : bytes_(bytes) {}
  std::uint64_t number() {
    std::uint64_t value = 0;
    if (bytes_.size() < sizeof value) {
      bytes_ = {};
      return 0;
    }
    std::memcpy(&value, bytes_.data(), sizeof value);
    bytes_ = bytes_.subspan(sizeof value);
    return value;
  }
  std::string text() {
    const std::uint64_t wanted = number();  // read before the size of the rest
    const std::size_t size = std::min<std::size_t>(wanted, bytes_.size());
    std::string value(reinterpret_cast<const char*>(bytes_.data()), size);
    bytes_ = bytes_.subspan(size);
    return value;
  }
  bool more() const noexcept { return !bytes_.empty(); }

 private:
  std::span<const std::byte> bytes_;
};

}  // namespace tandem::dist
