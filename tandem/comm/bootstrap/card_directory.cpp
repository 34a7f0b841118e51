// tandem/comm/bootstrap/card_directory.cpp: what is checked before a peer's address is believed.
#include "tandem/comm/bootstrap/card_directory.hpp"

#include <algorithm>

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
    return Error{ErrorCode::invalid_argument,
                 fmt::format("rank {} looks for others before it published", self_.value())};
  if (peer == self_) return *own_;
  if (const auto found = known_.find(peer); found != known_.end()) return found->second;
  return std::nullopt;
}

Result<PeerCard> CardDirectory::lookup(Rank peer) {
  if (auto known = lookup_now(peer)) return *std::move(known);
  auto bytes = store_->get(Entry::card, peer, 0);
  if (!bytes) return bytes.error();
  return take(peer, bytes.value());
}

std::optional<Result<PeerCard>> CardDirectory::lookup_for(Rank peer, std::int64_t slice_ns) {
  if (auto known = lookup_now(peer)) return known;
  const auto now = std::chrono::steady_clock::now();
  std::int64_t left_ns = 0;
  {
    const std::scoped_lock lock(mutex_);
    const auto first = asked_.emplace(peer, now).first->second;
    left_ns = store_->patience_ns() - std::chrono::nanoseconds(now - first).count();
  }
  auto bytes = store_->get(Entry::card, peer, std::clamp<std::int64_t>(left_ns, 1, slice_ns));
  if (bytes) return take(peer, bytes.value());
  if (bytes.error().code != ErrorCode::exhausted) return bytes.error();
  if (left_ns > slice_ns) return std::nullopt;
  return Error{
      ErrorCode::exhausted,
      fmt::format("rank {} waited {} s for rank {}, which has not published where it can be reached: does it run? "
                  "(comm.start_timeout says how long a rank waits)",
                  self_.value(), store_->patience_ns() / 1'000'000'000, peer.value())};
}

Result<PeerCard> CardDirectory::take(Rank peer, const std::string& bytes) {
  PeerCard own;
  {
    const std::scoped_lock lock(mutex_);
    own = *own_;
  }
  auto card = read(peer, bytes, own);
  if (!card) return card;
  const std::scoped_lock lock(mutex_);
  asked_.erase(peer);
  return known_.emplace(peer, std::move(card).value()).first->second;
}

Result<PeerCard> CardDirectory::read(Rank peer, const std::string& bytes, const PeerCard& own) const {
  auto card = decode_card(bytes, own.wire_version);
  if (!card)
    return Error{card.error().code,
                 fmt::format("what rank {} published cannot be read: {}", peer.value(), card.error().message)};
  if (card.value().wire_version != own.wire_version) {
    return Error{
        ErrorCode::unsupported,
        fmt::format("rank {} runs Tandem {} with wire format {}, rank {} runs Tandem {} with wire format {}: they "
                    "cannot speak to each other; start one build everywhere",
                    peer.value(), card.value().version, card.value().wire_version, self_.value(), own.version,
                    own.wire_version)};
  }
  return card;
}

}  // namespace tandem::comm::internal
