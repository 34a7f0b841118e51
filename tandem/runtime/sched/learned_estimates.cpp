// tandem/runtime/sched/learned_estimates.cpp: means that follow what is measured.
#include "tandem/runtime/sched/learned_estimates.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <mutex>

#include "tandem/base/splitmix64.hpp"

namespace tandem::runtime {

namespace {

std::uint64_t key_of(std::string_view codelet, model::Footprint footprint, DeviceKind kind) noexcept {
  return base::mix64(base::mix64(std::hash<std::string_view>{}(codelet) + static_cast<std::uint64_t>(kind)) ^ footprint.shape);
}

}  // namespace

Estimate LearnedEstimates::expected_ns(std::string_view codelet, model::Footprint footprint, DeviceKind kind) const {
  if (given_ != nullptr)
    if (const Estimate given = given_->expected_ns(codelet, footprint, kind); given.known) return given;
  const std::uint64_t key = key_of(codelet, footprint, kind);
  const std::lock_guard guard(lock_);
  const auto known = learned_.find(key);
  if (known == learned_.end() || known->second.count == 0) return {};
  const Learned& learned = known->second;
  return {learned.mean_ns, std::sqrt(learned.variance), learned.count >= kTrials};
}

void LearnedEstimates::add(std::string_view codelet, model::Footprint footprint, DeviceKind kind, double duration_ns) {
  if (given_ != nullptr) given_->add(codelet, footprint, kind, duration_ns);
  const std::uint64_t key = key_of(codelet, footprint, kind);
  const std::lock_guard guard(lock_);
  auto known = learned_.find(key);
  if (known == learned_.end()) {
    if (learned_.size() >= kMostFootprints) return;
    known = learned_.emplace(key, Learned{}).first;
  }
  Learned& learned = known->second;
  if (!learned.warm) {
    learned.warm = true;
    return;
  }
  const bool is_accident = learned.count >= kTrials && duration_ns > kAccident * learned.mean_ns;
  if (is_accident && !learned.after_accident) {
    learned.after_accident = true;
    return;
  }
  learned.after_accident = is_accident;
  learned.count = std::min(learned.count + 1, kMemory);
  // Welford's recurrence, in which the weight of a new value does not fall below 1/kMemory.
  const double weight = 1.0 / learned.count;
  const double delta = duration_ns - learned.mean_ns;
  learned.mean_ns += weight * delta;
  learned.variance = (1 - weight) * (learned.variance + weight * delta * delta);
}

}  // namespace tandem::runtime
