// tandem/comm/wrong_argument.hpp: errors of calls with arguments that an endpoint cannot use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "tandem/base/ids.hpp"

namespace tandem::comm::internal {

// All functions throw UsageError; they are separate from the paths that check.

/// `call` is the member of Endpoint, such as "isend".
[[noreturn, gnu::cold, gnu::noinline]] void throw_no_such_rank(std::string_view call, base::Rank rank,
                                                               std::uint32_t size);
[[noreturn, gnu::cold, gnu::noinline]] void throw_long_header(std::string_view call, std::size_t bytes);
[[noreturn, gnu::cold, gnu::noinline]] void throw_to_itself(std::string_view call, base::Rank rank);
/// Thrown for `supply` before the receiver has taken the message, a second time, or with another number of bytes.
[[noreturn, gnu::cold, gnu::noinline]] void throw_not_placed();
[[noreturn, gnu::cold, gnu::noinline]] void throw_wrong_supply(std::uint64_t announced, std::uint64_t bytes);
/// `what` is the plural subject of the sentence. `count` times `bytes`, or `bytes` and `more`, overflow.
[[noreturn, gnu::cold, gnu::noinline]] void throw_too_many(std::string_view what, std::uint64_t count,
                                                           std::uint64_t bytes);
[[noreturn, gnu::cold, gnu::noinline]] void throw_too_long(std::string_view what, std::uint64_t bytes,
                                                           std::uint64_t more);
/// `channel` is its name; empty: the default channel.
[[noreturn, gnu::cold, gnu::noinline]] void throw_second_handler(std::string_view channel);
[[noreturn, gnu::cold, gnu::noinline]] void throw_same_channel(std::string_view name, std::string_view other);

}  // namespace tandem::comm::internal
