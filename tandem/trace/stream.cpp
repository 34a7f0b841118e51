// tandem/trace/stream.cpp: the rare paths of a probe: a full buffer, a long pause, a stream's end.
#include "tandem/trace/stream.hpp"

#include <utility>

#include "tandem/trace/session.hpp"

namespace tandem::trace {

Stream::Open Stream::open_slowly(Type type, std::uint64_t ticks, std::size_t bytes) noexcept {
  Session* const session = session_.load(std::memory_order_acquire);
  if (session == nullptr) return {};  // it is being attached, or has just gone
  // A stamp may have been read before another event was written; stamps of a stream do not decrease.
  if (static_cast<std::int64_t>(ticks - last_event_) < 0) ticks = last_event_;
  const bool declared = static_cast<std::size_t>(type) >= kFirstDeclared;
  bool whole = declared || ticks - last_ >= RecordHeader::stamp_span;
  const auto room = [&] {
    const std::size_t header = whole ? RecordHeader::extended_bytes : RecordHeader::compact_bytes;
    return static_cast<std::size_t>(end_ - at_) >= header + internal::rounded(bytes);
  };
  if (!room()) {
    if (!session->renew(*this, ticks)) {
      ++lost_;
      return {};
    }
    whole = declared;  // the packet begins at this stamp
    if (lost_ != lost_reported_ && any_on<Type::events_lost>()) {
      const std::uint64_t lost = lost_ - lost_reported_;
      write<Type::events_lost>(ticks, lost);
      lost_reported_ = lost_;
    }
    // The stamp is that of the event that needed a buffer, since it happened before the wait and stamps do not
    // decrease.
    if (waited_ns_ != 0 && any_on<Type::tracer_waited>())
      write<Type::tracer_waited>(ticks, std::exchange(waited_ns_, 0));
    if (!room()) {  // more than a buffer holds
      ++lost_;
      return {};
    }
  }
  std::byte* const at = at_;
  last_ = last_event_ = ticks;
  if (whole) {
    std::memcpy(at + RecordHeader::compact_bytes, &ticks, sizeof(ticks));
    at_ = at + RecordHeader::extended_bytes + internal::rounded(bytes);
    fill_up(bytes);
    return {at + RecordHeader::extended_bytes, reinterpret_cast<std::uint32_t*>(at), RecordHeader::extended(type)};
  }
  at_ = at + RecordHeader::compact_bytes + internal::rounded(bytes);
  fill_up(bytes);
  return {at + RecordHeader::compact_bytes, reinterpret_cast<std::uint32_t*>(at), RecordHeader::compact(type, ticks)};
}

void Stream::detach() noexcept {
  if (Session* const session = session_.load(std::memory_order_acquire)) session->let_go(*this);
}

}  // namespace tandem::trace
