// tandem/comm/transport/connection_proof.hpp: how both ends of a connection prove that they know their job's secret.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "tandem/base/ids.hpp"
#include "tandem/comm/bootstrap/job.hpp"
#include "tandem/comm/bootstrap/proof.hpp"

namespace tandem::comm {

/// What one rank says about itself on each of its connections, and the secret that it never says.
struct ProofParty {
  base::Rank rank{0};
  std::uint32_t size = 1;          ///< ranks of the job; a peer's rank is below it
  std::uint32_t wire_version = 0;  ///< of what follows the proof
  std::string version;             ///< of Tandem, for the message when wire versions differ; 27 bytes of it are sent
  std::string job_id;
  JobSecret secret{};
};

/// One end's part of the proof, without any I/O: the owner moves bytes from `output` to the connection and from the
/// connection to `input`, in any pieces, until the state is not `working` and the output is empty. Not thread-safe.
///
///     opener    hello    magic, wire version, version, own rank, peer's rank, rail, nonce      88 bytes
///     accepter  answer   magic, wire version, version, nonce, proof of (job, hello, answer)     104 bytes
///     opener    proof    proof of (job, hello, answer)                                          32 bytes
///     accepter  welcome  a constant: the opener may send                                       8 bytes
///
/// A proof (bootstrap/proof.hpp) covers the job's id and both messages without their own proof; its purpose is the
/// role. The hello names both ranks and the rail, so that a proof is good for one connection. An end trusts only bytes
/// that the secret covers, so it finds different wire versions after the proof, and then refuses. This protects against
/// strangers that can reach the port. It does not encrypt what follows.
class ConnectionProof {
 public:
  enum class State {
    working,
    proved,   ///< the peer knows the secret, and the bytes after this are the connection's own
    refused,  ///< see `reason`; the connection is to be closed once `output` is empty
  };

  /// Makes the end that opened a connection to `peer`. `party` outlives the proof.
  static ConnectionProof opener(const ProofParty& party, base::Rank peer, std::uint32_t rail);
  /// Makes the end that accepted a connection. `party` outlives the proof.
  static ConnectionProof accepter(const ProofParty& party);

  State state() const noexcept { return state_; }
  /// Bytes to send next; empty: nothing now.
  std::span<const std::byte> output() const noexcept {
    return std::span(output_).first(output_end_).subspan(output_begin_);
  }
  void sent(std::size_t bytes) noexcept;
  /// Where bytes from the connection go; never longer than what belongs to the proof, and empty unless `working`.
  std::span<std::byte> input() noexcept;
  /// Takes `bytes` bytes that were put at the beginning of `input()`.
  State received(std::size_t bytes);

  /// Whether the peer proved that it knows the secret; true also when it was refused for its wire version.
  bool authentic() const noexcept { return authentic_; }
  /// For an accepter: the rank that opened. Meaningful once `authentic`.
  base::Rank peer() const noexcept { return peer_; }
  std::uint32_t rail() const noexcept { return rail_; }
  /// Why the peer was refused: a sentence's end, after "it ...".
  const std::string& reason() const noexcept { return reason_; }

  static constexpr std::size_t magic_bytes = 8;
  static constexpr std::size_t hello_bytes = 88;
  static constexpr std::size_t answer_bytes = 104;
  static constexpr std::size_t proof_bytes = 32;
  static constexpr std::size_t welcome_bytes = 8;

 private:
  enum class Step { hello, answer, proof, welcome };  ///< the awaited message

  ConnectionProof(const ProofParty& party, Step awaited) : party_(&party), step_(awaited) {}
  std::size_t step_bytes() const noexcept;
  void advance();
  void take_hello();
  void take_answer();
  void take_proof();
  void take_welcome();
  void check_versions(const std::byte* message);
  void refuse(std::string reason);
  void send(std::span<const std::byte> bytes);
  internal::Proof prove(std::string_view role) const;
  bool proves(std::string_view role, std::span<const std::byte> proof) const;

  const ProofParty* party_;
  Step step_;
  State state_ = State::working;
  bool authentic_ = false;
  base::Rank peer_{0};
  std::uint32_t rail_ = 0;
  std::size_t received_ = 0;
  std::size_t output_begin_ = 0;
  std::size_t output_end_ = 0;
  std::array<std::byte, answer_bytes> input_{};
  std::array<std::byte, answer_bytes> output_{};
  std::array<std::byte, hello_bytes> hello_{};                      ///< as it was on the wire
  std::array<std::byte, answer_bytes - proof_bytes> answer_head_{};  ///< the answer without its proof
  std::string reason_;
};

}  // namespace tandem::comm
