// tandem/comm/match/wild_links.hpp: the links of unexpected messages in the wildcard indices, and where they come from.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <vector>

#include "tandem/comm/match/key_table.hpp"

namespace tandem::comm {
struct ArrivedEnvelope;
}

namespace tandem::comm::internal {

/// An unexpected message as seen by one class of wildcard receives.
struct WildLink : KeyLinks<WildLink> {
  ArrivedEnvelope* envelope = nullptr;
  WildLink* other = nullptr;  ///< of the same message in another class, or of the free list
  unsigned wild_class = 0;

  TableKey table_key() const noexcept;
  bool has_key(const TableKey& key) const noexcept;
  bool same_key(const WildLink& link) const noexcept;
};
static_assert(sizeof(WildLink) <= 64);

/// Makes links in chunks, since only messages on channels with wildcards need them. Not thread-safe.
class WildLinkPool {
 public:
  WildLink* take();
  void give_back(WildLink* link) noexcept;
  /// Frees the chunks when no link is in use.
  void trim() noexcept;
  std::size_t spare_bytes() const noexcept { return used_ == 0 ? memory_bytes() : 0; }
  std::size_t memory_bytes() const noexcept { return chunks_.size() * sizeof(Chunk); }

 private:
  using Chunk = std::array<WildLink, 64>;

  std::vector<std::unique_ptr<Chunk>> chunks_;
  WildLink* free_ = nullptr;
  std::size_t used_ = 0;
};

}  // namespace tandem::comm::internal
