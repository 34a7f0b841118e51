// tandem/comm/bootstrap/card.hpp: a peer's address as bytes.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "tandem/base/result.hpp"
#include "tandem/comm/bootstrap/job.hpp"

namespace tandem::comm::internal {

/// Limit of a peer's encoded address: UCX with many devices takes 4096 bytes, other transports and names some hundred.
inline constexpr std::size_t most_card_bytes = 8192;

/// Encodes an address. Errors: invalid_argument when the result is larger than `most_card_bytes`.
base::Result<std::string> encode_card(const PeerCard& card);

/// Reads what encode_card wrote, also that of another version of Tandem: then only `wire_version` and `version` are
/// set. Errors: malformed.
base::Result<PeerCard> decode_card(std::string_view bytes, std::uint32_t our_wire_version);

}  // namespace tandem::comm::internal
