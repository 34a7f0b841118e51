// tandem/comm/transport/ucx/hello.hpp: how two ranks prove over UCX that they belong to one job.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/comm/bootstrap/job.hpp"
#include "tandem/comm/bootstrap/proof.hpp"

namespace tandem::comm::internal::ucx {

/// What a peer needs to reach a worker and to answer its challenge: the transport's published address, decoded.
struct Card {
  Nonce nonce{};  ///< drawn by the transport: it has one link per peer, so that this is one challenge per link
  std::vector<std::byte> address;  ///< of the UCP worker
};

std::string encode(const Card& card);
/// Decodes a published address; empty when the bytes are none of this version.
std::optional<Card> decode_card(std::string_view bytes);

/// Two ranks of which the first sends to the second, with their nonces. A value.
struct Direction {
  Rank from{0}, to{0};
  Nonce from_nonce{}, to_nonce{};
};

/// The first message in each direction: rank, address, and a proof. With H for a proof (bootstrap/proof.hpp), it is
///   H("hello", from, to, nonce of from, nonce of to, address of from),
/// so that it can neither be made without the secret, nor replayed to another rank, nor to a later transport of the
/// same rank. Either side believes the other once it has its hello.
struct Hello {
  Rank from{0}, to{0};
  Card card;  ///< of `from`
  Proof proof{};
};

std::vector<std::byte> encode(const Hello& hello);
std::optional<Hello> decode_hello(std::span<const std::byte> bytes);

Hello make_hello(const JobSecret& secret, const Direction& direction, std::span<const std::byte> address);
/// Whether `hello`, which claims to come from `hello.from`, proves the secret to us, whose nonce is `our_nonce`.
bool proves(const JobSecret& secret, const Hello& hello, const Nonce& our_nonce);

/// What each packet of this direction carries: first eight bytes of H("session", from, to, nonces). UCX does not say
/// who sent an active message. This number does, since no process outside the job can guess it.
std::uint64_t session_number(const JobSecret& secret, const Direction& direction);

}  // namespace tandem::comm::internal::ucx
