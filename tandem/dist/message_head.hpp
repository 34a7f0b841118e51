// tandem/dist/message_head.hpp: what goes before a value from rank to rank.
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
  runtime::TaskId failure = 0;  ///< its position in the flow; only sent with `kFailed`
  std::uint64_t rank = 0;       ///< where it happened; the same

  static constexpr std::size_t kShort = 8;
  static constexpr std::uint32_t kFailed = 1;
  static constexpr std::uint32_t kLowerBound = 2;  ///< `version` is a lower bound

  /// This may be the version that the receiver expects, `exactly` or as a lower bound.
  bool may_be(std::uint32_t expected, bool exactly) const noexcept {
    const bool not_below = (flags & kLowerBound) != 0 || version >= expected;
    return not_below && (!exactly || version <= expected);
  }
  bool failed() const noexcept { return (flags & kFailed) != 0; }

  /// Of a header that came from another rank. Nothing: it is shorter than what it says it is.
  static std::optional<MessageHead> read(std::span<const std::byte> header) noexcept {
    MessageHead head;
    if (header.size() < kShort) return std::nullopt;
    std::memcpy(&head, header.data(), std::min(header.size(), sizeof head));
    if (head.failed() && header.size() < sizeof head) return std::nullopt;
    return head;
  }
  /// What `read` found to be one of a failure: its description.
  static std::string_view description(std::span<const std::byte> header) noexcept {
    const auto text = header.subspan(sizeof(MessageHead));
    return {reinterpret_cast<const char*>(text.data()), text.size()};
  }
};

}  // namespace tandem::dist
