// tandem/dist/cancel.cpp: a flow that is cancelled: all ranks hear of it, and agree where it ends.
#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "tandem/dist/flow.hpp"

namespace tandem::dist {

namespace {

using Bytes = Agreement::Bytes;

/// How far a rank, or the one that is farthest, may have come.
struct Reach {
  std::uint64_t begun = 0;    ///< the last position whose task may have begun
  std::uint64_t entered = 0;  ///< the last one that may have been submitted

  Bytes bytes() const {
    Bytes result(sizeof *this);
    std::memcpy(result.data(), this, sizeof *this);
    return result;
  }
  /// Of a peer that talks nonsense: nothing.
  static Reach from(std::span<const std::byte> bytes) {
    Reach reach;
    if (bytes.size() == sizeof reach) std::memcpy(&reach, bytes.data(), sizeof reach);
    return reach;
  }
  static void merge(Bytes& into, std::span<const std::byte> from) {
    const Reach a = Reach::from(into), b = Reach::from(from);
    into = Reach{std::max(a.begun, b.begun), std::max(a.entered, b.entered)}.bytes();
  }
};

}  // namespace

void Flow::cancel() {
  std::uint64_t flow = 0;
  {
    const std::lock_guard guard(cancel_mutex_);
    if (ending_) return;
    flow = flow_number_;
  }
  join_cancel(flow, {});
}

/// Flow number `flow` is cancelled, by this rank or as another one says. Any thread.
void Flow::join_cancel(std::uint64_t flow, std::optional<std::uint32_t> told_by) {
  Reach mine;
  {
    const std::lock_guard guard(cancel_mutex_);
    if (flow == flow_number_ + 1) told_early_ = true;  // who says so has ended a wait that this rank is about to end
    if (flow != flow_number_ || joined_ || aborted_.load()) return;
    joined_ = true;
    mine = {core_.executor().freeze_end(), entering_.freeze()};
  }
  for (const std::uint32_t other : cancel_agreement_.neighbours())
    if (other != told_by)
      endpoint_->isend(base::Rank(other), comm::Tag(flow), comm::SendBuffer(),
                       {.channel = cancel_channel_, .priority = Agreement::kPriority});
  cancel_agreement_.begin(mine.bytes(), &Reach::merge, [this](std::span<const std::byte> outcome) { decide_end(outcome); });
}

void Flow::decide_end(std::span<const std::byte> outcome) {
  const Reach all = Reach::from(outcome);
  {
    const std::lock_guard guard(cancel_mutex_);
    if (aborted_.load()) return;
    end_of_tasks_ = all.begun;
    entering_.decide(all.entered);
  }
  core_.executor().decide_end(all.begun);
  end_decided_.store(true);
  core_.executor().caller().wake();
}

/// The job has failed: nobody will say any more where the flow ends, and tasks must not wait for it.
void Flow::give_up_cancel() {
  {
    const std::lock_guard guard(cancel_mutex_);
    if (!joined_) return;
  }
  core_.executor().decide_end(core_.executor().freeze_end());
}

/// Counts positions up to this one as submitted. False: it is behind the end of a cancelled flow; while the ranks agree on that,
/// this waits.
bool Flow::may_enter(std::uint64_t position) {
  using Answer = runtime::Cutoff::Answer;
  for (;;) {
    Answer answer;
    {
      const std::lock_guard guard(cancel_mutex_);
      answer = entering_.ask(position, position - 1 + kEnterAhead);
    }
    if (answer == Answer::over) return false;  // also once the job has failed, which the next wait tells
    if (answer == Answer::go || aborted_.load()) return true;
    work_until(end_decided_);
  }
}

/// A position comes that this rank has not counted as submitted. True: it is behind the end.
bool Flow::comes_to_end() {
  if (may_enter(position_ + 1)) return false;
  if (!std::exchange(closed_, true)) close();
  return true;
}

/// The last operations of a flow: all data goes home.
void Flow::close() {
  closed_at_ = position_;
  settle_all();
  bring_home();
}

/// Everything has ended here. Says whether the flow was cancelled, as far as this rank knows.
bool Flow::stop_cancels() {
  const std::lock_guard guard(cancel_mutex_);
  ending_ = true;
  return joined_;
}

/// All ranks have ended the flow. Where one knows that it was cancelled, all hear it, some a little later.
void Flow::begin_next_flow(bool cancelled) {
  cancelled_at_.reset();
  if (cancelled) {
    work_until(end_decided_);
    throw_if_aborted();
    cancelled_at_ = std::min(end_of_tasks_, closed_at_);
  }
  bool told_early = false;
  {
    const std::lock_guard guard(cancel_mutex_);
    core_.executor().reopen();
    entering_.reopen();
    end_decided_.store(false);
    joined_ = ending_ = false;
    ++flow_number_;
    told_early = std::exchange(told_early_, false);
  }
  closed_ = false;
  if (told_early) join_cancel(flow_number_, {});
}

}  // namespace tandem::dist
