// tandem/comm/mcast/route.hpp: how the route of a broadcast is written: eight bytes for each recipient below. Pure.
//
// A route is a list of entries in preorder, one per recipient, each a 64-bit number in little-endian order:
//
//   bits  0 .. 21  rank                    of the job
//   bits 22 .. 37  subtree size            of this recipient, itself included: 1 .. 65535
//   bits 38 .. 53  priority                signed, saturated
//   bit  54        ordered                 opaque here: an earlier message names this one, see `fence`
//   bits 55 .. 63  fence                   opaque here
//
// The message to a recipient carries the entries of its subtree: its own first, then those of its children's subtrees
// one after the other, in the order in which it serves them. Forwarding to a child means sending a part of what came,
// unchanged: nothing is built.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tandem/base/ids.hpp"
#include "tandem/comm/mcast/tree.hpp"

namespace tandem::comm {

using base::Rank;

inline constexpr std::size_t route_entry_bytes = 8;
inline constexpr std::uint32_t max_route_entries = 65'535;    ///< of one strand
inline constexpr std::uint32_t max_route_rank = (1u << 22) - 1;
inline constexpr std::uint16_t max_route_fence = (1u << 9) - 1;

/// One recipient, unpacked.
struct RouteEntry {
  Rank rank;
  std::uint32_t subtree_size = 1;
  std::int32_t priority = 0;   ///< written as the nearest number of 16 bits
  bool ordered = false;
  std::uint16_t fence = 0;
  friend bool operator==(const RouteEntry&, const RouteEntry&) = default;
};

/// Writes and reads one entry at any alignment; `bytes` has at least `route_entry_bytes`. Reading accepts all bits.
void write_route_entry(const RouteEntry& entry, std::span<std::byte> bytes);
RouteEntry read_route_entry(std::span<const std::byte> bytes);
/// Writes these two fields of an existing entry.
void set_order(std::span<std::byte> entry, bool ordered, std::uint16_t fence);

/// The fields of a recipient's entry beside its place.
struct RouteRecipient {
  Rank rank;
  std::int32_t priority = 0;
  bool ordered = false;
  std::uint16_t fence = 0;
};

/// Writes the whole route of a strand into `bytes`, which is resized. `recipients` is indexed by
/// `RouteNode::recipient`. Asserted: no rank twice (a duplicate could make two ranks wait for each other; the caller
/// removes them), at most `max_route_entries`, ranks and fences within their bits.
void write_route(const Strand& strand, std::span<const RouteRecipient> recipients, std::vector<std::byte>& bytes);

/// A route, or a part of one. It refers to bytes that it does not own. All members but `validate` need a valid route.
class RouteView {
 public:
  RouteView() = default;
  explicit RouteView(std::span<const std::byte> bytes) : bytes_(bytes) {}

  std::span<const std::byte> bytes() const { return bytes_; }
  std::uint32_t size() const { return static_cast<std::uint32_t>(bytes_.size() / route_entry_bytes); }
  bool empty() const { return size() == 0; }
  RouteEntry entry(std::uint32_t index) const { return read_route_entry(bytes_.subspan(index * route_entry_bytes)); }

  /// The entries from `first` to before `end`.
  RouteView part(std::uint32_t first, std::uint32_t end) const {
    return RouteView(bytes_.subspan(first * route_entry_bytes, (end - first) * route_entry_bytes));
  }
  /// What a recipient serves: the view without its own entry, which is the first.
  RouteView below() const { return part(1, size()); }

  /// The subtrees that this forest consists of, in the order in which they are served, for a range-based loop.
  class Children;
  Children children() const;

  /// Checks a forest from the network, whose first entry was found to be this rank, over a job of `job_size` ranks:
  /// whole entries, at most `max_route_entries`; subtree sizes nest and fill it; ranks exist, and none is `self` or
  /// `root`. Null, or what is wrong. It does not look for duplicate ranks: subtrees get smaller, so that a broadcast
  /// ends all the same. O(size), no memory, no recursion.
  const char* validate(std::uint32_t job_size, Rank self, Rank root) const;

 private:
  std::span<const std::byte> bytes_;
};

/// Range over the subtrees of a forest. No copies; O(1) per child.
class RouteView::Children {
 public:
  class Iterator {
   public:
    explicit Iterator(RouteView rest) : rest_(rest) {}
    RouteView operator*() const { return rest_.part(0, first_size()); }
    Iterator& operator++() { return rest_ = rest_.part(first_size(), rest_.size()), *this; }
    friend bool operator!=(const Iterator& a, const Iterator& b) { return a.rest_.size() != b.rest_.size(); }

   private:
    std::uint32_t first_size() const { return rest_.entry(0).subtree_size; }
    RouteView rest_;
  };
  explicit Children(RouteView forest) : forest_(forest) {}
  Iterator begin() const { return Iterator(forest_); }
  Iterator end() const { return Iterator(forest_.part(forest_.size(), forest_.size())); }

 private:
  RouteView forest_;
};

inline RouteView::Children RouteView::children() const { return Children(*this); }

}  // namespace tandem::comm
