// tandem/comm/mcast/port_rate.cpp: the two lines of port_rate.hpp, learnt at the end of each busy time.
#include "tandem/comm/mcast/port_rate.hpp"

#include <algorithm>

namespace tandem::comm {
namespace {

constexpr double believed_when_slower = 0.05;

}  // namespace

void PortRate::took(std::int64_t now_ns, std::size_t bytes) {
  if (taken_ == 0) began_ns_ = now_ns;
  taken_ += static_cast<double>(bytes);
  last_took_ns_ = now_ns;
}

void PortRate::refused(std::int64_t now_ns, std::size_t unsent_bytes) {
  if (!awaits_refusal()) return;
  refused_ns_ = now_ns;
  taken_when_refused_ = taken_;
  unsent_when_refused_ = static_cast<double>(unsent_bytes);
}

void PortRate::rested(std::int64_t) {
  learn();
  taken_ = 0;
  refused_ns_ = -1;
}

void PortRate::learn() {
  if (refused_ns_ < 0) return;
  const double bytes = taken_ - taken_when_refused_;
  const auto took_ns = static_cast<double>(last_took_ns_ - refused_ns_);
  if (bytes < least_bytes || took_ns <= 0) return;
  const double rate = bytes / took_ns;
  const auto before_ns = static_cast<double>(refused_ns_ - began_ns_);
  const double at_once = std::max(0.0, taken_when_refused_ - unsent_when_refused_ - rate * before_ns);
  const double burst = at_once > 3 * rate * before_ns ? at_once : 0;
  const double recent = known_ ? 0.25 : 1;
  bytes_per_ns_ += (known_ && rate < bytes_per_ns_ ? believed_when_slower : recent) * (rate - bytes_per_ns_);
  burst_bytes_ += recent * (burst - burst_bytes_);
  known_ = true;
}

}  // namespace tandem::comm
