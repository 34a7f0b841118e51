// tandem/dist/message_head.hpp: the header of a value in a message between ranks.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>

#include "tandem/runtime/task/task.hpp"

namespace tandem::dist {

/// The header of every message. The description of the failure follows it for a version that does not exist.
struct MessageHead {
  std::uint32_t version = 0;
  std::uint32_t flags = 0;
  runtime::TaskId failure = 0;  ///< position of the failure in the flow; only with `kFailed`
  std::uint64_t rank = 0;       ///< rank of the failure; only with `kFailed`

  static constexpr std::size_t kShort = 8;
  static constexpr std::uint32_t kFailed = 1;
  static constexpr std::uint32_t kLowerBound = 2;  ///< `version` is a lower bound

  /// Whether this may be the version that the receiver expects, `exactly` or as a lower bound.
  bool may_be(std::uint32_t expected, bool exactly) const noexcept {
    const bool not_below = (flags & kLowerBound) != 0 || version >= expected;
    return not_below && (!exactly || version <= expected);
  }
  bool failed() const noexcept { return (flags & kFailed) != 0; }

  /// Reads the header of a message from another rank. No value: it is shorter than it says.
  static std::optional<MessageHead> read(std::span<const std::byte> header) noexcept {
    MessageHead head;
    if (header.size() < kShort) return std::nullopt;
    std::memcpy(&head, header.data(), std::min(header.size(), sizeof head));
    if (head.failed() && header.size() < sizeof head) return std::nullopt;
    return head;
  }
  /// Description of the failure in a header that `read` accepted.
  static std::string_view description(std::span<const std::byte> header) noexcept {
    const auto text = header.subspan(sizeof(MessageHead));
    return {reinterpret_cast<const char*>(text.data()), text.size()};
  }
};

}  // namespace tandem::dist
