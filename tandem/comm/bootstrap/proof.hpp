// tandem/comm/bootstrap/proof.hpp: how one end of a conversation proves to the other that it knows the job's secret.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <initializer_list>
#include <span>
#include <string_view>

#include "tandem/comm/bootstrap/job.hpp"

namespace tandem::comm::internal {

// The common part of all handshakes (rendezvous, shm, tcp, ucx). Each end draws a nonce and sends it; each then proves
// a statement that contains both nonces. So a recorded proof is worthless later. The purpose names the protocol and,
// where both ends prove the same parts, the role: an end cannot send a proof back to its author, nor use it in another
// protocol. The secret itself is never sent.

/// Random bytes that never repeat.
using Nonce = std::array<std::byte, 32>;
Nonce fresh_nonce();

/// What only a holder of the secret can compute about a statement.
using Proof = std::array<std::byte, 32>;

/// One part of a statement: bytes of any number. Refers to them.
class StatementPart {
 public:
  template <std::convertible_to<std::string_view> Text>
  StatementPart(const Text& text) noexcept : bytes_(std::as_bytes(std::span(std::string_view(text)))) {}
  template <std::convertible_to<std::span<const std::byte>> Bytes>
  StatementPart(const Bytes& bytes) noexcept : bytes_(bytes) {}

  std::span<const std::byte> bytes() const noexcept { return bytes_; }

 private:
  std::span<const std::byte> bytes_;
};

/// HMAC-SHA-512-256 under the secret over the purpose and the parts, each behind its length (32 bits, little-endian):
/// no two statements give the same bytes. Thread-safe; a microsecond for a few hundred bytes.
Proof prove(const JobSecret& secret, std::string_view purpose, std::initializer_list<StatementPart> parts);

/// Whether `proof`, of any length, equals `prove` of these arguments. Takes a time independent of its content.
/// Thread-safe.
bool proves(const JobSecret& secret, std::string_view purpose, std::initializer_list<StatementPart> parts,
            StatementPart proof);

}  // namespace tandem::comm::internal
