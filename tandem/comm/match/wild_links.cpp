// tandem/comm/match/wild_links.cpp: the pool of wildcard links.
#include "tandem/comm/match/wild_links.hpp"

namespace tandem::comm::internal {

WildLink* WildLinkPool::take() {
  if (!free_) {
    Chunk& chunk = *chunks_.emplace_back(std::make_unique<Chunk>());
    for (std::size_t i = chunk.size(); i-- > 0;) {  // handed out by ascending address
      chunk[i].other = free_;
      free_ = &chunk[i];
    }
  }
  ++used_;
  WildLink* const link = free_;
  free_ = link->other;
  return link;
}

void WildLinkPool::give_back(WildLink* link) noexcept {
  link->other = free_;
  free_ = link;
  --used_;
}

void WildLinkPool::trim() noexcept {
  if (used_ > 0) return;
  chunks_.clear();
  chunks_.shrink_to_fit();
  free_ = nullptr;
}

}  // namespace tandem::comm::internal
