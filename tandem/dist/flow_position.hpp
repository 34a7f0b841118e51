// tandem/dist/flow_position.hpp: how far this rank has gone through the common flow.
#pragma once

#include <bit>
#include <cstdint>

#include "tandem/dist/place.hpp"
#include "tandem/runtime/exec/cutoff.hpp"
#include "tandem/runtime/task/task.hpp"

namespace tandem::dist {

/// The position of a rank in the flow. The parts of its `Flow` share it.
///
/// A position is the number of an operation. Operation n is the same one on all ranks, so positions order tasks of all ranks.
///
/// Threads: the submitting thread alone. Exception: `entering` follows the protocol of `runtime::Cutoff`; the mutex of
/// `Cancellation` is its lock.
struct FlowPosition {
  /// Ids of a rank's tasks: the position, and the nodes of the local graph that belong to it.
  static constexpr unsigned kIdsPerPosition = 10;

  std::uint64_t value = 0;   ///< operations so far
  std::uint64_t digest = 0;  ///< of all writes so far; starts again after a wait before which some rank skipped tasks
  runtime::Cutoff entering;  ///< positions that this rank may submit without asking `Cancellation`

  /// The next operation needs no question to `Cancellation`.
  bool next_is_free() const noexcept { return entering.within(value + 1); }
  /// The first id for nodes of this position. The smaller ones belong to the flow itself.
  runtime::TaskId first_id() const noexcept { return (value << kIdsPerPosition) + 2; }

  /// The operation at this position writes the data.
  void note_written(Place& place) noexcept {
    ++place.version;
    place.unwritten = false;
    // The product does not wait for the one before. Positions are equal on all ranks, versions are not.
    digest = std::rotl(digest, 5) ^ (std::uint64_t{place.id} << 32 ^ value) * 0x9e3779b97f4a7c15ULL;
  }
};

}  // namespace tandem::dist
