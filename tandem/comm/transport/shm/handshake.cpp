// tandem/comm/transport/shm/handshake.cpp: the messages by which two ranks come to share memory.
#include "tandem/comm/transport/shm/handshake.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstring>

#include <fmt/core.h>

#include "tandem/base/host.hpp"
#include "tandem/comm/bootstrap/secret.hpp"

namespace tandem::comm::internal {
namespace {

constexpr std::size_t kProvenBytes = offsetof(HandshakeMessage, proof);
constexpr std::string_view kPurpose = "tandem shm";  // the message's kind says whose proof it is

std::span<const std::byte> proven_part(const HandshakeMessage& message) {
  return std::as_bytes(std::span(&message, 1)).first(kProvenBytes);
}

/// Removes the text before the next separator from `rest`.
std::string_view next_field(std::string_view& rest) {
  const std::size_t end = std::min(rest.find(';'), rest.size());
  const std::string_view field = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return field;
}

std::string printable(std::string_view text, std::size_t most) {
  std::string kept;
  for (const char c : text.substr(0, most))
    kept += std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '.' ? c : '_';
  return kept;
}

}  // namespace

std::string ShmCard::text() const { return fmt::format("{};{};{};{}", format, boot_id, network, name); }

std::optional<ShmCard> ShmCard::parse(std::string_view text) {
  ShmCard card;
  const std::string_view format = next_field(text);
  const auto [end, error] = std::from_chars(format.data(), format.data() + format.size(), card.format);
  if (error != std::errc{} || end != format.data() + format.size()) return std::nullopt;
  card.boot_id = next_field(text);
  card.network = next_field(text);
  card.name = next_field(text);
  constexpr std::size_t kMostNameBytes = 100;
  if (card.boot_id.empty() || card.network.empty() || card.name.empty() || card.name.size() > kMostNameBytes ||
      !text.empty())
    return std::nullopt;
  return card;
}

base::Result<ShmCard> make_card(std::string_view job_id, Rank rank) {
  const base::HostIdentity host = base::host_identity();
  if (!host.known()) {
    return base::Error{
        base::ErrorCode::unsupported,
        "shm: /proc does not show the boot id and the network namespace; mount /proc, or choose another transport"};
  }
  ShmCard card;
  card.boot_id = host.boot_id;
  card.network = fmt::format("{}:{}", host.namespace_device, host.namespace_inode);
  card.name = fmt::format("tandem-{}-{}-{}", printable(job_id, 40), rank.value(), random_name(8));
  return card;
}

std::string_view name_of(Refusal refusal) noexcept {
  switch (refusal) {
    case Refusal::none: return "no reason";
    case Refusal::crossed: return "it is calling itself";
    case Refusal::proof: return "its job has another secret";
    case Refusal::format: return "its build shares memory in another format";
    case Refusal::known: return "it has a link to this rank already, or has closed it";
    case Refusal::resources: return "it is out of memory";
    case Refusal::busy: return "it is out of descriptors";
  }
  return "an unknown reason";
}

void prove(HandshakeMessage& message, const JobSecret& secret, const Nonce& other_nonce) {
  message.proof = internal::prove(secret, kPurpose, {proven_part(message), other_nonce});
}

bool is_proven(const HandshakeMessage& message, const JobSecret& secret, const Nonce& other_nonce) {
  return proves(secret, kPurpose, {proven_part(message), other_nonce}, message.proof);
}

std::optional<HandshakeMessage> read_message(std::span<const std::byte> bytes, MessageKind kind) {
  HandshakeMessage message;
  if (bytes.size() != sizeof message) return std::nullopt;
  std::memcpy(&message, bytes.data(), sizeof message);
  if (message.magic != HandshakeMessage::kMagic) return std::nullopt;
  const bool refused = message.kind == MessageKind::refusal && kind != MessageKind::hello;
  if (message.kind != kind && !refused) return std::nullopt;
  return message;
}

}  // namespace tandem::comm::internal
