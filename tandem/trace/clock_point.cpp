// tandem/trace/clock_point.cpp: the line through the first and the last point, in numbers that no file can make
// overflow.
#include "tandem/trace/clock_point.hpp"

#include <algorithm>
#include <limits>

namespace tandem::trace {

ReferenceLine::ReferenceLine(const ClockPoint& first, const ClockPoint& last) noexcept
    : first_local_(first.local_ns),
      first_offset_(Wide{first.reference_ns} - first.local_ns),
      error_ns_(std::max(first.error_ns, last.error_ns)) {
  if (last.local_ns <= first.local_ns) return;
  local_span_ = Wide{last.local_ns} - first.local_ns;
  offset_span_ = (Wide{last.reference_ns} - last.local_ns) - first_offset_;
  // A clock that is wrong by half its rate is unusable, and no run lasts for a century: one of such points is wrong,
  // whatever its origin. This also keeps the product below in its 128 bits.
  constexpr Wide century_ns = Wide{1} << 62;
  if (local_span_ > century_ns || 2 * offset_span_ >= local_span_ || 2 * offset_span_ <= -local_span_)
    local_span_ = offset_span_ = 0;
}

ReferenceLine ReferenceLine::through(std::span<const ClockPoint> points) noexcept {
  const auto is_barrier = [](const ClockPoint& point) { return point.kind == ClockPointKind::barrier; };
  const bool barriers = std::ranges::any_of(points, is_barrier);
  const ClockPoint* first = nullptr;
  const ClockPoint* last = nullptr;
  for (const ClockPoint& point : points) {
    if (barriers && !is_barrier(point)) continue;
    if (first == nullptr || point.local_ns < first->local_ns) first = &point;
    if (last == nullptr || point.local_ns >= last->local_ns) last = &point;
  }
  return first == nullptr ? ReferenceLine{} : ReferenceLine(*first, *last);
}

std::int64_t ReferenceLine::to_reference(std::int64_t local_ns, Outside outside) const noexcept {
  Wide elapsed = Wide{local_ns} - first_local_;
  if (outside == Outside::held) elapsed = std::clamp(elapsed, Wide{0}, local_span_);
  Wide time = Wide{local_ns} + first_offset_;
  if (local_span_ > 0) time += elapsed * offset_span_ / local_span_;
  constexpr Wide least = std::numeric_limits<std::int64_t>::min();
  constexpr Wide most = std::numeric_limits<std::int64_t>::max();
  return static_cast<std::int64_t>(std::clamp(time, least, most));
}

double ReferenceLine::rate() const noexcept {
  return local_span_ > 0 ? 1 + static_cast<double>(offset_span_) / static_cast<double>(local_span_) : 1;
}

}  // namespace tandem::trace
