// tandem/comm/request.cpp: references to operations, and the queue of their endings.
#include "tandem/comm/request.hpp"

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

bool Request::arrived() const noexcept { return core_ != nullptr && (core_->stage_now() & internal::RequestCore::kArrived) != 0; }

bool Request::released() const noexcept {
  return core_ != nullptr && (core_->stage_now() & internal::RequestCore::kReleased) != 0;
}

Status Request::status() const { return core_ != nullptr ? core_->status() : Status{}; }

namespace internal {

[[gnu::noinline]] void DeleteExtra::operator()(Extra* extra) const noexcept { delete extra; }

[[gnu::noinline]] void RequestCore::add_extra(Status& status) const {
  status.header = extra->header;
  status.culprit = extra->culprit;
  if (extra->owned != nullptr) status.owned = {extra->owned.get(), bytes};
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
