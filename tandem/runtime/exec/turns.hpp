// tandem/runtime/exec/turns.hpp: the order in which a task enters the turnstiles of its commuting accesses.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <functional>
#include <utility>

#include "tandem/runtime/data/handle.hpp"
#include "tandem/runtime/task/task.hpp"

namespace tandem::runtime {

/// Order of the data in which all tasks enter turnstiles, so that holders and visitors form no cycle. It is the order
/// of registration, so the same seed gives the same order; addresses decide if 2^32 data were registered between two.
struct RegisteredBefore {
  bool operator()(const Handle& a, const Handle& b) const noexcept {
    return a.number != b.number ? a.number < b.number : std::less<>()(&a, &b);
  }
};

namespace internal {

/// Merges two chains of accesses of one task, both in order. A chain names an access by its index plus one; 0 ends it.
template <class Before>
std::uint16_t merge_turns(AccessSlot* slots, std::uint16_t a, std::uint16_t b, const Before& before) {
  std::uint16_t first = 0;
  std::uint16_t last = 0;
  const auto append = [&](std::uint16_t access) {
    if (last == 0) first = access;
    else slots[last - 1].turn.next = access;
    last = access;
  };
  while (a != 0 && b != 0) {
    std::uint16_t& least = before(*slots[b - 1].handle(), *slots[a - 1].handle()) ? b : a;
    const std::uint16_t taken = least;
    least = static_cast<std::uint16_t>(slots[taken - 1].turn.next);
    append(taken);
  }
  if (const std::uint16_t rest = a != 0 ? a : b; rest != 0) append(rest);
  return first;
}

}  // namespace internal

/// Chains the commuting accesses of `task` in the order of `before` (`Turn::next`). Returns the index plus one of the
/// first; 0: there is none. The task waits for no other, so the links of its accesses are free. Cost: k log2 k
/// comparisons for k accesses, no memory.
template <class Before = RegisteredBefore>
std::uint16_t chain_turns(Task& task, const Before& before = {}) {
  std::array<std::uint16_t, std::bit_width(kMaxAccesses)> runs{};  // run i is empty, or has 2^i accesses
  AccessSlot* const slots = task.accesses();
  for (unsigned i = 0; i < task.access_count; ++i) {
    if (slots[i].mode() != AccessMode::commute) continue;
    slots[i].turn = {};
    auto run = static_cast<std::uint16_t>(i + 1);
    unsigned level = 0;
    for (; runs[level] != 0; ++level) run = internal::merge_turns(slots, std::exchange(runs[level], 0), run, before);
    runs[level] = run;
  }
  std::uint16_t first = 0;
  for (const std::uint16_t run : runs)
    if (run != 0) first = internal::merge_turns(slots, run, first, before);
  return first;
}

}  // namespace tandem::runtime
