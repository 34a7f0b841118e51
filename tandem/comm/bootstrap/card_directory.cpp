// tandem/comm/bootstrap/card_directory.cpp: what is checked before a peer's card is believed.
#include "tandem/comm/bootstrap/card_directory.hpp"

#include <fmt/core.h>

#include "tandem/comm/bootstrap/card.hpp"

namespace tandem::comm::internal {

using base::Error;
using base::ErrorCode;
using base::Result;

Result<void> CardDirectory::publish(const PeerCard& card) {
  auto bytes = encode_card(card);
  if (!bytes) return bytes.error();
  {
    const std::scoped_lock lock(mutex_);
    if (own_ != nullptr)
      return Error{ErrorCode::invalid_argument, fmt::format("rank {} has published its card already", self_.value())};
    own_ = std::make_unique<PeerCard>(card);
  }
  return store_->put(Entry::card, bytes.value());
}

std::optional<Result<PeerCard>> CardDirectory::lookup_now(Rank peer) {
  if (peer.value() >= size_) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("there is no rank {}: this job has ranks 0 to {}", peer.value(), size_ - 1)};
  }
  const std::scoped_lock lock(mutex_);
  if (own_ == nullptr)
    return Error{ErrorCode::invalid_argument, fmt::format("rank {} looks for others before it published", self_.value())};
  if (peer == self_) return *own_;
  if (const auto found = known_.find(peer); found != known_.end()) return found->second;
  return std::nullopt;
}

Result<PeerCard> CardDirectory::lookup(Rank peer) {
  if (auto known = lookup_now(peer)) return *std::move(known);
  PeerCard own;
  {
    const std::scoped_lock lock(mutex_);
    own = *own_;
  }
  auto bytes = store_->get(Entry::card, peer, 0);
  if (!bytes) return bytes.error();
  auto card = read(peer, bytes.value(), own);
  if (!card) return card;
  const std::scoped_lock lock(mutex_);
  return known_.emplace(peer, std::move(card).value()).first->second;
}

Result<PeerCard> CardDirectory::read(Rank peer, const std::string& bytes, const PeerCard& own) const {
  auto card = decode_card(bytes, own.wire_version);
  if (!card)
    return Error{card.error().code, fmt::format("what rank {} published cannot be read: {}", peer.value(), card.error().message)};
  if (card.value().wire_version != own.wire_version) {
    return Error{ErrorCode::unsupported,
                 fmt::format("rank {} runs Tandem {} with wire format {}, rank {} runs Tandem {} with wire format {}: they "
                             "cannot speak to each other; start one build everywhere",
                             peer.value(), card.value().version, card.value().wire_version, self_.value(), own.version,
                             own.wire_version)};
  }
  return card;
}

}  // namespace tandem::comm::internal
