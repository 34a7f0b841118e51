// tandem/runtime/memory/extents.hpp: which parts of a file are in use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "tandem/base/assert.hpp"

namespace tandem::runtime {

/// Places in a file that grows at its end, in bytes. A piece gets the smallest free extent that it fits into. Adjacent
/// free extents are merged; one at the end does not exist, so the file can be cut there. All operations except
/// `take_holes` take O(log n) for n free extents.
///
/// A free extent is a *hole* once the file system was told that it has no content. Used extents and free ones that are
/// no holes take room on the disk (`disk_bytes`).
///
/// Used by one thread at a time.
class Extents {
 public:
  struct Extent {
    std::uint64_t at = 0;
    std::uint64_t bytes = 0;
  };

  /// Takes a place for `bytes`, which are not 0.
  std::uint64_t take(std::uint64_t bytes) {
    used_ += bytes;
    const auto fits = by_size_.lower_bound({bytes, 0});
    if (fits == by_size_.end()) return std::exchange(end_, end_ + bytes);
    const auto [size, at] = *fits;
    const bool is_hole = remove(at);
    if (size > bytes) add(at + bytes, size - bytes, is_hole);
    return at;
  }

  /// Frees the piece at `at`, which `take` gave for `bytes`.
  void give_back(std::uint64_t at, std::uint64_t bytes) {
    TANDEM_ASSERT(at + bytes <= end_ && bytes <= used_);
    used_ -= bytes;
    const auto next = free_.lower_bound(at);
    TANDEM_ASSERT(next == free_.end() || at + bytes <= next->first);
    if (next != free_.begin()) {
      const auto before = std::prev(next);
      TANDEM_ASSERT(before->first + before->second.bytes <= at);
      if (before->first + before->second.bytes == at) {
        const std::uint64_t begin = before->first, size = before->second.bytes;
        remove(begin);
        at = begin;
        bytes += size;
      }
    }
    if (const auto behind = free_.find(at + bytes); behind != free_.end()) {
      const std::uint64_t size = behind->second.bytes;
      remove(at + bytes);
      bytes += size;
    }
    if (at + bytes == end_) end_ = at;
    else add(at, bytes, false);  // an adjacent hole becomes one again at the next `take_holes`
  }

  /// Returns the free extents that are no holes, and makes them holes.
  std::vector<Extent> take_holes() {
    std::vector<Extent> holes;
    for (auto& [at, extent] : free_)
      if (!std::exchange(extent.is_hole, true)) holes.push_back({at, extent.bytes});
    hole_bytes_ = end_ - used_;
    return holes;
  }

  /// Necessary length of the file.
  std::uint64_t end() const noexcept { return end_; }
  std::uint64_t used() const noexcept { return used_; }
  std::uint64_t disk_bytes() const noexcept { return end_ - hole_bytes_; }
  std::size_t free_count() const noexcept { return free_.size(); }

  /// Checks that the free extents and their two orders agree: O(n).
  bool check_invariants() const {
    std::uint64_t free_bytes = 0, holes = 0, last = 0;
    bool is_first = true;
    for (const auto& [at, extent] : free_) {
      if (extent.bytes == 0 || (!is_first && at <= last) || at + extent.bytes >= end_ ||
          !by_size_.contains({extent.bytes, at}))
        return false;
      is_first = false;
      last = at + extent.bytes;
      free_bytes += extent.bytes;
      holes += extent.is_hole ? extent.bytes : 0;
    }
    return by_size_.size() == free_.size() && free_bytes + used_ == end_ && holes == hole_bytes_;
  }

 private:
  struct Free {
    std::uint64_t bytes = 0;
    bool is_hole = false;
  };
  void add(std::uint64_t at, std::uint64_t bytes, bool is_hole) {
    free_.emplace(at, Free{bytes, is_hole});
    by_size_.emplace(bytes, at);
    if (is_hole) hole_bytes_ += bytes;
  }
  bool remove(std::uint64_t at) {
    const auto found = free_.find(at);
    const Free extent = found->second;
    by_size_.erase({extent.bytes, at});
    free_.erase(found);
    if (extent.is_hole) hole_bytes_ -= extent.bytes;
    return extent.is_hole;
  }

  std::map<std::uint64_t, Free> free_;                           ///< free extents by place
  std::set<std::pair<std::uint64_t, std::uint64_t>> by_size_;  ///< bytes and places of the free extents
  std::uint64_t end_ = 0;
  std::uint64_t used_ = 0;
  std::uint64_t hole_bytes_ = 0;
};

}  // namespace tandem::runtime
