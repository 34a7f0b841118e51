// tandem/dist/pruning.cpp: tasks that a rank passes over without submitting them, and whether it may.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "tandem/dist/flow.hpp"
#include "tandem/runtime/task/describe.hpp"

namespace tandem::dist {

using runtime::Handle;

void Flow::pass_over(std::uint64_t tasks) {
  if (tasks == 0) return;
  if (recording_ != nullptr) return recording_->pass_over(tasks);
  const std::uint64_t target = position_ + tasks;
  if (entering_.within(target) || may_enter(target)) return pass_over_to(target);
  // The end lies within what is passed over: there this rank stops, as those do that submit task by task.
  if (const std::uint64_t end = std::min(target, entering_.limit()); end > position_) pass_over_to(end);
  is_over();
}

bool Flow::concerns(std::span<const Use> uses) const {
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
    // Where a policy places a task that writes data of several owners is not known here.
    if (placement_ && owner != kNobody && owner != place.owner) return true;
    owner = place.owner;
  }
  return owner == kNobody && read_at == kEverywhere;  // it writes nothing, and runs on every rank
}

void Flow::Skipping::check_count() const {
  if (flow_.recording_ != nullptr || flow_.position_ == before_ + 1 || flow_.is_over()) return;
  throw UsageError(fmt::format("a loop that is pruned to a rank submits one task per index; index {} has submitted {}", index_,
                               flow_.position_ - before_));
}

/// The task that is entered is one that this rank would have passed over: it must not concern it, and the rank does not know what
/// it leaves. Or it is submitted in any case: then it must not see what this rank does not know.
void Flow::check_pruned(std::uint32_t executor, const Wish& wish) {
  const bool here = executor == rank_ || executor == kEverywhere;
  if (skipping_ && here) {
    const auto written = std::find_if(needs_.begin(), needs_.end(), [](const Need& need) { return need.makes; });
    if (written != needs_.end()) refuse_skip("runs here and writes", *written->handle, wish.where);
    if (!needs_.empty()) refuse_skip("runs here and sees", *needs_.front().handle, wish.where);
  }
  for (const Need& need : needs_) {
    Place& place = place_of(*need.handle);
    if (!skipping_) {
      if (need.sees && here) check_known(*need.handle, wish.where);
      if (need.makes) place.stale = false;
      continue;
    }
    if (place.owner == rank_ && need.makes) refuse_skip("writes what this rank owns,", *need.handle, wish.where);
    if (place.holder == rank_) refuse_skip("uses what this rank holds,", *need.handle, wish.where);
    if (place.copied && need.makes) refuse_skip("writes what this rank has a copy of,", *need.handle, wish.where);
    if (need.makes) place.stale = true;
  }
}

/// Something here is to see the data.
void Flow::check_known(Handle& handle, const SourceLine& where) const {
  if (!place_of(handle).stale) return;
  throw UsageError(fmt::format("rank {} sees {}{}, but would have passed over the last task that wrote it; a rank must submit "
                               "that, whoever runs it",
                               rank_, handle.described(), where ? fmt::format(" (at {})", runtime::describe(where)) : ""));
}

void Flow::refuse_skip(const std::string& what, const Handle& handle, const SourceLine& where) const {
  throw UsageError(fmt::format("rank {} would have passed over a task{} that {} {}; a rank must submit the tasks that concern it",
                               rank_, where ? fmt::format(" (at {})", runtime::describe(where)) : "", what, handle.described()));
}

}  // namespace tandem::dist
