// tandem/dist/flow_position.hpp: the position of this rank in the common flow.
#pragma once

#include <cstdint>

#include "tandem/dist/flow_history.hpp"
#include "tandem/runtime/exec/cutoff.hpp"
#include "tandem/runtime/task/task_number.hpp"

namespace tandem::dist {

/// The position of a rank in the flow. The parts of its `Flow` share it.
///
/// A position is the number of an operation. Operation n is the same one on all ranks, so positions order tasks of all
/// ranks.
///
/// Threads: the submitting thread alone, except `entering`, which follows the protocol of `runtime::Cutoff` with the
/// mutex of `Cancellation` as its lock.
struct FlowPosition {
  std::uint64_t value = 0;   ///< operations so far
  FlowHistory history;       ///< operations since the last wait of all ranks
  runtime::Cutoff entering;  ///< positions that this rank may submit without asking `Cancellation`

  /// Whether the next operation may be submitted without asking `Cancellation`.
  bool next_is_free() const noexcept { return entering.within(value + 1); }
  /// The first id for nodes of this position.
  runtime::TaskId first_id() const noexcept { return runtime::TaskNumber::first_id(value); }

  /// Notes the operation at this position in the history.
  void note(OperationKind kind, std::uint32_t executor, const SourceLine& where, std::span<const Use> uses) noexcept {
    history.note(value, kind, executor, where, uses);
  }
};

}  // namespace tandem::dist
