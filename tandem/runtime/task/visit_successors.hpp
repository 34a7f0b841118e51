// tandem/runtime/task/visit_successors.hpp: visits the tasks that wait for a task which another thread may end
// concurrently.
#pragma once

#include <atomic>
#include <climits>

#include "tandem/runtime/task/task.hpp"

namespace tandem::runtime {

/// Calls `visit(Task&)` for the tasks in the list of successors of `task`, the newest first and at most `most`; stops
/// when `task` ends. The memory of tasks outlives the walk, as that of `TaskPool` does.
///
/// Protocol. The end of `task` seals the list before it counts a successor down, and no thread changes a link before
/// its successor was counted down (`AccessSlot` then uses it for other purposes). So what was read of a link is right
/// if the list was open afterwards: the fence keeps the two reads in this order, and pairs with the release in
/// `SealedList::seal`.
template <class Visit>
void visit_successors(const Task& task, const Visit& visit, unsigned most = UINT_MAX) {
  unsigned looked = 0;
  for (const Link* link = task.successors.peek(); link != nullptr && looked < most; ++looked) {
    Task* const successor = link->task();
    const Link* const next = link->next;
    std::atomic_thread_fence(std::memory_order_acquire);
    if (task.successors.sealed()) return;
    visit(*successor);
    link = next;
  }
}

}  // namespace tandem::runtime
