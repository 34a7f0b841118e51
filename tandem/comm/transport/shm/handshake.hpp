// tandem/comm/transport/shm/handshake.hpp: the messages by which two ranks come to share memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "tandem/base/result.hpp"
#include "tandem/comm/bootstrap/job.hpp"
#include "tandem/comm/bootstrap/proof.hpp"
#include "tandem/comm/transport/shm/segment.hpp"

namespace tandem::comm::internal {

/// Changes with the layout of anything that two processes share: the messages below, Hub, Segment, records.
inline constexpr std::uint32_t kShmFormat = 4;

/// Where a rank listens, and which ranks can connect. As text, it is the transport's published address.
struct ShmCard {
  std::string boot_id;     ///< of the running kernel
  std::string network;     ///< device and inode of the network namespace
  std::string name;        ///< abstract name of the listening socket
  std::uint32_t format = kShmFormat;

  std::string text() const;
  static std::optional<ShmCard> parse(std::string_view text);
};

/// Boot id and network namespace of this process, with a fresh name for a rank of a job.
base::Result<ShmCard> make_card(std::string_view job_id, Rank rank);

/// The handshake, one message each on a SOCK_SEQPACKET socket. The called side sends a challenge. The caller proves
/// that it has the job's secret, and passes a segment, its hub's page and its doorbell. The called side proves that,
/// too, and passes its hub's page and doorbell, or it refuses. A proof covers the purpose, both nonces, and the whole
/// message.
enum class MessageKind : std::uint32_t { challenge = 1, hello = 2, welcome = 3, refusal = 4 };

enum class Refusal : std::uint32_t {
  none = 0,
  crossed = 1,    ///< both ranks called each other, and the lower rank's call counts: wait for it
  proof = 2,      ///< the secret is wrong
  format = 3,     ///< another `kShmFormat`
  known = 4,      ///< this rank is attached already, or was lost
  resources = 5,  ///< no memory
  busy = 6,       ///< no descriptors now: try again
};
std::string_view name_of(Refusal refusal) noexcept;

/// The one layout of all messages; fields that a kind does not use are 0.
struct HandshakeMessage {
  static constexpr std::uint64_t kMagic = 0x6d68736d65646e74;  // "tndemshm"

  std::uint64_t magic = kMagic;
  std::uint32_t format = kShmFormat;
  MessageKind kind = MessageKind::challenge;
  std::uint32_t from = 0;           ///< rank
  std::uint32_t to = 0;             ///< rank
  RingSizes sizes{0, 0};            ///< hello
  std::uint64_t probe_address = 0;  ///< hello, welcome: where the sender's memory holds its nonce; 0: no remote copies
  Refusal refusal = Refusal::none;
  std::uint32_t unused = 0;
  Nonce nonce{};
  Proof proof{};
};
static_assert(std::is_trivially_copyable_v<HandshakeMessage> && sizeof(HandshakeMessage) == 120);

/// The proof (bootstrap/proof.hpp) covers the message without its proof, and the nonce that the other side chose.
void prove(HandshakeMessage& message, const JobSecret& secret, const Nonce& other_nonce);
bool is_proven(const HandshakeMessage& message, const JobSecret& secret, const Nonce& other_nonce);

/// The message in `bytes`, if it has the form of one of this kind: length, magic, kind. Not its format version.
std::optional<HandshakeMessage> read_message(std::span<const std::byte> bytes, MessageKind kind);

}  // namespace tandem::comm::internal
