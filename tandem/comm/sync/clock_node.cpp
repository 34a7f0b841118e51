// tandem/comm/sync/clock_node.cpp: turns, measurements, and what follows from them.
#include "tandem/comm/sync/clock_node.hpp"

#include <algorithm>
#include <utility>

#include "tandem/base/driver.hpp"
#include "tandem/comm/sync/tree.hpp"

namespace tandem::comm::internal::sync {
namespace {

/// A measurement worse than the best one in the model by the first factor was disturbed, and is repeated sooner by the
/// second.
constexpr std::int64_t kDisturbed = 2, kSooner = 4;

std::int64_t best_error_ns(const clock::DriftModel& model) {
  std::int64_t best_ns = INT64_MAX;
  for (const clock::OffsetPoint& point : model.points()) best_ns = std::min(best_ns, point.error_ns);
  return best_ns;
}

/// A peer may send anything: rejects values that are no numbers, and rates that no clock has.
bool plausible(const clock::GlobalClock::Terms& terms) noexcept {
  const auto within = [](double value, double limit) { return value >= -limit && value <= limit; };  // false for NaN
  return within(terms.rate, 0.5) && terms.error_ns >= 0 && within(terms.error_ns, 1e18) && terms.error_rate >= 0 &&
         within(terms.error_rate, 1) && terms.error_bend >= 0 && within(terms.error_bend, 1);
}

}  // namespace

ClockNode::ClockNode(Environment environment, const Options& options)
    : environment_(std::move(environment)), options_(options), model_(options.limits) {
  if (environment_.rank.value() == 0) {
    known_ = true;
    version_ = 1;
    due_ns_ = base::kNever;
  } else {
    attach(parent_of(environment_.rank));
  }
}

void ClockNode::take(Rank from, const Record& record, std::int64_t now_ns, Outbox& outbox) {
  if (const auto* ask = std::get_if<Ask>(&record)) {
    take_ask({from, ask->attempt}, now_ns, outbox);
  } else if (const auto* turn = std::get_if<Turn>(&record)) {
    if (from == parent_) take_turn(*turn, now_ns, outbox);
  } else if (const auto* pong = std::get_if<Pong>(&record)) {
    if (from == parent_) take_pong(*pong, now_ns, outbox);
  } else if (std::holds_alternative<End>(record)) {
    end_turn(from, now_ns, outbox);
  }
}

std::int64_t ClockNode::step(std::int64_t now_ns, Outbox& outbox) {
  if (!parent_ || now_ns < due_ns_) return due_ns_;
  if (state_ == State::measuring) {
    finish(now_ns, outbox);
  } else {
    if (state_ == State::resting) {
      state_ = State::asking;
      ++attempt_;
      same_host_ = environment_.same_host && environment_.same_host(*parent_);
    }
    due_ns_ = now_ns + ask_again_ns;
    outbox.push_back({*parent_, Ask{attempt_}, true});
  }
  return due_ns_;
}

void ClockNode::gone(Rank rank, Outbox& outbox) {
  std::erase_if(waiting_, [&](const Claim& claim) { return claim.child == rank; });
  if (holder_ && holder_->child == rank) {
    holder_.reset();
    grant_next(held_since_ns_, outbox);
  }
  if (rank == parent_) attach(rank.value() == 0 ? std::nullopt : std::optional(parent_of(rank)));
}

/// Changes the parent, and so the clock: earlier points do not count. What we publish stays until the new parent is
/// measured.
void ClockNode::attach(std::optional<Rank> parent) {
  parent_ = parent;
  state_ = State::resting;
  due_ns_ = parent_ ? INT64_MIN : base::kNever;
  gap_ns_ = std::min(options_.first_interval_ns, options_.interval_ns);
  model_ = clock::DriftModel(options_.limits);
}

// As a parent.

void ClockNode::take_ask(const Claim& claim, std::int64_t now_ns, Outbox& outbox) {
  if (holder_ && holder_->child == claim.child) holder_.reset();  // a child that asks again measures no more
  std::erase_if(waiting_, [&](const Claim& other) { return other.child == claim.child; });
  waiting_.push_back(claim);
  grant_next(now_ns, outbox);
}

void ClockNode::end_turn(Rank child, std::int64_t now_ns, Outbox& outbox) {
  if (!holder_ || holder_->child != child) return;
  holder_.reset();
  grant_next(now_ns, outbox);
}

void ClockNode::grant_next(std::int64_t now_ns, Outbox& outbox) {
  if (holder_ && now_ns - held_since_ns_ >= turn_limit_ns) holder_.reset();
  if (!known_ || holder_ || waiting_.empty()) return;
  // The lowest child has the largest subtree waiting for it: the order of the rounds (tree.hpp).
  const auto next = std::min_element(waiting_.begin(), waiting_.end(),
                                     [](const Claim& a, const Claim& b) { return a.child < b.child; });
  holder_ = *next;
  waiting_.erase(next);
  held_since_ns_ = now_ns;
  outbox.push_back({holder_->child, Turn{holder_->attempt, to_reference_, environment_.counter}, false});
}

// As a child.

bool ClockNode::shares_counter(const Turn& turn) const noexcept {
  return same_host_ && environment_.counter.kind != SharedCounter::none &&
         environment_.counter.kind == turn.counter.kind &&
         (environment_.counter.kind != SharedCounter::tsc || turn.counter.scale.multiplier > 0);
}

void ClockNode::take_turn(const Turn& turn, std::int64_t now_ns, Outbox& outbox) {
  if (state_ != State::asking || turn.attempt != attempt_ || !plausible(turn.to_reference.terms())) return;
  parent_to_reference_ = turn.to_reference;
  if (shares_counter(turn)) {
    const bool ticks = environment_.counter.kind == SharedCounter::tsc;
    outbox.push_back({*parent_, End{attempt_}, false});
    state_ = State::resting;
    due_ns_ = turn.to_reference.exact() ? base::kNever : now_ns + options_.interval_ns;
    const clock::TickScale& own = environment_.counter.scale;
    learn(ticks ? clock::GlobalClock::between(own, turn.counter.scale, environment_.ticks()) : clock::GlobalClock(),
          now_ns, outbox);
    return;
  }
  state_ = State::measuring;
  due_ns_ = now_ns + measure_limit_ns;
  samples_.clear();
  moves_ = 0;
  outbox.push_back({*parent_, Ping{attempt_}, false});
}

void ClockNode::take_pong(const Pong& pong, std::int64_t now_ns, Outbox& outbox) {
  if (state_ != State::measuring || pong.attempt != attempt_) return;
  samples_.push_back({pong.send_ns, pong.remote_ns, now_ns});
  if (same_host_ && environment_.leave_processor && moves_ < most_moves && environment_.leave_processor(pong.processor))
    ++moves_;
  const unsigned wanted = model_.empty() ? options_.first_ping_pongs : options_.ping_pongs;
  if (samples_.size() < wanted && now_ns < due_ns_) outbox.push_back({*parent_, Ping{attempt_}, false});
  else finish(now_ns, outbox);
}

void ClockNode::finish(std::int64_t now_ns, Outbox& outbox) {
  outbox.push_back({*parent_, End{attempt_}, false});
  state_ = State::resting;
  const auto point = clock::estimate_offset(samples_, {.rate_limit = options_.limits.rate});
  if (!point || (!model_.empty() && point->local_ns <= model_.last().local_ns)) {
    due_ns_ = now_ns + gap_ns_;
    return;
  }
  const bool agreed = model_.add(*point);
  plan_next(*point, agreed, now_ns);
  learn(model_.line(), now_ns, outbox);
}

void ClockNode::plan_next(const clock::OffsetPoint& point, bool agreed, std::int64_t now_ns) {
  if (!agreed) gap_ns_ = options_.first_interval_ns;
  const bool disturbed = point.error_ns / kDisturbed > best_error_ns(model_);
  due_ns_ = now_ns + (disturbed ? std::max(gap_ns_ / kSooner, options_.first_interval_ns) : gap_ns_);
  gap_ns_ = std::min(gap_ns_ * 2, options_.interval_ns);
}

void ClockNode::learn(const clock::GlobalClock& to_parent, std::int64_t now_ns, Outbox& outbox) {
  to_reference_ = to_parent.then(parent_to_reference_);
  ++version_;
  if (!std::exchange(known_, true)) grant_next(now_ns, outbox);
}

}  // namespace tandem::comm::internal::sync
