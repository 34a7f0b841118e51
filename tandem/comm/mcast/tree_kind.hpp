// tandem/comm/mcast/tree_kind.hpp: the trees that a broadcast may follow, by name.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace tandem::comm {

/// The shape of the tree along which ranks forward a broadcast. The kinds are described at the top of `mcast/tree.hpp`.
enum class TreeKind : std::uint8_t {
  flat, chain, binary, kary, binomial, knomial, two_tree, delegate, two_groups,
  automatic,  ///< the fastest, chosen by `TreeChooser` (`cost.hpp`); builders refuse it
  ordered,    ///< the fastest of the trees that serve recipients in the order of their priorities: never two_tree
};
/// Number of kinds.
inline constexpr unsigned tree_kind_count = 11;

/// The name of a kind: "flat", ..., "two_tree", ..., "automatic", "ordered".
std::string_view tree_name(TreeKind kind) noexcept;
/// The kind of that name.
std::optional<TreeKind> tree_kind(std::string_view name) noexcept;

}  // namespace tandem::comm
