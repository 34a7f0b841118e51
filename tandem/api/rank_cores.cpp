// tandem/api/rank_cores.cpp: exchanges the masks of ranks, and plans their cores.
#include "tandem/api/rank_cores.hpp"

#include <algorithm>
#include <chrono>
#include <optional>

#include <fmt/core.h>

#include "tandem/api/world.hpp"
#include "tandem/base/core_plan.hpp"
#include "tandem/base/exceptions.hpp"
#include "tandem/base/host.hpp"
#include "tandem/base/pu_list.hpp"

namespace tandem {
namespace {

using base::Error;
using base::ErrorCode;
using base::Result;
using std::chrono::steady_clock;

constexpr std::int64_t patience_ns = 60'000'000'000;  ///< time for the masks of all ranks of the host

std::vector<unsigned> pus_of(const base::Topology& topology) {
  std::vector<unsigned> pus;
  for (const base::Core& core : topology.cores()) pus.insert(pus.end(), core.pus.begin(), core.pus.end());
  std::sort(pus.begin(), pus.end());
  return pus;
}

/// Name of the machine: ranks with one text see the same numbers of hardware threads, as containers of one machine do.
std::string machine_name() {
  const std::string boot = base::host_identity().boot_id;
  return boot.empty() ? base::host_name() : boot;
}

base::Topology checked(Result<base::Topology> topology) {
  if (!topology.ok()) throw StartError(topology.error().message);
  return std::move(topology).value();
}

/// Waits for the place of a rank. The log names a late one.
Result<std::string> place_of_rank(comm::Directory& directory, base::Rank rank, std::int64_t report_after_ns,
                                  steady_clock::time_point deadline, base::Log& log) {
  bool reported = false;
  for (;;) {
    const std::int64_t left_ns = std::chrono::nanoseconds(deadline - steady_clock::now()).count();
    const std::int64_t slice_ns = report_after_ns > 0 ? std::min(report_after_ns, left_ns) : left_ns;
    auto place = directory.lookup_place(rank, std::max<std::int64_t>(slice_ns, 1'000'000));
    if (place.ok() || place.error().code != ErrorCode::exhausted || steady_clock::now() >= deadline) return place;
    if (!std::exchange(reported, true))
      log.error("rank {} has not joined the job yet: other ranks wait for it", rank.value());
  }
}

/// The plan's entry for this rank; none: not all masks are known.
std::optional<base::RankCores> agree(const comm::Job& job, const base::Topology& mine, std::int64_t report_after_ns,
                                     base::Log& log) {
  const std::string machine = machine_name();
  const std::vector<unsigned> own = pus_of(mine);
  if (auto told = job.directory->publish_place(fmt::format("{}\n{}", machine, base::format_pu_list(own))); !told) {
    log.warn("this rank cannot tell the others which cores it may use: {}", told.error().message);
    return std::nullopt;
  }
  std::vector<base::RankMask> masks;
  const auto deadline = steady_clock::now() + std::chrono::nanoseconds(patience_ns);
  for (const base::Rank rank : job.here) {
    if (rank == job.rank) {
      masks.push_back({rank.value(), own});
      continue;
    }
    const auto place = place_of_rank(*job.directory, rank, report_after_ns, deadline, log);
    if (!place.ok()) {
      log.warn("the cores of rank {} are not known, so ranks on this host are not bound: {}", rank.value(),
               place.error().message);
      return std::nullopt;
    }
    const std::string& text = place.value();
    const auto newline = text.find('\n');
    // It is really on another machine.
    if (newline == std::string::npos || text.substr(0, newline) != machine) continue;
    const auto pus = base::parse_pu_list(std::string_view(text).substr(newline + 1));
    if (pus.ok()) masks.push_back({rank.value(), pus.value()});
  }
  const auto host = base::Topology::discover_host();
  if (!host.ok()) return std::nullopt;
  for (base::RankCores& rank : base::plan_rank_cores(host.value(), masks))
    if (rank.rank == job.rank.value()) return std::move(rank);
  return std::nullopt;
}

void settle_on(const std::vector<unsigned>& pus, WorldResources& resources, const char* why) {
  auto own = resources.topology->restricted_to(pus);
  if (!own.ok()) throw StartError(own.error().message);
  *resources.topology = std::move(own).value();
  resources.home = std::make_unique<base::ScopedAffinity>(pus_of(*resources.topology));
  if (!resources.home->result().ok())
    resources.log->warn("this rank runs unbound: {}", resources.home->result().error().message);
  resources.log->info("{}: hardware threads {}", why, base::format_pu_list(pus_of(*resources.topology)));
}

/// By option `caller.numa`: this thread, and those that it makes and that nobody binds, stay on that NUMA node.
void bind_caller(const base::Config& config, WorldResources& resources) {
  const std::int64_t home = config.get_int("caller.numa");
  if (home < 0 || !config.get_bool("bind") || !resources.has_own_cores) return;
  std::vector<unsigned> pus;
  for (const base::CoreId core : cores_near(*resources.topology, static_cast<std::size_t>(home))) {
    const auto& of_core = resources.topology->cores()[core.index()].pus;
    pus.insert(pus.end(), of_core.begin(), of_core.end());
  }
  resources.home.reset();  // it gives back the mask that this process had
  resources.home = std::make_unique<base::ScopedAffinity>(pus);
  if (!resources.home->result().ok())
    resources.log->warn("option caller.numa: the thread is not bound: {}", resources.home->result().error().message);
}

void find_own_cores(const base::Config& config, const comm::Job* job, WorldResources& resources) {
  resources.topology = std::make_unique<base::Topology>(checked(base::Topology::discover()));
  const std::vector<base::Rank> here = job != nullptr ? job->here : std::vector<base::Rank>();
  if (const std::string& text = config.get_string("cores"); !text.empty()) {
    std::size_t place = 0;
    if (job != nullptr) place = static_cast<std::size_t>(std::find(here.begin(), here.end(), job->rank) - here.begin());
    const auto pus = cores_of_option(text, place, std::max<std::size_t>(1, here.size()));
    if (!pus.ok()) throw StartError(pus.error().message);
    return settle_on(pus.value(), resources, "option cores");
  }
  if (job == nullptr || resources.ranks_here <= 1) return;
  resources.has_own_cores = false;
  if (!config.get_bool("bind") || here.size() <= 1 || job->directory == nullptr) return;
  const auto plan = agree(*job, *resources.topology, config.get_duration_ns("watchdog"), *resources.log);
  if (!plan || plan->crowded || plan->pus.empty()) return;
  resources.has_own_cores = true;
  if (plan->pus == pus_of(*resources.topology)) return;  // the launcher has set a separate mask
  settle_on(plan->pus, resources, "this rank's share of the cores that ranks of this host have in common");
}

}  // namespace

Result<std::vector<unsigned>> cores_of_option(std::string_view text, std::size_t place, std::size_t count) {
  std::vector<std::string_view> lists;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(';', begin), text.size());
    lists.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  if (lists.size() > 1 && lists.size() != count) {
    return Error{
        ErrorCode::invalid_argument,
        fmt::format(
            "option cores has {} lists, but this host has {} of the job's ranks: give one list, or one for each "
            "rank of the host, separated by semicolons",
            lists.size(), count)};
  }
  auto pus = base::parse_pu_list(lists.size() == 1 ? lists.front() : lists.at(place));
  if (!pus.ok()) return Error{pus.error().code, "option cores: " + pus.error().message};
  return pus;
}

void find_cores(const base::Config& config, const comm::Job* job, WorldResources& resources) {
  find_own_cores(config, job, resources);
  bind_caller(config, resources);
}

}  // namespace tandem
