// tandem/comm/bootstrap/rendezvous_wire.hpp: the messages between a rank and the rendezvous server.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "tandem/base/result.hpp"
#include "tandem/comm/bootstrap/job.hpp"

namespace tandem::comm::internal::rendezvous {

// The conversation over one TCP connection, in frames (bytes.hpp):
//
//   rank    hello(version, rank, size, nonce)
//   server  challenge(version, nonce)
//   rank    proof(of hello, challenge)                 now the server trusts the rank
//   server  welcome(job, proof of hello, challenge, job)  and the rank trusts the server
//   rank    publish(entry, bytes) once for each entry, lookup(entry, rank), who ...
//   server  published(entry, rank, bytes) or absent(rank, reason), as soon as it is known; unasked before the server
//   leaves server  missing(ranks), at once after who: those that have not published their address
//
// Instead of challenge or welcome the server may send refusal(reason) and close. Proofs: proof.hpp.

enum class Kind : std::uint8_t { hello = 1, challenge, proof, welcome, refusal, publish, lookup, published, absent, who, missing };

inline constexpr std::uint32_t magic = 0x4d444e54;  ///< "TNDM"
inline constexpr std::uint32_t version = 2;         ///< of this file
inline constexpr std::size_t most_unproved_bytes = 512;
inline constexpr std::size_t most_proved_bytes = 16384;
inline constexpr std::size_t most_reason_bytes = 500;
inline constexpr std::uint32_t most_missing = 64;  ///< ranks that an answer to `who` lists

/// Reads with builds of any version up to `size`, so that they can name each other.
struct Hello {
  std::uint32_t rendezvous_version = version;
  std::string tandem_version;
  std::uint32_t rank = 0;
  std::uint32_t size = 0;
  std::string nonce;

  std::string encode() const;
  /// Decodes a hello; of another version, only the versions. Errors: malformed.
  static base::Result<Hello> decode(std::string_view body);
};

/// What a rank learns when the server trusts it.
struct Membership {
  std::string job_id;
  std::uint32_t generation = 0;  ///< how many programs of this rank were members before

  std::string encode() const;
  static base::Result<Membership> decode(std::string_view body);
  /// The secret that the ranks of this generation share.
  JobSecret secret(const JobSecret& rendezvous_secret) const;
  /// "id" or "id.2": names files of this generation.
  std::string name() const;
};

/// Purposes of the two proofs (proof.hpp). The parts are the bodies of hello and challenge; the server adds the
/// membership.
inline constexpr std::string_view rank_purpose = "tandem rendezvous: rank";
inline constexpr std::string_view server_purpose = "tandem rendezvous: server";

/// "Tandem 0.1.0 (rendezvous format 1)".
std::string describe(std::string_view tandem_version, std::uint32_t rendezvous_version);

/// The version of this build, for messages.
std::string_view own_version();

}  // namespace tandem::comm::internal::rendezvous
