// tandem/runtime/worker/energy_meter.cpp: takes samples of counters, and computes powers from them.
#include "tandem/runtime/worker/energy_meter.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "tandem/base/pu_list.hpp"
#include "tandem/runtime/worker/learnt_powers.hpp"

namespace tandem::runtime {

EnergyMeter::EnergyMeter(std::vector<EnergySource> sources, BusyTimes busy, std::int64_t every_ns, std::int64_t now_ns)
    : busy_(std::move(busy)), every_ns_(every_ns) {
  for (EnergySource& of : sources) {
    auto kind = std::ranges::find(kinds_, of.kind, &Kind::name);
    if (kind == kinds_.end()) {
      kind = kinds_.insert(kind, Kind());
      kind->name = of.kind;
    }
    const std::size_t counters = of.counters.size();
    Source& source =
        sources_.emplace_back(Source{.of = std::move(of), .kind = static_cast<unsigned>(kind - kinds_.begin())});
    source.last_uj.resize(counters);
    source.is_read.resize(counters);
    source.joules.resize(counters);
    source.names.resize(counters);
    source.last_ns = now_ns;
    for (std::size_t i = 0; i < counters; ++i) {
      const auto uj = source.of.counters[i]->read_uj();
      source.is_read[i] = uj.has_value();
      source.last_uj[i] = uj.value_or(0);
    }
  }
}

std::int64_t EnergyMeter::step(std::int64_t now_ns) {
  sample(now_ns);
  return now_ns + every_ns_;
}

void EnergyMeter::sample(std::int64_t now_ns) {
  const std::lock_guard guard(mutex_);
  for (Source& source : sources_) sample(source, now_ns);
  if (++samples_ % kFitEvery == 0 && told_ != nullptr) told_->update(measured_here());
}

void EnergyMeter::sample(Source& source, std::int64_t now_ns) {
  const std::int64_t elapsed_ns = now_ns - source.last_ns;
  if (elapsed_ns < kShortestNs) return;
  const double seconds = static_cast<double>(elapsed_ns) * 1e-9;
  double joules = 0;
  bool is_whole = true;
  for (std::size_t i = 0; i < source.of.counters.size(); ++i) {
    const auto uj = source.of.counters[i]->read_uj();
    const double shown = uj && *uj >= source.last_uj[i] ? static_cast<double>(*uj - source.last_uj[i]) * 1e-6 : 0;
    const bool counts = uj && source.is_read[i] && shown <= kMostWatts * seconds;
    source.is_read[i] = uj.has_value();
    if (uj) source.last_uj[i] = *uj;
    is_whole = is_whole && counts;
    if (!counts) continue;
    joules += shown;
    source.joules[i] += shown;
    stream_.emit<trace::Type::energy>(source.names[i], shown * source.of.share, static_cast<std::uint64_t>(elapsed_ns));
  }
  Kind& kind = kinds_[source.kind];
  std::vector<double> seconds_of(kind.codelets.size());
  for (const unsigned worker : source.of.workers)
    busy_(worker, now_ns, [&](std::string_view codelet, double ns) {
      const unsigned number = number_of(kind, std::string(codelet));
      if (seconds_of.size() <= number) seconds_of.resize(number + 1);
      seconds_of[number] += ns * 1e-9;
    });
  std::vector<model::PowerModel::Busy> busy;
  for (unsigned number = 0; number < seconds_of.size(); ++number) {
    const double ran = seconds_of[number] - std::exchange(source.busy_s[kind.codelets[number]], seconds_of[number]);
    if (ran > 0) busy.push_back({number, ran});
  }
  source.last_ns = now_ns;
  if (is_whole) kind.model.add(joules * source.of.share, seconds, busy);
}

/// Number of a codelet; one number stands for all codelets beyond the limit.
unsigned EnergyMeter::number_of(Kind& kind, const std::string& codelet) {
  if (const auto known = kind.numbers.find(codelet); known != kind.numbers.end()) return known->second;
  constexpr unsigned most = model::PowerModel::kMostCodelets;
  if (kind.codelets.size() + 1 < most) kind.codelets.push_back(codelet);
  else if (kind.codelets.size() + 1 == most) kind.codelets.emplace_back("(others)");
  const auto number = static_cast<unsigned>(kind.codelets.size() - 1);
  kind.numbers.emplace(codelet, number);
  return number;
}

EnergyReport EnergyMeter::report() const {
  const std::lock_guard guard(mutex_);
  EnergyReport report{.is_measured = true};
  for (unsigned number = 0; number < kinds_.size(); ++number) {
    const Kind& kind = kinds_[number];
    if (kind.model.intervals() == 0) continue;
    const model::PowerModel::Fit fit = kind.model.fit();
    KindEnergy of{.kind = kind.name, .idle = fit.idle};
    of.joules = kind.model.joules();
    of.idle_joules = fit.idle.watts * kind.model.seconds();
    for (const Source& source : sources_)
      if (source.kind == number)
        for (std::size_t i = 0; i < source.of.counters.size(); ++i)
          report.counters.push_back({source.of.counters[i]->name(), source.joules[i] * source.of.share});
    report.kinds.push_back(std::move(of));
    for (unsigned k = 0; k < fit.codelets.size(); ++k)
      if (const model::Watts& watts = fit.codelets[k]; watts.seconds > 0)
        report.kernels.push_back(
            {.codelet = kind.codelets[k], .kind = kind.name, .joules = watts.watts * watts.seconds, .watts = watts});
  }
  std::ranges::stable_sort(report.kernels, std::greater(), &KernelEnergy::joules);
  return report;
}

model::PowerTable EnergyMeter::measured() const {
  const std::lock_guard guard(mutex_);
  return measured_here();
}

/// The idle power of several devices of one kind is that of one times their number, as in the table.
model::PowerTable EnergyMeter::measured_here() const {
  model::PowerTable table;
  for (unsigned number = 0; number < kinds_.size(); ++number) {
    const Kind& kind = kinds_[number];
    if (kind.model.intervals() == 0) continue;
    const auto sources = static_cast<double>(std::ranges::count(sources_, number, &Source::kind));
    const model::PowerModel::Fit fit = kind.model.fit();
    if (fit.idle.seconds > 0)
      table.idle[kind.name] = {fit.idle.watts * sources, fit.idle.error * sources, fit.idle.seconds};
    for (unsigned k = 0; k < fit.codelets.size(); ++k)
      if (fit.codelets[k].seconds > 0) table.kernels[{kind.name, kind.codelets[k]}] = fit.codelets[k];
  }
  return table;
}

void EnergyMeter::trace_to(trace::Session& session) {
  const std::lock_guard guard(mutex_);
  for (Source& source : sources_)
    for (std::size_t i = 0; i < source.of.counters.size(); ++i)
      source.names[i] =
          session.name(trace::NameKind::energy,
                       fmt::format("{} {}", base::format_pu_list(source.of.workers), source.of.counters[i]->name()));
  session.attach(stream_, {.kind = trace::ActorKind::user, .name = "energy"});
}

}  // namespace tandem::runtime
