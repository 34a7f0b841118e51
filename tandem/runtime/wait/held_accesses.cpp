// tandem/runtime/wait/held_accesses.cpp: walks from held accesses to the tasks that wait for them.
#include "tandem/runtime/wait/held_accesses.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <unordered_set>

#include "tandem/runtime/task/describe.hpp"
#include "tandem/runtime/task/visit_successors.hpp"
#include "tandem/runtime/wait/accesses.hpp"

namespace tandem::runtime {

namespace {

/// Adds the tasks that wait for `first`, directly or not, to `found`, and `first` itself. Stops early at `wanted`.
void find_waiting(const Task& first, const Task* wanted, std::unordered_set<const Task*>& found) {
  std::vector<const Task*> open;
  const auto visit = [&](const Task* task) {
    if (found.insert(task).second) open.push_back(task);
  };
  visit(&first);
  while (!open.empty() && !found.contains(wanted)) {
    const Task& task = *open.back();
    open.pop_back();
    if (task.recorded) {
      const RecordedPart& part = *task.recording;
      for (std::uint32_t i = 0; i < part.successor_count; ++i) visit(part.successors[i]);
      if (!part.boundary) continue;
    }
    visit_successors(task, [&](Task& successor) { visit(&successor); });
  }
}

}  // namespace

const ApplicationAccess* HeldAccesses::before(const Task& task) const {
  for (const ApplicationAccess* access : held_) {
    std::unordered_set<const Task*> found;
    find_waiting(*access->task, &task, found);
    if (found.contains(&task)) return access;
  }
  return nullptr;
}

std::uint64_t HeldAccesses::blocked_count(std::span<const Task* const> blocked) const {
  std::unordered_set<const Task*> found;
  for (const ApplicationAccess* access : held_) find_waiting(*access->task, nullptr, found);
  for (const Task* task : blocked) find_waiting(*task, nullptr, found);
  return found.size();
}

bool HeldAccesses::waits_for(const Task& task, std::span<const Task* const> tasks) {
  std::unordered_set<const Task*> found;
  return std::ranges::any_of(tasks, [&](const Task* first) {
    find_waiting(*first, &task, found);
    return found.contains(&task);
  });
}

std::string HeldAccesses::described() const {
  std::string text;
  for (const ApplicationAccess* access : held_)
    text += fmt::format("{}{}, acquired at {}", text.empty() ? "" : "; ", access->handle->described(),
                        describe(access->where));
  return text;
}

}  // namespace tandem::runtime
