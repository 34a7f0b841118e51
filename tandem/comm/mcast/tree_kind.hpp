// tandem/comm/mcast/tree_kind.hpp: the trees that a broadcast may follow, by name.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace tandem::comm {

/// The shape of the tree along which ranks forward a broadcast. The kinds are described at the top of `mcast/tree.hpp`.
enum class TreeKind : std::uint8_t {
  flat, chain, binary, kary, binomial, knomial, two_tree, delegate, two_groups,
  automatic,  ///< to be chosen by `TreeChooser` (`cost.hpp`), the fastest; builders refuse it
  ordered,    ///< the same among trees that serve recipients in the order of their priorities: never two_tree
};
/// How many kinds there are.
inline constexpr unsigned tree_kind_count = 11;

/// "flat", ..., "two_tree", ..., "automatic", "ordered".
std::string_view tree_name(TreeKind kind) noexcept;
/// The kind of that name.
std::optional<TreeKind> tree_kind(std::string_view name) noexcept;

}  // namespace tandem::comm
