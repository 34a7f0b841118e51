// tandem/comm/bootstrap/card.cpp: versions first, in a place that never changes, so that any two builds can name them.
#include "tandem/comm/bootstrap/card.hpp"

#include <fmt/core.h>

#include "tandem/base/narrow.hpp"
#include "tandem/comm/bootstrap/bytes.hpp"

namespace tandem::comm::internal {
namespace {

constexpr std::uint32_t most_transports = 16;

}  // namespace

base::Result<std::string> encode_card(const PeerCard& card) {
  ByteWriter writer;
  writer.u32(card.wire_version).text(card.version).text(card.host).text(card.host_name);
  writer.u32(base::narrow<std::uint32_t>(card.transports.size()));
  for (const auto& [name, bytes] : card.transports) writer.text(name).text(bytes);
  writer.u64(card.credit_bytes).u32(card.credit_messages).u32(card.credit_announcements);
  std::string encoded = writer.take();
  if (encoded.size() > most_card_bytes || card.transports.size() > most_transports) {
    return base::Error{
        base::ErrorCode::invalid_argument,
        fmt::format("the card of this rank has {} transports in {} bytes; at most {} in {} can be published",
                    card.transports.size(), encoded.size(), most_transports, most_card_bytes)};
  }
  return encoded;
}

base::Result<PeerCard> decode_card(std::string_view bytes, std::uint32_t our_wire_version) {
  ByteReader reader(bytes);
  PeerCard card;
  card.wire_version = reader.u32();
  card.version = reader.text(most_card_bytes);
  if (reader.ok() && card.wire_version != our_wire_version) return card;
  card.host = reader.text(most_card_bytes);
  card.host_name = reader.text(most_card_bytes);
  const std::uint32_t count = reader.u32();
  for (std::uint32_t i = 0; i < count && i < most_transports && reader.ok(); ++i) {
    std::string name(reader.text(most_card_bytes));
    card.transports.emplace_back(std::move(name), reader.text(most_card_bytes));
  }
  card.credit_bytes = reader.u64();
  card.credit_messages = reader.u32();
  card.credit_announcements = reader.u32();
  if (!reader.finished() || count > most_transports)
    return base::Error{base::ErrorCode::malformed,
                       fmt::format("a card of {} bytes does not follow its format", bytes.size())};
  return card;
}

}  // namespace tandem::comm::internal
