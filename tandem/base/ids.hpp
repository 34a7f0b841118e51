// tandem/base/ids.hpp: strong ids, so that a worker's number cannot be passed as a node's.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <type_traits>

namespace tandem::base {

/// An index with a meaning. `Tag` names the meaning and is never defined. A value like any other: free to copy, not
/// atomic.
template <class Tag, class Value = std::uint32_t>
class StrongId {
  static_assert(std::is_integral_v<Value>);

 public:
  using value_type = Value;

  constexpr StrongId() noexcept = default;
  constexpr explicit StrongId(Value value) noexcept : value_(value) {}

  constexpr Value value() const noexcept { return value_; }
  /// The value as an index of arrays.
  constexpr std::size_t index() const noexcept { return static_cast<std::size_t>(value_); }

  friend constexpr auto operator<=>(StrongId, StrongId) noexcept = default;

 private:
  Value value_ = 0;
};

using WorkerId = StrongId<struct WorkerIdTag>;  ///< a worker of one runtime, from 0
using NodeId = StrongId<struct NodeIdTag>;      ///< a memory node of one runtime; 0 is main memory
using CoreId = StrongId<struct CoreIdTag>;      ///< an allowed core of one Topology, from 0 in its logical order
using Rank = StrongId<struct RankTag>;          ///< a process of one job, from 0

static_assert(std::is_trivially_copyable_v<WorkerId> && sizeof(WorkerId) == sizeof(std::uint32_t));

}  // namespace tandem::base

template <class Tag, class Value>
struct std::hash<tandem::base::StrongId<Tag, Value>> {
  std::size_t operator()(tandem::base::StrongId<Tag, Value> id) const noexcept {
    return std::hash<Value>()(id.value());
  }
};
