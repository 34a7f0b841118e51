// tandem/comm/sync/barrier_node.cpp: ready, propose, vote, commit.
#include "tandem/comm/sync/barrier_node.hpp"

#include <algorithm>

#include "tandem/base/assert.hpp"
#include "tandem/base/driver.hpp"
#include "tandem/comm/sync/tree.hpp"

namespace tandem::comm::internal::sync {

BarrierNode::BarrierNode(Rank rank, std::uint32_t size) : rank_(rank) {
  for (const Rank child : children_of(rank, size)) children_.push_back({child});
}

BarrierNode::Child* BarrierNode::child(Rank rank) noexcept {
  const auto found = std::find_if(children_.begin(), children_.end(), [&](const Child& c) { return c.rank == rank; });
  return found == children_.end() ? nullptr : &*found;
}

void BarrierNode::enter(std::int64_t now_ns, const clock::GlobalClock& clock, Outbox& outbox) {
  TANDEM_ASSERT(!inside_);
  inside_ = true;
  sent_ready_ = voted_ = false;
  proposal_.reset();
  agreement_.reset();
  ++barrier_;
  repeat_due_ns_ = now_ns + repeat_ns;
  advance(now_ns, clock, outbox);
}

void BarrierNode::take(Rank from, const Record& record, std::int64_t now_ns, const clock::GlobalClock& clock,
                       Outbox& outbox) {
  const bool from_parent = !is_reference() && from == parent_of(rank_);
  Child* const sender = child(from);
  if (const auto* ready = std::get_if<Ready>(&record); ready != nullptr && sender != nullptr) {
    sender->ready = std::max(sender->ready, ready->barrier);
    advance(now_ns, clock, outbox);
  } else if (const auto* proposal = std::get_if<Propose>(&record); proposal != nullptr && from_parent) {
    if (inside_ && proposal->barrier == barrier_) consider(*proposal, now_ns, clock, outbox);
  } else if (const auto* vote = std::get_if<Vote>(&record); vote != nullptr && sender != nullptr) {
    if (!inside_ || vote->barrier != barrier_ || !proposal_ || vote->round != proposal_->round || sender->voted) return;
    sender->voted = true;
    slack_ns_ = std::min(slack_ns_, vote->slack_ns);
    count_votes(now_ns, clock, outbox);
  } else if (const auto* decided = std::get_if<Commit>(&record); decided != nullptr && from_parent) {
    if (inside_ && decided->barrier == barrier_) commit(decided->leave_ns, now_ns, clock, outbox);
  } else if (const auto* what = std::get_if<Broken>(&record); what != nullptr && (from_parent || sender != nullptr)) {
    break_up({Rank{static_cast<std::uint32_t>(what->rank)}, what->left != 0}, from, outbox);
  }
}

/// Proceeds when this rank and all children have come.
void BarrierNode::advance(std::int64_t now_ns, const clock::GlobalClock& clock, Outbox& outbox) {
  const bool all_here = std::all_of(children_.begin(), children_.end(),
                                    [&](const Child& c) { return c.ready >= barrier_; });
  if (!inside_ || sent_ready_ || !all_here) return;
  sent_ready_ = true;
  if (is_reference()) propose(now_ns, clock, outbox);
  else outbox.push_back({parent_of(rank_), Ready{barrier_}, true});
}

void BarrierNode::propose(std::int64_t now_ns, const clock::GlobalClock& clock, Outbox& outbox) {
  const std::uint64_t round = proposal_ ? proposal_->round + 1 : 1;
  proposed_ns_ = now_ns;
  consider({barrier_, round, clock.to_global(now_ns).ns + window_ns_}, now_ns, clock, outbox);
}

void BarrierNode::consider(const Propose& proposal, std::int64_t now_ns, const clock::GlobalClock& clock,
                           Outbox& outbox) {
  if (proposal_ && proposal.round <= proposal_->round) return;
  proposal_ = proposal;
  voted_ = false;
  for (Child& child : children_) {
    child.voted = false;
    outbox.push_back({child.rank, proposal, true});
  }
  slack_ns_ = clock.to_local(proposal.leave_ns).ns - now_ns;
  count_votes(now_ns, clock, outbox);
}

void BarrierNode::count_votes(std::int64_t now_ns, const clock::GlobalClock& clock, Outbox& outbox) {
  if (voted_ || !std::all_of(children_.begin(), children_.end(), [](const Child& c) { return c.voted; })) return;
  voted_ = true;
  if (is_reference()) decide(now_ns, clock, outbox);
  else outbox.push_back({parent_of(rank_), Vote{barrier_, proposal_->round, slack_ns_}, true});
}

/// Decides after the trips down and up, which took `trip_ns`; the next trip down takes less, unless a rank is not
/// running.
void BarrierNode::decide(std::int64_t now_ns, const clock::GlobalClock& clock, Outbox& outbox) {
  const std::int64_t trip_ns = now_ns - proposed_ns_;
  const bool in_time = slack_ns_ >= 0 && proposed_ns_ + window_ns_ - now_ns >= trip_ns;
  if (!in_time && proposal_->round < most_rounds) {
    window_ns_ = std::max(2 * window_ns_, 4 * trip_ns);
    propose(now_ns, clock, outbox);
    return;
  }
  const std::int64_t leave_ns = proposal_->leave_ns;
  // The next barrier begins with what this one needed. The window shrinks slowly, so that after one quick barrier the
  // next one need not repeat.
  window_ns_ = std::max({least_window_ns, 4 * trip_ns, window_ns_ / 2});
  commit(leave_ns, now_ns, clock, outbox);
}

void BarrierNode::commit(std::int64_t leave_ns, std::int64_t now_ns, const clock::GlobalClock& clock, Outbox& outbox) {
  for (const Child& child : children_) outbox.push_back({child.rank, Commit{barrier_, leave_ns}, true});
  const clock::GlobalTime local = clock.to_local(leave_ns);
  agreement_ = {local.ns, leave_ns, local.error_ns, std::max<std::int64_t>(0, now_ns - local.ns)};
  inside_ = false;
}

std::int64_t BarrierNode::step(std::int64_t now_ns, Outbox& outbox) {
  if (!inside_ || broken_) return base::kNever;
  if (now_ns < repeat_due_ns_) return repeat_due_ns_;
  repeat_due_ns_ = now_ns + repeat_ns;
  if (!is_reference() && voted_)
    outbox.push_back({parent_of(rank_), Vote{barrier_, proposal_->round, slack_ns_}, true});
  else if (!is_reference() && sent_ready_) outbox.push_back({parent_of(rank_), Ready{barrier_}, true});
  for (const Child& child : children_)
    if (child.ready < barrier_ || (proposal_ && !child.voted)) outbox.push_back({child.rank, Nudge{barrier_}, true});
  return repeat_due_ns_;
}

void BarrierNode::gone(Rank rank, bool left, Outbox& outbox) {
  const bool parent = !is_reference() && rank == parent_of(rank_);
  if (parent || child(rank) != nullptr) break_up({rank, left}, rank, outbox);
}

void BarrierNode::break_up(const BarrierBreak& why, std::optional<Rank> learned_from, Outbox& outbox) {
  if (broken_) return;
  broken_ = why;
  inside_ = false;
  const Broken record{why.rank.value(), why.left ? 1U : 0U};
  if (!is_reference() && learned_from != parent_of(rank_)) outbox.push_back({parent_of(rank_), record, false});
  for (const Child& child : children_)
    if (learned_from != child.rank) outbox.push_back({child.rank, record, false});
}

}  // namespace tandem::comm::internal::sync
