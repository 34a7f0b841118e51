// tandem/runtime/sched/learned_estimates.cpp: a history for each kind of kernel.
#include "tandem/runtime/sched/learned_estimates.hpp"

#include <functional>
#include <utility>

#include "tandem/base/splitmix64.hpp"

namespace tandem::runtime {

namespace {

std::uint64_t key_of(std::string_view codelet, model::Footprint footprint, DeviceKind kind) noexcept {
  return base::mix64(base::mix64(std::hash<std::string_view>{}(codelet) + static_cast<std::uint64_t>(kind)) ^
                     footprint.shape);
}

}  // namespace

Estimate LearnedEstimates::expected_ns(std::string_view codelet, model::Footprint footprint, DeviceKind kind) const {
  if (given_ != nullptr)
    if (const Estimate given = given_->expected_ns(codelet, footprint, kind); given.known) return given;
  const std::uint64_t key = key_of(codelet, footprint, kind);
  const std::lock_guard guard(lock_);
  const Learned* const known = learned_.find(key);
  if (known == nullptr) return {.missing = kTrials + 1};
  const model::Estimate learned = known->history.estimate();
  if (learned.samples >= kTrials) return {learned.mean_ns, learned.deviation_ns, true};
  return {learned.mean_ns, learned.deviation_ns, false, kTrials - static_cast<unsigned>(learned.samples)};
}

void LearnedEstimates::add(std::string_view codelet, model::Footprint footprint, DeviceKind kind, double duration_ns) {
  if (given_ != nullptr) given_->add(codelet, footprint, kind, duration_ns);
  add_class(codelet, footprint, kind, duration_ns);
}

void LearnedEstimates::add_class(std::string_view codelet, model::Footprint footprint, DeviceKind kind,
                                 double duration_ns) {
  const std::lock_guard guard(lock_);
  Learned& learned = learned_.use(key_of(codelet, footprint, kind));
  if (std::exchange(learned.is_warm, true)) learned.history.add(duration_ns);
}

}  // namespace tandem::runtime
