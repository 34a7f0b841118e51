// tandem/comm/request.cpp: references to operations, and the queue of their endings.
#include "tandem/comm/request.hpp"

#include <array>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "tandem/base/spin_lock.hpp"
#include "tandem/comm/engine/core.hpp"

namespace tandem::comm {

std::string_view name_of(Ending ending) noexcept {
  switch (ending) {
    case Ending::pending: return "pending";
    case Ending::done: return "done";
    case Ending::truncated: return "truncated";
    case Ending::cancelled: return "cancelled";
    case Ending::peer_dead: return "peer dead";
    case Ending::peer_left: return "peer left";
  }
  return "?";
}

void CompletionQueue::push(const Entry& entry) {
  const std::lock_guard lock(mutex_);
  entries_.push_back(entry);
}

std::optional<CompletionQueue::Entry> CompletionQueue::pop() {
  const std::lock_guard lock(mutex_);
  if (entries_.empty()) return std::nullopt;
  const Entry entry = entries_.front();
  entries_.pop_front();
  return entry;
}

Request::Request(const Request& other) noexcept : core_(other.core_) {
  if (core_ != nullptr) core_->retain();
}

Request::~Request() {
  if (core_ != nullptr) core_->drop();
}

bool Request::arrived() const noexcept {
  return core_ != nullptr && (core_->stage_now() & internal::RequestCore::kArrived) != 0;
}

bool Request::released() const noexcept { return core_ != nullptr && core_->ended(); }

Status Request::status() const { return core_ != nullptr ? core_->status() : Status{}; }

std::uint32_t Request::trace_number() const noexcept { return core_ != nullptr ? core_->request : 0; }

namespace internal {

[[gnu::noinline]] void DeleteExtra::operator()(Extra* extra) const noexcept { delete extra; }

[[gnu::noinline]] void RequestCore::add_extra(Status& status) const {
  status.header = extra->header;
  status.culprit = extra->culprit;
  if (extra->owned != nullptr) status.owned = {extra->owned.get(), bytes};
}

namespace {

/// Operations that had not ended when their last user dropped them. Never destroyed: threads may drop references while
/// the process ends.
struct Orphans {
  base::SpinLock lock;
  std::vector<RequestCore*> all;  ///< guarded by the lock
  std::size_t next = 0;           ///< index of the next check; guarded by the lock

  static Orphans& instance() {
    static auto& orphans = *new Orphans;
    return orphans;
  }
  /// Removes one that has ended, or returns null after `looks` checks without success. The lock is held.
  RequestCore* take_ended(std::size_t looks) noexcept {
    for (; looks > 0 && !all.empty(); --looks) {
      next = next + 1 < all.size() ? next + 1 : 0;
      if (!all[next]->ended()) continue;
      RequestCore* const ended = std::exchange(all[next], all.back());
      all.pop_back();
      return ended;
    }
    return nullptr;
  }
};

}  // namespace

/// Makes two checks for each new one, so that ended ones are never more than the others.
[[gnu::noinline]] void RequestCore::orphan(RequestCore& core) noexcept {
  Orphans& orphans = Orphans::instance();
  std::array<RequestCore*, 2> ended{};
  try {
    const std::lock_guard guard(orphans.lock);
    for (RequestCore*& one : ended) one = orphans.take_ended(1);
    orphans.all.push_back(&core);
  } catch (const std::bad_alloc&) {  // without a place in the list it is never freed, which costs less than ending the
                                     // program
  }
  for (RequestCore* one : ended) {
    if (one != nullptr) one->destroy();
  }
}

void RequestCore::free_orphans() noexcept {
  Orphans& orphans = Orphans::instance();
  while (true) {
    RequestCore* ended = nullptr;
    {
      const std::lock_guard guard(orphans.lock);
      ended = orphans.take_ended(orphans.all.size());
    }
    if (ended == nullptr) return;
    ended->destroy();
  }
}

std::size_t RequestCore::orphans() noexcept {
  Orphans& orphans = Orphans::instance();
  const std::lock_guard guard(orphans.lock);
  return orphans.all.size();
}

void RequestCore::destroy() noexcept {
  switch (kind) {
    case Kind::send: delete static_cast<SendCore*>(this); return;
    case Kind::sent: delete static_cast<SentCore*>(this); return;
    case Kind::receive: delete static_cast<ReceiveCore*>(this); return;
    case Kind::broadcast: delete static_cast<McastCore*>(this); return;
  }
}

}  // namespace internal
}  // namespace tandem::comm
