// tandem/comm/engine/card_lookups.cpp: the threads that wait for addresses.
#include "tandem/comm/engine/card_lookups.hpp"

#include <utility>

#include "tandem/base/exceptions.hpp"

namespace tandem::comm::internal {

void CardLookups::ask(Rank rank) {
  const std::lock_guard guard(mutex_);
  if (stopped_) return;
  wanted_.push_back(rank);
  std::erase_if(workers_, [](const auto& worker) {
    if (worker->ended) worker->thread.join();  // it has left its loop
    return worker->ended;
  });
  if (workers_.size() == kMostThreads) return;
  auto worker = std::make_unique<Worker>();
  try {
    worker->thread = base::Thread({.name = "tandem-cards"}, [this, self = worker.get()] { work(*self); });
  } catch (const StartError&) {
    return;  // the system has no thread now: an existing one takes the rank, or the next look-up's
  }
  workers_.push_back(std::move(worker));
}

std::optional<CardLookups::Turn> CardLookups::next_turn() {
  if (stopped_) return std::nullopt;
  if (!wanted_.empty()) {
    const Rank rank = wanted_.front();
    wanted_.pop_front();
    return Turn{rank, false};
  }
  if (absent_.empty() || patient_ + 1 >= kMostThreads) return std::nullopt;
  const Rank rank = absent_.front();
  absent_.pop_front();
  return Turn{rank, true};
}

void CardLookups::work(Worker& self) {
  std::unique_lock lock(mutex_);
  while (const auto turn = next_turn()) {
    patient_ += turn->was_absent;
    lock.unlock();
    auto card = directory_->lookup_for(turn->rank, turn->was_absent ? kSliceNs : kFirstSliceNs);
    lock.lock();
    patient_ -= turn->was_absent;
    if (stopped_) break;
    if (!card) {
      absent_.push_back(turn->rank);
      continue;
    }
    lock.unlock();
    found_(turn->rank, *std::move(card));
    lock.lock();
  }
  self.ended = true;
}

void CardLookups::stop() {
  std::vector<std::unique_ptr<Worker>> workers;
  {
    const std::lock_guard guard(mutex_);
    stopped_ = true;
    workers.swap(workers_);
  }
  if (workers.empty()) return;
  directory_->give_up();
  for (const auto& worker : workers) worker->thread.join();
}

}  // namespace tandem::comm::internal
