// tandem/runtime/worker/duration_models.cpp: finds the model of a codelet and a kind of worker.
#include "tandem/runtime/worker/duration_models.hpp"

#include <algorithm>
#include <cctype>
#include <mutex>

#include "tandem/base/splitmix64.hpp"
#include "tandem/runtime/data/handle.hpp"
#include "tandem/runtime/device/device.hpp"

namespace tandem::runtime {
namespace {

/// "opencl 1 (Graphics)" becomes "opencl (Graphics)": equal devices learn together.
std::string without_number(const std::string& name) {
  std::string result;
  for (std::size_t begin = 0; begin < name.size();) {
    const std::size_t end = std::min(name.find(' ', begin), name.size());
    const auto word = name.substr(begin, end - begin);
    const bool is_number = !word.empty() && std::all_of(word.begin(), word.end(),
                                                        [](unsigned char c) { return std::isdigit(c) != 0; });
    if (!is_number) result += (result.empty() ? "" : " ") + word;
    begin = end + 1;
  }
  return result.empty() ? "device" : result;
}

}  // namespace

std::string kind_name(const WorkerSpec& worker) {
  if (worker.unit != nullptr) return without_number(worker.unit->name());
  switch (worker.device) {
    case DeviceKind::cpu: return "cpu";
    case DeviceKind::cuda: return "cuda";
    case DeviceKind::opencl: return "opencl";
    default: return "user";
  }
}

DurationModels::DurationModels(const std::vector<WorkerSpec>& workers) {
  for (const WorkerSpec& worker : workers) {
    kinds_.push_back(kind_name(worker));
    devices_.push_back(worker.device);
  }
}

DurationModels::Entry& DurationModels::entry(std::string_view codelet, const model::WorkKind& kind) {
  const std::lock_guard guard(lock_);
  auto at = codelets_.find(codelet);
  if (at == codelets_.end()) at = codelets_.emplace(std::string(codelet), Kinds()).first;
  std::unique_ptr<Entry>& found = at->second[kind];
  if (found == nullptr) found = std::make_unique<Entry>();
  return *found;
}

/// Finds the entries of a codelet's implementations for such workers, or of one of them. Returns their number.
std::size_t DurationModels::find(std::string_view codelet, const std::string& worker,
                                 std::optional<std::uint32_t> implementation,
                                 std::array<Entry*, kMostEntries>& found) const {
  const std::lock_guard guard(lock_);
  const auto at = codelets_.find(codelet);
  if (at == codelets_.end()) return 0;
  std::size_t count = 0;
  for (const auto& [kind, entry] : at->second)
    if (kind.worker == worker && (!implementation || kind.implementation == *implementation) && count < kMostEntries)
      found[count++] = entry.get();
  return count;
}

model::Estimate DurationModels::least(std::string_view codelet, model::Footprint footprint, unsigned worker,
                                      std::optional<std::uint32_t> implementation, By by) const {
  std::array<Entry*, kMostEntries> found;
  const std::size_t count = find(codelet, kinds_[worker], implementation, found);
  model::Estimate best;
  for (std::size_t i = 0; i < count; ++i) {
    const std::lock_guard guard(found[i]->lock);
    const model::Estimate estimate = (found[i]->sizes.*by)(footprint);
    if (i == 0 || (estimate.known && (!best.known || estimate.mean_ns < best.mean_ns))) best = estimate;
  }
  return best;
}

std::optional<unsigned> DurationModels::worker_of(DeviceKind kind) const {
  const auto at = std::find(devices_.begin(), devices_.end(), kind);
  return at != devices_.end() ? std::optional(static_cast<unsigned>(at - devices_.begin())) : std::nullopt;
}

void DurationModels::set(const model::CodeletModels& models) {
  for (const auto& [kind, sizes] : models.kinds) {
    Entry& own = entry(models.codelet, kind);
    const std::lock_guard guard(own.lock);
    own.sizes = sizes;
    own.sizes.forget_news();
  }
}

std::vector<model::CodeletModels> DurationModels::news() const {
  std::vector<model::CodeletModels> result;
  const std::lock_guard guard(lock_);
  for (const auto& [name, kinds] : codelets_) {
    if (name.empty()) continue;  // such codelets have no file
    model::CodeletModels models{.codelet = name, .kinds = {}};
    for (const auto& [kind, found] : kinds)
      if (found->sizes.has_news()) models.kinds[kind] = found->sizes;
    if (!models.kinds.empty()) result.push_back(std::move(models));
  }
  return result;
}

model::Estimate DurationModels::expected_ns(std::string_view codelet, model::Footprint footprint,
                                            unsigned worker) const {
  return least(codelet, footprint, worker, {}, &model::SizeModel::estimate);
}

model::Estimate DurationModels::expected_ns(std::string_view codelet, model::Footprint footprint,
                                            DeviceKind kind) const {
  const auto worker = worker_of(kind);
  return worker ? least(codelet, footprint, *worker, {}, &model::SizeModel::estimate) : model::Estimate{};
}

model::Estimate DurationModels::expected_ns(std::string_view codelet, model::Footprint footprint, DeviceKind kind,
                                            unsigned implementation) const {
  const auto worker = worker_of(kind);
  return worker ? least(codelet, footprint, *worker, implementation, &model::SizeModel::estimate) : model::Estimate{};
}

model::Estimate DurationModels::overall_ns(std::string_view codelet, model::Footprint footprint, DeviceKind kind,
                                           unsigned implementation) const {
  const auto worker = worker_of(kind);
  return worker ? least(codelet, footprint, *worker, implementation, &model::SizeModel::overall) : model::Estimate{};
}

DurationModels::Entry& DurationModels::Collector::entry_of(const CodeletCore& codelet, std::uint32_t implementation) {
  static_assert(kMaxImplementations <= sizeof(CodeletCore));  // so that no two implementations have the same number
  Entry*& known = known_[reinterpret_cast<std::uintptr_t>(&codelet) + implementation];
  if (known == nullptr) known = &models_.entry(codelet.name, {.worker = kind_, .implementation = implementation});
  return *known;
}

void DurationModels::Collector::flush() {
  for (std::size_t i = 0; i < count_; ++i) {
    const Sample& sample = buffer_[i];
    Entry& entry = entry_of(*sample.codelet, sample.implementation);
    const std::lock_guard guard(entry.lock);
    entry.sizes.add(sample.footprint, static_cast<double>(sample.duration_ns));
  }
  count_ = 0;
}

}  // namespace tandem::runtime
