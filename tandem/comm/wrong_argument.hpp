// tandem/comm/wrong_argument.hpp: what a program is told that asks an endpoint for what cannot be.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "tandem/base/ids.hpp"

namespace tandem::comm::internal {

// All throw UsageError, and are apart from the paths that check.

/// `call`: the member of Endpoint, as "isend".
[[noreturn, gnu::cold, gnu::noinline]] void throw_no_such_rank(std::string_view call, base::Rank rank, std::uint32_t size);
[[noreturn, gnu::cold, gnu::noinline]] void throw_long_header(std::string_view call, std::size_t bytes);
[[noreturn, gnu::cold, gnu::noinline]] void throw_to_itself(std::string_view call, base::Rank rank);
/// `supply` before the receiver has taken the message, or twice, or with another number of bytes.
[[noreturn, gnu::cold, gnu::noinline]] void throw_not_placed();
[[noreturn, gnu::cold, gnu::noinline]] void throw_wrong_supply(std::uint64_t announced, std::uint64_t bytes);
/// `what`: the subject of the sentence, plural. `count` times `bytes`, or `bytes` and `more`, overflow.
[[noreturn, gnu::cold, gnu::noinline]] void throw_too_many(std::string_view what, std::uint64_t count, std::uint64_t bytes);
[[noreturn, gnu::cold, gnu::noinline]] void throw_too_long(std::string_view what, std::uint64_t bytes, std::uint64_t more);
/// `channel`: its name; empty: the default channel.
[[noreturn, gnu::cold, gnu::noinline]] void throw_second_handler(std::string_view channel);
[[noreturn, gnu::cold, gnu::noinline]] void throw_same_channel(std::string_view name, std::string_view other);

}  // namespace tandem::comm::internal
