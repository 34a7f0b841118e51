// tandem/dist/recipient_set.hpp: the ranks that have the current version of some data.
#pragma once

#include <cstdint>
#include <vector>

namespace tandem::dist {

/// A set of ranks, as bits. Threads: the submitting thread.
class RecipientSet {
 public:
  bool contains(std::uint32_t rank) const noexcept {
    return rank / 64 < words_.size() && (words_[rank / 64] >> rank % 64 & 1) != 0;
  }
  void add(std::uint32_t rank) {
    if (rank / 64 >= words_.size()) words_.resize(rank / 64 + 1, 0);
    words_[rank / 64] |= std::uint64_t{1} << rank % 64;
  }
  void remove(std::uint32_t rank) noexcept {
    if (rank / 64 < words_.size()) words_[rank / 64] &= ~(std::uint64_t{1} << rank % 64);
  }
  void clear() noexcept {
    for (std::uint64_t& word : words_) word = 0;
  }

 private:
  std::vector<std::uint64_t> words_;
};

}  // namespace tandem::dist
