// tandem/comm/mcast/tree_kind.hpp: the trees that a broadcast may follow, by name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace tandem::comm {

/// The shape of the tree along which ranks forward a broadcast. The kinds are described at the top of `mcast/tree.hpp`.
enum class TreeKind : std::uint8_t {
  flat, chain, binary, kary, binomial, knomial, two_tree, delegate, two_groups,
  automatic,  ///< the fastest, chosen by `TreeChooser` (`cost.hpp`); builders refuse it
  ordered,  ///< the fastest that serves recipients in the order of their priorities: no two_tree where they differ
};
/// Number of kinds.
inline constexpr unsigned tree_kind_count = 11;

/// Which rank forwards a broadcast to which, and in what pieces.
struct TreeOptions {
  /// A kind says most of it.
  // NOLINTNEXTLINE(google-explicit-constructor)
  constexpr TreeOptions(TreeKind kind_of_tree = TreeKind::automatic, std::size_t bytes_of_segments = 0) noexcept
      : kind(kind_of_tree), segment_bytes(bytes_of_segments) {}

  TreeKind kind;       ///< the shape
  unsigned arity = 0;  ///< of kary and knomial, at least 2; 0: 4
  TreeKind above = TreeKind::binomial;  ///< of the first group of two_groups: flat, chain, or binary to knomial
  TreeKind below = TreeKind::binomial;  ///< of its second group, or below a delegate: one of the same
  std::uint32_t first_group = 0;  ///< its recipients; 0: those before the largest gap of priorities
  std::size_t segment_bytes;      ///< 0: chosen; at least the message: each rank stores it whole, then forwards it
  bool by_priority = true;        ///< recipients of higher priority first; false: in the order in which they are given
  /// Whether all of it is equal.
  friend bool operator==(const TreeOptions&, const TreeOptions&) = default;
};

/// The name of a kind: "flat", ..., "two_tree", ..., "automatic", "ordered".
std::string_view tree_name(TreeKind kind) noexcept;
/// The names of all kinds.
std::span<const std::string_view> tree_names() noexcept;
/// The kind of that name.
std::optional<TreeKind> tree_kind(std::string_view name) noexcept;

}  // namespace tandem::comm
