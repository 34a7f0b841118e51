// tandem/runtime/sched/queues/sums_by_priority.hpp: sums of a worker's durations by priority.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

#include "tandem/base/assert.hpp"
#include "tandem/base/splitmix64.hpp"

namespace tandem::runtime {

/// Durations of tasks by priority, and their sum from any priority on. A value; not thread-safe.
///
/// Up to `kFew` priorities are in an array, the highest first. More are in a treap (Seidel and Aragon 1996: Randomized
/// search trees): a binary search tree by priority that is a heap by random ranks, in which each node knows the sum of
/// its subtree. Its height is almost surely below three times the logarithm of the number of priorities. It becomes an
/// array again when half of `kFew` are left.
class SumsByPriority {
 public:
  static constexpr std::size_t kFew = 32;

  struct Sum {
    std::int64_t ns = 0;      ///< sum of the tasks' durations
    std::uint32_t tasks = 0;  ///< number of tasks
    Sum& operator+=(const Sum& other) noexcept { return ns += other.ns, tasks += other.tasks, *this; }
    Sum& operator-=(const Sum& other) noexcept { return ns -= other.ns, tasks -= other.tasks, *this; }
    bool operator==(const Sum&) const = default;
  };

  /// Adds a task of `priority` that takes `ns`.
  void add(std::int32_t priority, std::int64_t ns) {
    const Sum one{ns, 1};
    if (root_ == kNone) {
      auto at = place_of(priority);
      if (at != few_.end() && at->first == priority) return static_cast<void>(at->second += one);
      if (few_.size() < kFew) return static_cast<void>(few_.insert(at, {priority, one}));
      for (const auto& [known, sum] : std::exchange(few_, {})) add_to_tree(known, sum);
    }
    add_to_tree(priority, one);
  }
  /// Removes a task that was added.
  void remove(std::int32_t priority, std::int64_t ns) {
    const Sum one{ns, 1};
    if (root_ != kNone) {
      root_ = without(root_, priority, one);
      if (size() <= kFew / 2) to_array();
      return;
    }
    const auto at = place_of(priority);
    TANDEM_ASSERT(at != few_.end() && at->first == priority);
    at->second -= one;
    if (at->second.tasks == 0) few_.erase(at);
  }
  /// Sum over the tasks of `priority` and of higher ones.
  Sum from(std::int32_t priority) const noexcept {
    Sum sum;
    for (const auto& [known, here] : few_) {
      if (known < priority) return sum;
      sum += here;
    }
    for (Index at = root_; at != kNone;) {
      const Node& node = nodes_[at];
      if (node.priority < priority) {
        at = node.higher;
        continue;
      }
      sum += node.own;
      if (node.higher != kNone) sum += nodes_[node.higher].subtree;
      at = node.lower;
    }
    return sum;
  }
  /// Number of present priorities.
  std::size_t size() const noexcept { return few_.size() + nodes_.size() - free_.size(); }
  /// The most nodes that a call visits on its way down; 0: priorities are in the array. Walks everything. For tests.
  std::size_t height() const { return height_of(root_); }
  /// Whether all is as stated above, and the tasks are `all`. Walks everything.
  bool check_invariants(const Sum& all) const {
    Sum sum;
    for (std::size_t i = 0; i < few_.size(); ++i) {
      if (few_[i].second.tasks == 0 || (i > 0 && few_[i - 1].first <= few_[i].first)) return false;
      sum += few_[i].second;
    }
    if (root_ != kNone) sum += nodes_[root_].subtree;
    const bool is_one_of_both = few_.size() <= kFew && (few_.empty() || root_ == kNone);
    return is_one_of_both && sum == all && is_sound(root_, INT64_MIN, INT64_MAX);
  }

 private:
  using Index = std::uint32_t;
  static constexpr Index kNone = UINT32_MAX;
  struct Node {
    std::int32_t priority;
    Index higher = kNone, lower = kNone;  ///< subtrees of higher and of lower priorities
    std::uint32_t rank = 0;               ///< random; not less than any rank below it
    Sum own, subtree;
  };

  std::vector<std::pair<std::int32_t, Sum>>::iterator place_of(std::int32_t priority) noexcept {
    return std::ranges::lower_bound(few_, priority, std::ranges::greater(), &std::pair<std::int32_t, Sum>::first);
  }
  bool is_in_tree(std::int32_t priority) const noexcept {
    Index at = root_;
    while (at != kNone && nodes_[at].priority != priority)
      at = nodes_[at].priority < priority ? nodes_[at].higher : nodes_[at].lower;
    return at != kNone;
  }
  void add_to_tree(std::int32_t priority, const Sum& sum) {
    if (!is_in_tree(priority)) return static_cast<void>(root_ = with(root_, new_node(priority, sum)));
    for (Index at = root_;; at = nodes_[at].priority < priority ? nodes_[at].higher : nodes_[at].lower) {
      nodes_[at].subtree += sum;
      if (nodes_[at].priority != priority) continue;
      nodes_[at].own += sum;
      return;
    }
  }
  Index new_node(std::int32_t priority, const Sum& sum) {
    if (free_.empty()) {
      nodes_.emplace_back();
      free_.reserve(nodes_.capacity());  // so that `remove` needs no memory
      free_.push_back(static_cast<Index>(nodes_.size() - 1));
    }
    const Index node = free_.back();
    free_.pop_back();
    const auto rank = static_cast<std::uint32_t>(base::mix64(++ranks_));
    nodes_[node] = {.priority = priority, .rank = rank, .own = sum, .subtree = sum};
    return node;
  }
  void add_up(Node& node) noexcept {
    node.subtree = node.own;
    if (node.higher != kNone) node.subtree += nodes_[node.higher].subtree;
    if (node.lower != kNone) node.subtree += nodes_[node.lower].subtree;
  }
  /// Inserts `added`, whose priority the subtree of `at` does not have. Returns its new top.
  Index with(Index at, Index added) noexcept {
    if (at == kNone) return added;
    Node &here = nodes_[at], &node = nodes_[added];
    if (here.rank < node.rank) {
      std::tie(node.higher, node.lower) = split(at, node.priority);
      add_up(node);
      return added;
    }
    Index& below = here.priority < node.priority ? here.higher : here.lower;
    below = with(below, added);
    add_up(here);
    return at;
  }
  /// Splits the nodes below `at` into a tree of higher and one of lower priorities.
  std::pair<Index, Index> split(Index at, std::int32_t priority) noexcept {
    if (at == kNone) return {kNone, kNone};
    Node& node = nodes_[at];
    std::pair<Index, Index> parts;
    if (node.priority > priority) {
      parts = split(node.lower, priority);
      node.lower = std::exchange(parts.first, at);
    } else {
      parts = split(node.higher, priority);
      node.higher = std::exchange(parts.second, at);
    }
    add_up(node);
    return parts;
  }
  Index without(Index at, std::int32_t priority, const Sum& sum) noexcept {
    TANDEM_ASSERT(at != kNone);
    Node& node = nodes_[at];
    if (node.priority == priority) {
      node.own -= sum;
      if (node.own.tasks == 0) {
        free_.push_back(at);
        return joined(node.higher, node.lower);
      }
    } else {
      Index& below = node.priority < priority ? node.higher : node.lower;
      below = without(below, priority, sum);
    }
    add_up(node);
    return at;
  }
  /// Joins two trees; all priorities of the first are higher.
  Index joined(Index higher, Index lower) noexcept {
    if (higher == kNone) return lower;
    if (lower == kNone) return higher;
    const bool is_higher_first = nodes_[higher].rank >= nodes_[lower].rank;
    Node& top = nodes_[is_higher_first ? higher : lower];
    if (is_higher_first) top.lower = joined(top.lower, lower);
    else top.higher = joined(higher, top.higher);
    add_up(top);
    return is_higher_first ? higher : lower;
  }
  void to_array() {
    few_.reserve(kFew);
    collect(root_);
    nodes_.clear();
    free_.clear();
    root_ = kNone;
  }
  void collect(Index at) {
    if (at == kNone) return;
    collect(nodes_[at].higher);
    few_.emplace_back(nodes_[at].priority, nodes_[at].own);
    collect(nodes_[at].lower);
  }
  std::size_t height_of(Index at) const {
    return at == kNone ? 0 : 1 + std::max(height_of(nodes_[at].higher), height_of(nodes_[at].lower));
  }
  bool is_sound(Index at, std::int64_t above, std::int64_t below) const {
    if (at == kNone) return true;
    const Node& node = nodes_[at];
    Sum sum = node.own;
    for (const Index child : {node.higher, node.lower}) {
      if (child == kNone) continue;
      if (nodes_[child].rank > node.rank) return false;
      sum += nodes_[child].subtree;
    }
    const bool is_in_place = above < node.priority && node.priority < below;
    return node.own.tasks != 0 && is_in_place && sum == node.subtree && is_sound(node.higher, node.priority, below) &&
           is_sound(node.lower, above, node.priority);
  }

  std::vector<std::pair<std::int32_t, Sum>> few_;  ///< empty while there is a tree
  std::vector<Node> nodes_;
  std::vector<Index> free_;  ///< unused nodes
  Index root_ = kNone;
  std::uint64_t ranks_ = 0;  ///< number of ranks drawn
};

}  // namespace tandem::runtime
