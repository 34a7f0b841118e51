// tandem/runtime/task/dependencies.hpp: the rules by which accesses to one datum make tasks wait for each other.
#pragma once

#include "tandem/runtime/data/access.hpp"
#include "tandem/runtime/data/handle.hpp"

namespace tandem::runtime {

/// Dependency inference for one datum (Europar article, section 4.1; thesis 1.3.1): read after write, write after read,
/// write after write, with commuting accesses and reductions as groups. One copy of the rules for tasks that are
/// entered into the flow (`Flow`) and for tasks that are recorded (`Recorder`); all functions are inlined into both.
///
/// `State` is the datum's place in the sequence of tasks: `writer`, the last task that wrote; `members`, the tasks of
/// the group since then; `kind`, that of the group. Invariant: a task of the group waits for `writer`; one that ends
/// the group waits for all `members` or, when there are none, for `writer`.
///
/// `Follower` stands for the access of the task that is entered:
///   `follow_writer(state)`   the task waits for `state.writer`
///   `follow_members(state)`  the task waits for each of `state.members`
///   `task()`                 the task, as `State` names tasks
///
/// `Groups` makes the nodes that end groups:
///   `member_may_close(state)`  the only member of a group, which is no reduction, may stand for its end
///   `begin_closing(reduced)`   returns the follower of a new node, which combines partial results if `reduced`
///   `end_closing(follower)`    the node has all its predecessors
template <class State, class Groups>
void close_group(State& state, Groups&& groups) {
  const bool reduced = state.kind == GroupKind::reducers;
  if (!reduced && state.members.size() == 1 && groups.member_may_close(state)) {
    state.writer = state.members.front();
    state.members.clear();
    state.kind = GroupKind::readers;
    return;
  }
  auto closing = groups.begin_closing(reduced);
  closing.follow_members(state);
  state.members.clear();
  state.kind = GroupKind::readers;
  state.writer = closing.task();
  groups.end_closing(closing);
}

/// Enters an access that replaces the value, alone.
template <class State, class Follower, class Close>
[[gnu::always_inline]] inline void enter_writer(State& state, Follower follower, Close&& close) {
  if (__builtin_expect(state.kind == GroupKind::reducers, 0)) close();
  if (state.members.empty()) {
    follower.follow_writer(state);
  } else {
    follower.follow_members(state);
    state.members.clear();
    state.kind = GroupKind::readers;
  }
  state.writer = follower.task();
}

/// Enters an access that joins the group, or closes a group of another kind and begins its own.
template <class State, class Follower, class Close>
[[gnu::always_inline]] inline void enter_group(State& state, GroupKind kind, Follower follower, Close&& close) {
  if (__builtin_expect(state.kind != kind, 0)) {
    if (!state.members.empty()) close();
    state.kind = kind;
  }
  follower.follow_writer(state);
  state.members.push_back(follower.task());
}

/// Enters one access. `close()` calls `close_group` for `state`.
template <class State, class Follower, class Close>
[[gnu::always_inline]] inline void enter_access(AccessMode mode, State& state, Follower follower, Close&& close) {
  switch (mode) {
    case AccessMode::read: enter_group(state, GroupKind::readers, follower, close); break;
    case AccessMode::write:
    case AccessMode::read_write: enter_writer(state, follower, close); break;
    case AccessMode::commute: enter_group(state, GroupKind::commuters, follower, close); break;
    case AccessMode::reduce: enter_group(state, GroupKind::reducers, follower, close); break;
    case AccessMode::scratch: break;
  }
}

}  // namespace tandem::runtime
