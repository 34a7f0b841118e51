// tandem/api/for_tasks_of.hpp: loops over tasks, pruned to those that concern a rank.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <span>

#include "tandem/api/runtime.hpp"
#include "tandem/base/assert.hpp"

namespace tandem {

/// The indices of a loop whose tasks a rank must submit: all, or those in one of a few sorted lists. The lists are
/// views and must live longer.
class TaskIndices {
 public:
  using List = std::span<const std::uint32_t>;  ///< ascending
  static constexpr std::size_t kMostLists = 4;  ///< at once

  /// Every index: the rank submits the whole loop.
  static TaskIndices all() noexcept {
    TaskIndices indices;
    indices.all_ = true;
    return indices;
  }
  /// Indices in one of `lists`, each ascending; an index may be in several. At most `kMostLists`.
  TaskIndices(std::initializer_list<List> lists) noexcept {
    TANDEM_ASSERT(lists.size() <= kMostLists);
    std::copy(lists.begin(), lists.end(), lists_.begin());
  }

  bool is_all() const noexcept { return all_; }  ///< whether `all` made it
  /// Drops the indices below `first`, by binary search.
  void skip_to(std::size_t first) noexcept {
    for (List& list : lists_) list = list.subspan(std::lower_bound(list.begin(), list.end(), first) - list.begin());
  }
  /// Takes the smallest index; no value when there is none below `last`.
  std::optional<std::size_t> take(std::size_t last) noexcept {
    std::size_t least = last;
    for (const List& list : lists_)
      if (!list.empty() && list.front() < least) least = list.front();
    if (least == last) return std::nullopt;
    for (List& list : lists_)
      if (!list.empty() && list.front() == least) list = list.subspan(1);
    return least;
  }

 private:
  TaskIndices() = default;

  bool all_ = false;
  std::array<List, kMostLists> lists_{};
};

namespace internal {

/// Whether option `check_pruning` is on.
bool checks_pruning(Runtime& rt) noexcept;
/// Calls `submit`, which submits the task of index `i`. Throws UsageError if the task concerns this rank, or if it was
/// not one task.
void submit_skipped(Runtime& rt, std::size_t i, const std::function<void()>& submit);

/// With option `check_pruning`: submits all tasks, and checks those that would have been skipped.
template <class Concerns, class Submit>
void submit_checked(Runtime& rt, std::size_t first, std::size_t last, Concerns&& concerns, Submit&& submit) {
  for (std::size_t i = first; i < last; ++i) {
    if (concerns(i)) {
      submit(i);
      continue;
    }
    submit_skipped(rt, i, [&] { submit(i); });
  }
}

}  // namespace internal

/// Submits one task per index i in [first, last) by `submit(i)`. This rank skips the indices for which `concerns(i)` is
/// false. `Runtime::skip_tasks` must allow that. On one rank, and with option `prune` off, all are submitted.
template <class Concerns, class Submit>
  requires std::is_invocable_r_v<bool, Concerns&, std::size_t>
void for_tasks_of(Runtime& rt, std::size_t first, std::size_t last, Concerns&& concerns, Submit&& submit) {
  if (!rt.prunes()) {
    for (std::size_t i = first; i < last; ++i) submit(i);
    return;
  }
  if (internal::checks_pruning(rt)) return internal::submit_checked(rt, first, last, concerns, submit);
  std::uint64_t passed = 0;
  for (std::size_t i = first; i < last; ++i) {
    if (!concerns(i)) {
      ++passed;
      continue;
    }
    rt.skip_tasks(passed);
    passed = 0;
    submit(i);
  }
  rt.skip_tasks(passed);
}

/// Submits one task for each of `indices`, which are known beforehand, so that skipped tasks cost nothing.
template <class Submit>
void for_tasks_of(Runtime& rt, std::size_t first, std::size_t last, TaskIndices indices, Submit&& submit) {
  if (first >= last) return;
  if (indices.is_all() || !rt.prunes()) {
    for (std::size_t i = first; i < last; ++i) submit(i);
    return;
  }
  indices.skip_to(first);
  if (internal::checks_pruning(rt)) {
    std::optional<std::size_t> next = indices.take(last);
    return internal::submit_checked(
        rt, first, last,
        [&](std::size_t i) {
          if (next != i) return false;
          next = indices.take(last);
          return true;
        },
        submit);
  }
  std::size_t reached = first;
  while (const std::optional<std::size_t> index = indices.take(last)) {
    rt.skip_tasks(*index - reached);
    submit(*index);
    reached = *index + 1;
  }
  rt.skip_tasks(last - reached);
}

}  // namespace tandem
