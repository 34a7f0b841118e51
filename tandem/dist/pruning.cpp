// tandem/dist/pruning.cpp: the rules for skipping tasks, and their check.
#include "tandem/dist/pruning.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "tandem/runtime/task/describe.hpp"
#include "tandem/base/exceptions.hpp"

namespace tandem::dist {

using runtime::Handle;

bool Pruning::concerns(std::span<const Use> uses, bool policy) const {
  std::uint32_t owner = kNobody, read_at = kEverywhere;
  for (const Use& use : uses) {
    if (use.handle == nullptr || use.mode == AccessMode::reduce) return true;
    if (use.mode == AccessMode::scratch) continue;
    const Place& place = place_of(*use.handle);
    if (place.owner == rank_ || place.holder == rank_ || place.reducing) return true;
    if (use.mode == AccessMode::read) {
      if (read_at == kEverywhere) read_at = place.owner;
      continue;
    }
    if (place.owner == kEverywhere || place.copied) return true;
    // This rank does not know where a policy places a task that writes data of several owners.
    if (policy && owner != kNobody && owner != place.owner) return true;
    owner = place.owner;
  }
  return owner == kNobody && read_at == kEverywhere;  // the task writes nothing, and runs on every rank
}

/// Checks a task. While skipping, it must not concern this rank, and the rank does not know what it writes. Otherwise
/// it must not see here data that this rank does not know.
void Pruning::check_task(std::uint32_t executor, std::span<const Need> needs, const Wish& wish) {
  const bool here = executor == rank_ || executor == kEverywhere;
  if (skipping_ && here) {
    const auto written = std::find_if(needs.begin(), needs.end(), [](const Need& need) { return need.makes(); });
    if (written != needs.end()) refuse_skip("runs here and writes", *written->handle, wish.where);
    if (!needs.empty()) refuse_skip("runs here and sees", *needs.front().handle, wish.where);
  }
  for (const Need& need : needs) {
    Place& place = place_of(*need.handle);
    if (!skipping_) {
      if (need.sees && here) check_known(*need.handle, wish.where);
      if (need.makes()) place.stale = false;
      continue;
    }
    if (place.owner == rank_ && need.makes()) refuse_skip("writes what this rank owns,", *need.handle, wish.where);
    if (place.holder == rank_) refuse_skip("uses what this rank holds,", *need.handle, wish.where);
    if (place.copied && need.makes()) refuse_skip("writes what this rank has a copy of,", *need.handle, wish.where);
    if (need.makes()) place.stale = true;
  }
}

void Pruning::check_known(Handle& handle, const SourceLine& where) const {
  if (!place_of(handle).stale) return;
  throw UsageError(
      fmt::format("rank {} sees {}{}, but would have skipped the last task that wrote it; a rank must submit that "
                  "task, whichever rank runs it",
                  rank_, handle.described(), where ? fmt::format(" (at {})", runtime::describe(where)) : ""));
}

void Pruning::refuse_skip(const std::string& what, const Handle& handle, const SourceLine& where) const {
  throw UsageError(
      fmt::format("rank {} would have skipped a task{} that {} {}; a rank must submit the tasks that concern it", rank_,
                  where ? fmt::format(" (at {})", runtime::describe(where)) : "", what, handle.described()));
}

}  // namespace tandem::dist
