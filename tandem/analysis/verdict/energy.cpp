// tandem/analysis/verdict/energy.cpp: intervals of counters, and the tasks that ran in them.
#include "tandem/analysis/verdict/energy.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "tandem/analysis/verdict/worker_kinds.hpp"

namespace tandem::analysis {
namespace {

double seconds_of(std::int64_t ns) noexcept { return static_cast<double>(ns) * 1e-9; }

struct Sample {
  std::int64_t start_ns = 0, end_ns = 0;
  double joules = 0;
  std::map<unsigned, double> busy_s = {};  ///< by number of the codelet
};

/// Counters of one rank that show the energy of the same workers.
struct Source {
  std::uint32_t rank = 0;
  const std::vector<unsigned>* workers = nullptr;
  std::uint32_t kind = 0;
  std::vector<Sample> samples = {};  ///< in the order of time
};

/// The codelets that ran on one kind of worker.
class Codelets {
 public:
  /// The number of a codelet; one number stands for all beyond the limit.
  unsigned number_of(Texts::Id codelet) {
    if (const auto known = numbers_.find(codelet); known != numbers_.end()) return known->second;
    const auto number = static_cast<unsigned>(std::min(ids_.size(), model::PowerModel::kMostCodelets - 1));
    if (number == ids_.size()) ids_.push_back(codelet);
    return numbers_[codelet] = number;
  }
  /// The name of the codelet of that number.
  std::string_view name(unsigned number, const Texts& texts) const {
    if (number + 1 == model::PowerModel::kMostCodelets && numbers_.size() > ids_.size()) return "(others)";
    return texts[ids_[number]];
  }

 private:
  std::map<Texts::Id, unsigned> numbers_;
  std::vector<Texts::Id> ids_;
};

std::vector<Source> sources_of(const History& history, const WorkerKinds& kinds, std::vector<std::size_t>& of_counter) {
  std::vector<Source> sources;
  for (const EnergyCounter& counter : history.energy_counters) {
    const auto same = std::ranges::find_if(
        sources, [&](const Source& one) { return one.rank == counter.rank && *one.workers == counter.workers; });
    of_counter.push_back(static_cast<std::size_t>(same - sources.begin()));
    if (same != sources.end()) continue;
    const auto first = static_cast<std::uint16_t>(counter.workers.empty() ? 0 : counter.workers.front());
    sources.push_back({.rank = counter.rank, .workers = &counter.workers, .kind = kinds.of(counter.rank, first)});
  }
  for (const EnergyRow& row : history.energy) {
    std::vector<Sample>& samples = sources[of_counter[row.counter]].samples;
    // The counters of a source are read one after the other: their intervals begin and end within some us of each
    // other.
    const std::int64_t near_ns = (row.end_ns - row.start_ns) / 4;
    if (!samples.empty() && row.end_ns - samples.back().end_ns < near_ns) samples.back().joules += row.joules;
    else samples.push_back({.start_ns = row.start_ns, .end_ns = row.end_ns, .joules = row.joules});
  }
  return sources;
}

/// Adds a kernel that ran from `start_ns` to `end_ns`.
void add_busy(std::vector<Sample>& samples, std::int64_t start_ns, std::int64_t end_ns, unsigned codelet) {
  for (auto at = std::ranges::upper_bound(samples, start_ns, {}, &Sample::end_ns);
       at != samples.end() && at->start_ns < end_ns; ++at) {
    const std::int64_t ns = std::min(end_ns, at->end_ns) - std::max(start_ns, at->start_ns);
    if (ns > 0) at->busy_s[codelet] += seconds_of(ns);
  }
}

}  // namespace

RunEnergy RunEnergy::of(const History& history) {
  RunEnergy result;
  if (history.energy.empty()) return result;
  const WorkerKinds kinds(history);
  std::vector<std::size_t> of_counter;
  std::vector<Source> sources = sources_of(history, kinds, of_counter);
  for (const EnergyCounter& counter : history.energy_counters)
    result.counters.push_back({.rank = counter.rank, .name = counter.name});
  for (const EnergyRow& row : history.energy) {
    result.counters[row.counter].joules += row.joules;
    result.counters[row.counter].seconds += seconds_of(row.end_ns - row.start_ns);
    result.joules += row.joules;
  }
  std::map<std::pair<std::uint32_t, unsigned>, std::size_t> source_of;  // by rank and worker
  for (std::size_t i = 0; i < sources.size(); ++i)
    for (const unsigned worker : *sources[i].workers) source_of[{sources[i].rank, worker}] = i;
  std::map<std::uint32_t, Codelets> codelets;  // by kind
  const TaskTable& tasks = history.tasks;
  for (const std::uint32_t row : tasks.rows()) {
    if (!tasks.has_run(row)) continue;
    const auto source = source_of.find({tasks.rank[row], tasks.worker[row]});
    if (source == source_of.end()) continue;
    Source& on = sources[source->second];
    add_busy(on.samples, tasks.start_ns[row], tasks.end_ns[row], codelets[on.kind].number_of(tasks.codelet(row)));
  }
  std::map<std::uint32_t, model::PowerModel> models;
  for (const Source& source : sources)
    for (const Sample& sample : source.samples) {
      std::vector<model::PowerModel::Busy> busy;
      for (const auto& [codelet, seconds] : sample.busy_s) busy.push_back({codelet, seconds});
      models[source.kind].add(sample.joules, seconds_of(sample.end_ns - sample.start_ns), busy);
    }
  for (const auto& [kind, model] : models) {
    const std::string_view name = kind < kinds.names().size() ? kinds.names()[kind] : "cpu";
    const model::PowerModel::Fit fit = model.fit();
    result.kinds.push_back(
        {.kind = name, .joules = model.joules(), .idle_joules = fit.idle.watts * model.seconds(), .idle = fit.idle});
    for (unsigned k = 0; k < fit.codelets.size(); ++k)
      if (const model::Watts& watts = fit.codelets[k]; watts.seconds > 0)
        result.kernels.push_back({.codelet = codelets[kind].name(k, history.texts), .kind = name, .joules = watts.watts * watts.seconds, .watts = watts});
  }
  std::ranges::stable_sort(result.kernels, std::greater(), &Kernel::joules);
  return result;
}

}  // namespace tandem::analysis
