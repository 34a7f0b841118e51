// tools/contention/campaign_plan.cpp: cores, placements and the order of measurements.
#include "tools/contention/campaign_plan.hpp"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "tools/contention/kernels.hpp"

namespace tandem::tools::contention {
namespace {

using base::Error;
using base::ErrorCode;
using model::contention::Placement;

constexpr std::size_t least_for_own_sender = 4, least_for_fit = 4;

std::vector<std::string> notes_for(const Layout& layout, std::size_t cores, bool one_host) {
  std::vector<std::string> notes;
  if (one_host)
    notes.push_back(
        "both ranks run on one host: what the sender reads uses the same memory as what is measured; two hosts measure "
        "the network");
  if (cores == 1)
    notes.push_back(
        "there is one core: computing and communicating threads take turns on it, so nothing measured here is "
        "contention for memory");
  else if (one_host && cores < least_for_own_sender)
    notes.push_back(
        fmt::format("there are {} cores: both ranks communicate on core {}", cores, layout.communicating.value()));
  if (layout.cores_per_socket < least_for_fit)
    notes.push_back(fmt::format(
        "{} of one socket can compute: a fit of the models needs {}",
        layout.cores_per_socket == 1 ? "1 core" : fmt::format("{} cores", layout.cores_per_socket), least_for_fit));
  if (layout.nodes == 1) notes.push_back("there is one NUMA node: one placement, and no remote parameters");
  return notes;
}

std::vector<Placement> placements(const Layout& layout, bool samples_only) {
  std::vector<Placement> all;
  for (unsigned comm = 0; comm < layout.nodes; ++comm)
    for (unsigned comp = 0; comp < layout.nodes; ++comp)
      if (!samples_only || (comp == comm && (comp == 0 || comp == layout.nodes_per_socket)))
        all.push_back({comp, comm});
  return all;
}

}  // namespace

base::Result<Layout> lay_out(const base::Topology& topology, bool one_host, int communicating) {
  const std::size_t count = topology.cores().size();
  if (communicating >= static_cast<int>(count))
    return Error{ErrorCode::invalid_argument,
                 fmt::format("--communication-core {}: there are {} cores", communicating, count)};
  Layout layout;
  const std::size_t receives = communicating >= 0 ? static_cast<std::size_t>(communicating) : count - 1;
  std::size_t sends = receives;
  if (one_host && count >= least_for_own_sender) sends = receives == count - 1 ? count - 2 : count - 1;
  layout.communicating = topology.cores()[receives].id;
  layout.sending = topology.cores()[sends].id;
  const unsigned first_package = topology.cores()[0].package;
  std::set<unsigned> nodes_of_first;
  for (const bool first : {true, false})
    for (const base::Core& core : topology.cores()) {
      if ((core.package == first_package) != first) continue;
      if (first) nodes_of_first.insert(core.numa_node);
      const bool taken = core.id == layout.communicating || (one_host && core.id == layout.sending);
      if (!taken || count == 1) layout.computing.push_back(core.id);
      if (first) layout.cores_per_socket = static_cast<unsigned>(layout.computing.size());
    }
  layout.nodes = static_cast<unsigned>(std::max<std::size_t>(1, topology.numa_nodes().size()));
  layout.nodes_per_socket = std::clamp(static_cast<unsigned>(nodes_of_first.size()), 1U, layout.nodes);
  layout.notes = notes_for(layout, count, one_host);
  return layout;
}

void keep_if_bound(Layout& layout, const std::function<base::Result<void>(unsigned node)>& bind) {
  for (unsigned node = 0; node < layout.nodes && layout.nodes > 1; ++node)
    if (const auto bound = bind(node); !bound) {
      layout.notes.push_back(fmt::format(
          "memory cannot be bound to NUMA nodes ({}): one placement, and no remote parameters", bound.error().message));
      layout.nodes = layout.nodes_per_socket = 1;
    }
}

base::Result<std::vector<Measurement>> plan(const Layout& layout, const PlanOptions& options) {
  std::vector<unsigned> counts = options.cores;
  if (counts.empty())
    for (unsigned n = 1; n <= std::max(1U, layout.cores_per_socket); ++n) counts.push_back(n);
  std::ranges::sort(counts);
  counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
  for (const unsigned n : counts)
    if (n == 0 || n > layout.computing.size())
      return Error{ErrorCode::invalid_argument,
                   fmt::format("--cores {}: at most {} can compute here", n, layout.computing.size())};
  std::vector<std::pair<std::string, unsigned>> kernels;
  for (const std::string& kernel : options.kernels) {
    if (!kernel_named(kernel))
      return Error{ErrorCode::invalid_argument, "there is no kernel " + kernel + ": primes, memset, copy, triad, fma"};
    if (kernel == "triad")
      for (const unsigned cursor : options.cursors) kernels.emplace_back(kernel, cursor);
    else
      kernels.emplace_back(kernel, 1);
  }
  const auto where = placements(layout, options.samples_only);
  std::vector<Measurement> all;
  const auto add = [&](Measurement m) { all.push_back(std::move(m)); };
  for (unsigned repetition = 0; repetition < options.repetitions; ++repetition) {
    for (const std::uint64_t bytes : options.message_bytes)
      for (unsigned comm = 0; comm < layout.nodes; ++comm)
        add({.kernel = "none",
             .message_bytes = bytes,
             .communication_node = comm,
             .step = "communication",
             .repetition = repetition});
    for (const auto& [kernel, cursor] : kernels)
      for (unsigned comp = 0; comp < layout.nodes; ++comp) {
        if (std::ranges::none_of(where, [&](const Placement& p) { return p.computation == comp; })) continue;
        for (const unsigned n : counts) {
          add({.kernel = kernel,
               .cursor = cursor,
               .computation_node = comp,
               .cores = n,
               .step = "computation",
               .repetition = repetition});
          for (const std::uint64_t bytes : options.message_bytes)
            for (const Placement& p : where)
              if (p.computation == comp)
                add({.kernel = kernel,
                     .cursor = cursor,
                     .message_bytes = bytes,
                     .computation_node = comp,
                     .communication_node = p.communication,
                     .cores = n,
                     .step = "both",
                     .repetition = repetition});
        }
      }
  }
  return all;
}

bool is_past_peaks(const std::vector<Measurement>& made, const Measurement& next, unsigned most_cores) {
  constexpr unsigned certain_after = 3;
  if (next.step == "communication" || next.cores >= most_cores) return false;
  struct Peak {
    double height = 0;
    unsigned numbers_since = 0;
  };
  std::map<std::pair<std::optional<unsigned>, std::uint64_t>, Peak> peaks;  // of each curve: node and size of messages
  for (const Measurement& m : made) {
    const bool alike =
        m.kernel == next.kernel && m.cursor == next.cursor && m.computation_node == next.computation_node;
    if (!alike || m.repetition != 0 || m.cores >= next.cores) continue;
    const double computed = m.computation_mb_s ? *m.computation_mb_s : m.iterations_per_s.value_or(0);
    const double height = m.computation_mb_s ? computed + m.communication_mb_s.value_or(0) : computed;
    Peak& peak = peaks[{m.communication_node, m.message_bytes}];
    if (height > peak.height) peak = {height, 0};
    else ++peak.numbers_since;
  }
  return !peaks.empty() &&
         std::ranges::all_of(peaks, [](const auto& one) { return one.second.numbers_since >= certain_after; });
}

}  // namespace tandem::tools::contention
