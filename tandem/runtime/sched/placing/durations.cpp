// tandem/runtime/sched/placing/durations.cpp: a history for each kind of kernel; trials of implementations, and the
// choice of the fastest one.
#include "tandem/runtime/sched/placing/durations.hpp"

#include <cmath>
#include <functional>
#include <ranges>
#include <utility>

#include "tandem/base/splitmix64.hpp"

namespace tandem::runtime {

namespace {

std::uint64_t key_of(std::string_view codelet, model::Footprint footprint, DeviceKind kind) noexcept {
  return base::mix64(base::mix64(std::hash<std::string_view>{}(codelet) + static_cast<std::uint64_t>(kind)) ^
                     footprint.shape);
}

}  // namespace

// --- one implementation

Estimate Durations::Kernel::estimate() const noexcept {
  if (!is_warm) return {.missing = kTrials + 1};
  const model::Estimate learned = history.estimate();
  const auto runs = static_cast<unsigned>(std::min<std::uint64_t>(learned.samples, kTrials));
  return {learned.mean_ns, learned.deviation_ns, runs == kTrials, kTrials - runs};
}

Durations::Choice Durations::Kernel::begin(bool is_usual) noexcept {
  ++begun;
  spent_ns = 0;
  return {implementation, is_usual};
}

// --- all implementations for a kind of worker

Durations::Kernel& Durations::Kernels::of(unsigned implementation) {
  const auto known = std::ranges::find(all, implementation, &Kernel::implementation);
  if (known != all.end()) return *known;
  all.emplace_back().implementation = implementation;
  return all.back();
}

Durations::Choice Durations::Kernels::choose() {
  auto offered = all | std::views::filter(&Kernel::is_offered);
  const auto rank = [](const Kernel& kernel) { return std::pair(kernel.is_tried(), kernel.begun); };
  Kernel& least_known = *std::ranges::min_element(offered, {}, rank);
  if (!least_known.is_tried()) return least_known.begin(true);
  Kernel& best = *std::ranges::min_element(offered, {}, &Kernel::mean_ns);
  for (Kernel& other : offered) {
    if (&other == &best || std::isinf(best.mean_ns())) continue;
    other.spent_ns += best.mean_ns();
    if (other.spent_ns > kShare * other.mean_ns()) return other.begin(false);
  }
  return {best.implementation, true};
}

void Durations::Kernels::add(unsigned implementation, double duration_ns) {
  Kernel& ran = of(implementation);
  if (!std::exchange(ran.is_warm, true)) return;
  ran.history.add(duration_ns);
  const double least_ns = std::ranges::min_element(all, {}, &Kernel::mean_ns)->mean_ns();
  if (duration_ns < least_ns) ran.spent_ns = std::numeric_limits<double>::infinity();
}

// --- all kernels

Estimate Durations::expected_ns(std::string_view codelet, model::Footprint footprint, DeviceKind kind) const {
  if (given_ != nullptr)
    if (const Estimate given = given_->expected_ns(codelet, footprint, kind); given.known) return given;
  const std::lock_guard guard(lock_);
  const Kernels* const kernels = kernels_.find(key_of(codelet, footprint, kind));
  Estimate best{.missing = kTrials + 1};
  if (kernels == nullptr) return best;
  for (const Kernel& kernel : kernels->all) {
    const Estimate one = kernel.estimate();
    if (std::pair(one.missing, one.mean_ns) < std::pair(best.missing, best.mean_ns)) best = one;
  }
  return best;
}

void Durations::add(std::string_view codelet, model::Footprint footprint, DeviceKind kind, unsigned implementation,
                    double duration_ns) {
  const std::lock_guard guard(lock_);
  Kernels& own = kernels_.use(key_of(codelet, footprint, kind));
  const bool tells_class = own.all.size() > 1 && !own.are_tried();
  own.add(implementation, duration_ns);
  if (tells_class)
    kernels_.use(key_of(codelet, model::size_class_of(footprint), kind)).add(implementation, duration_ns);
}

/// The kernels among which `codelet` chooses.
Durations::Kernels& Durations::offered_by(const CodeletCore& codelet, model::Footprint footprint, DeviceKind kind) {
  Kernels& own = kernels_.use(key_of(codelet.name, footprint, kind));
  for (Kernel& kernel : own.all) kernel.is_offered = false;
  for (unsigned i = 0; i < codelet.devices.size(); ++i) {
    if (codelet.devices[i] != kind) continue;
    Kernel& kernel = own.of(i);
    kernel.is_offered = true;
    if (kernel.begun != 0 || kernel.given_ns > 0 || given_ == nullptr) continue;
    if (const Estimate given = given_->expected_ns_by(i, codelet.name, footprint, kind); given.known)
      kernel.given_ns = given.mean_ns;
  }
  return own;
}

Durations::Choice Durations::choose(const CodeletCore& codelet, model::Footprint footprint, DeviceKind kind) {
  const std::lock_guard guard(lock_);
  Kernels& own = offered_by(codelet, footprint, kind);
  const auto has_run = [](const Kernel& kernel) { return kernel.begun != 0 || kernel.given_ns > 0; };
  if (std::ranges::any_of(own.all, has_run)) return own.choose();
  const Choice choice = offered_by(codelet, model::size_class_of(footprint), kind).choose();
  ++own.of(choice.implementation).begun;
  return choice;
}

std::vector<Durations::Known> Durations::known(const CodeletCore& codelet, model::Footprint footprint,
                                               DeviceKind kind) {
  const std::lock_guard guard(lock_);
  std::vector<Known> result;
  for (const Kernel& kernel : offered_by(codelet, footprint, kind).all)
    if (kernel.is_offered) result.push_back({kernel.implementation, kernel.mean_ns(), kernel.is_tried()});
  return result;
}

}  // namespace tandem::runtime
