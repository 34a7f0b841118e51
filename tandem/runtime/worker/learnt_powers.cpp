// tandem/runtime/worker/learnt_powers.cpp: looks into the table of powers.
#include "tandem/runtime/worker/learnt_powers.hpp"

#include <algorithm>
#include <mutex>
#include <utility>

#include "tandem/runtime/worker/duration_models.hpp"

namespace tandem::runtime {

LearntPowers::LearntPowers(const std::vector<WorkerSpec>& workers, model::PowerTable known)
    : known_(std::move(known)), powers_(known_) {
  for (const WorkerSpec& worker : workers) {
    auto at = std::ranges::find(kinds_, worker.device, &OfKind::device);
    if (at == kinds_.end()) at = kinds_.insert(at, {worker.device, kind_name(worker)});
    ++at->workers;
  }
}

void LearntPowers::update(const model::PowerTable& measured) {
  model::PowerTable sum = known_;
  sum.add(measured);
  const std::lock_guard guard(lock_);
  std::swap(powers_, sum);
}

std::optional<double> LearntPowers::kernel_watts(std::string_view codelet, DeviceKind kind) const {
  const auto at = std::ranges::find(kinds_, kind, &OfKind::device);
  if (at == kinds_.end()) return {};
  const std::lock_guard guard(lock_);
  const auto known = powers_.kernels.find({at->name, std::string(codelet)});
  if (known != powers_.kernels.end() && known->second.is_known()) return known->second.watts;
  const model::Watts mean = powers_.mean_of(at->name);
  return mean.seconds > 0 ? std::optional(mean.watts) : std::nullopt;
}

double LearntPowers::idle_watts() const {
  const std::lock_guard guard(lock_);
  double watts = 0;
  for (const OfKind& kind : kinds_)
    if (const auto known = powers_.idle.find(kind.name); known != powers_.idle.end()) watts += known->second.watts;
  return watts;
}

double LearntPowers::full_watts() const {
  double watts = idle_watts();
  const std::lock_guard guard(lock_);
  for (const OfKind& kind : kinds_) watts += kind.workers * powers_.mean_of(kind.name).watts;
  return watts;
}

}  // namespace tandem::runtime
