// tandem/comm/mcast/port_rate.cpp: the two lines of port_rate.hpp, learnt at the end of each busy time.
#include "tandem/comm/mcast/port_rate.hpp"

#include <algorithm>
#include <cstddef>

namespace tandem::comm {
namespace {

constexpr std::int64_t first_look_ns = 250'000;
constexpr double most_rough_burst = 128 * 1024;

}  // namespace

void PortRate::took(std::int64_t now_ns, std::size_t bytes) {
  if (taken_ == 0) began_ns_ = now_ns;
  taken_ += static_cast<double>(bytes);
  taken_since_sample_ += static_cast<double>(bytes);
  look_ns_ = -1;
}

void PortRate::refused(std::int64_t now_ns, std::size_t unsent_bytes) {
  if (!awaits_refusal()) return;
  since_ns_ = now_ns;
  gone_before_ = taken_ - static_cast<double>(unsent_bytes);
  bends_ = true;
}

void PortRate::sample(std::int64_t now_ns, std::size_t unsent_bytes) {
  taken_since_sample_ = 0;
  const double gone = taken_ - static_cast<double>(unsent_bytes);
  learn(now_ns, gone);
  since_ns_ = now_ns;
  gone_before_ = gone;
  bends_ = false;
}

void PortRate::rested(std::int64_t now_ns, std::size_t unsent_bytes) {
  gone_when_rested_ = taken_ - static_cast<double>(unsent_bytes);
  learn(now_ns, gone_when_rested_);
  taken_ = taken_since_sample_ = 0;
  since_ns_ = -1;
  bends_ = false;
  if (known_ || static_cast<double>(unsent_bytes) <= least_bytes) return;
  rested_ns_ = now_ns;
  unsent_when_rested_ = static_cast<double>(unsent_bytes);
  look_ns_ = now_ns + first_look_ns;
}

void PortRate::look(std::int64_t now_ns, std::size_t unsent_bytes) {
  if (look_ns_ < 0 || now_ns < look_ns_) return;
  const double bytes = unsent_when_rested_ - static_cast<double>(unsent_bytes);
  const auto took_ns = static_cast<double>(now_ns - rested_ns_);
  // twice as late, so that one look lies between the least and all
  look_ns_ = now_ns + static_cast<std::int64_t>(took_ns);
  if (unsent_bytes > 0 && bytes < least_bytes) return;
  look_ns_ = -1;
  if (unsent_bytes == 0) return;  // it is unknown when it was empty
  bytes_per_ns_ = bytes / took_ns;
  const double at_once = gone_when_rested_ - bytes_per_ns_ * static_cast<double>(rested_ns_ - began_ns_);
  burst_bytes_ = std::clamp(at_once, 0.0, most_rough_burst);
  known_ = true;
}

void PortRate::learn(std::int64_t now_ns, double gone_bytes) {
  if (since_ns_ < 0) return;
  const double bytes = gone_bytes - gone_before_;
  const auto took_ns = static_cast<double>(now_ns - since_ns_);
  if (bytes < least_bytes || took_ns <= 0) return;
  const double rate = bytes / took_ns;
  const bool is_first = learnt_ == 0;
  recent_[learnt_++ % recent_.size()] = rate;
  std::array<double, most_recent> sorted = recent_;
  const std::size_t count = std::min<std::size_t>(learnt_, sorted.size());
  const auto median = sorted.begin() + static_cast<std::ptrdiff_t>(count / 2);
  std::nth_element(sorted.begin(), median, sorted.begin() + static_cast<std::ptrdiff_t>(count));
  bytes_per_ns_ = *median;
  known_ = true;
  if (!bends_) return;
  const auto before_ns = static_cast<double>(since_ns_ - began_ns_);
  const double at_once = std::max(0.0, gone_before_ - rate * before_ns);
  const double burst = at_once > 3 * rate * before_ns ? at_once : 0;
  burst_bytes_ += (is_first ? 1 : 0.25) * (burst - burst_bytes_);
}

}  // namespace tandem::comm
