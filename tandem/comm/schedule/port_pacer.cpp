// tandem/comm/schedule/port_pacer.cpp: which bulk waits.
#include "tandem/comm/schedule/port_pacer.hpp"

#include <algorithm>

namespace tandem::comm {

bool PortPacer::changed(std::optional<std::int32_t> before, std::optional<std::int32_t> after, std::int64_t now_ns) {
  const auto top = [this] { return ready_.empty() ? std::optional<std::int32_t>() : ready_.rbegin()->first; };
  const std::optional<std::int32_t> top_before = top();
  if (before) {
    const auto found = ready_.find(*before);
    if (--found->second == 0) ready_.erase(found);
  }
  if (after) ++ready_[*after];
  if (after && (!top_before || *after > *top_before)) moved_ns_ = now_ns;
  return top_before && (ready_.empty() || top() < top_before);
}

void PortPacer::moved(std::int32_t priority, std::int64_t now_ns, std::int64_t grace_ns) {
  grace_ns_ = grace_ns;
  if (ready_.empty() || priority >= ready_.rbegin()->first) moved_ns_ = now_ns;
}

bool PortPacer::holds(std::int32_t priority, std::int64_t now_ns, std::int64_t busy_ns) const {
  if (!ready_.empty() && ready_.rbegin()->first > priority && now_ns - moved_ns_ < grace_ns_) return true;
  return std::any_of(announced_.begin(), announced_.end(), [&](const Announced& soon) {
    return soon.priority > priority && soon.when_ns <= now_ns + busy_ns && now_ns < soon.late_ns;
  });
}

bool PortPacer::expects_above(std::int32_t priority, std::int64_t now_ns) const {
  return std::any_of(announced_.begin(), announced_.end(),
                     [&](const Announced& soon) { return soon.priority > priority && now_ns < soon.late_ns; });
}

std::int64_t PortPacer::due_ns(std::int64_t now_ns) const {
  const std::int64_t open_ns = moved_ns_ + grace_ns_;
  std::int64_t due = !ready_.empty() && open_ns > now_ns ? open_ns : kNever;
  for (const Announced& soon : announced_) due = std::min(due, soon.late_ns);
  return due;
}

std::uint64_t PortPacer::announce(std::int32_t priority, std::int64_t when_ns, std::int64_t late_ns) {
  announced_.push_back({++last_number_, priority, when_ns, late_ns});
  return last_number_;
}

bool PortPacer::withdraw(std::uint64_t number) {
  return std::erase_if(announced_, [&](const Announced& soon) { return soon.number == number; }) > 0;
}

void PortPacer::expire(std::int64_t now_ns) {
  std::erase_if(announced_, [&](const Announced& soon) { return soon.late_ns <= now_ns; });
}

}  // namespace tandem::comm
