// tandem/dist/flow_position.hpp: how far this rank has gone through the common flow.
#pragma once

#include <cstdint>

#include "tandem/dist/flow_history.hpp"
#include "tandem/runtime/exec/cutoff.hpp"
#include "tandem/runtime/task/task_number.hpp"

namespace tandem::dist {

/// The position of a rank in the flow. The parts of its `Flow` share it.
///
/// A position is the number of an operation. Operation n is the same one on all ranks, so positions order tasks of all ranks.
///
/// Threads: the submitting thread alone. Exception: `entering` follows the protocol of `runtime::Cutoff`; the mutex of
/// `Cancellation` is its lock.
struct FlowPosition {
  std::uint64_t value = 0;   ///< operations so far
  FlowHistory history;       ///< of the operations since the last wait of all ranks
  runtime::Cutoff entering;  ///< positions that this rank may submit without asking `Cancellation`

  /// The next operation needs no question to `Cancellation`.
  bool next_is_free() const noexcept { return entering.within(value + 1); }
  /// The first id for nodes of this position.
  runtime::TaskId first_id() const noexcept { return runtime::TaskNumber::first_id(value); }

  /// What the operation at this position does.
  void note(OperationKind kind, std::uint32_t executor, const SourceLine& where, std::span<const Use> uses) noexcept {
    history.note(value, kind, executor, where, uses);
  }
};

}  // namespace tandem::dist
