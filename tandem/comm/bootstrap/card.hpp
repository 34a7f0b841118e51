// tandem/comm/bootstrap/card.hpp: a peer's card as bytes.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "tandem/base/result.hpp"
#include "tandem/comm/bootstrap/job.hpp"

namespace tandem::comm::internal {

/// No card is larger: a transport of 4096 bytes (UCX with many devices), others of some hundred, and names.
inline constexpr std::size_t most_card_bytes = 8192;

/// Errors: invalid_argument when it would be larger than `most_card_bytes`.
base::Result<std::string> encode_card(const PeerCard& card);

/// Reads what encode_card wrote, also that of another version of Tandem: then only `wire_version` and `version` are set.
/// Errors: malformed.
base::Result<PeerCard> decode_card(std::string_view bytes, std::uint32_t our_wire_version);

}  // namespace tandem::comm::internal
