// tools/top/view.cpp: follows the ranks of a run for `tandem top`.
#include "tools/top/view.hpp"

#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "tandem/base/process_stat.hpp"

namespace tandem::tools {

namespace fs = std::filesystem;

namespace {

constexpr std::int64_t kNoLength = 0;

std::int64_t clock_tick_ns() {
  const long per_second = ::sysconf(_SC_CLK_TCK);
  return per_second > 0 ? 1'000'000'000 / per_second : 10'000'000;
}

}  // namespace

std::optional<ProcessUse> process_use(std::uint32_t process) {
  const fs::path folder = fs::path("/proc") / std::to_string(process);
  const auto stat = base::process_stat(folder);
  std::ifstream memory(folder / "statm");
  std::uint64_t pages = 0, resident = 0;
  if (!stat || !(memory >> pages >> resident)) return std::nullopt;
  return ProcessUse{static_cast<std::int64_t>(stat->user_ticks + stat->system_ticks) * clock_tick_ns(),
                    resident * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE))};
}

base::Result<TopRun> TopRun::open(const std::vector<fs::path>& folders) {
  TopRun run;
  for (const fs::path& folder : folders) {
    TopRank& rank = run.ranks_.emplace_back();
    rank.folder = folder;
    start(rank, folders.size());
  }
  std::optional<base::Error> first;
  for (const TopRank& rank : run.ranks_) {
    if (rank.trace != nullptr) return run;
    if (!first) first = rank.why_not;
  }
  return first.value_or(base::Error{base::ErrorCode::not_found, "no rank's folder is there"});
}

/// Opens a rank's trace. `count`: ranks that share the bound on bytes read at a time.
void TopRun::start(TopRank& rank, std::size_t count) {
  const trace::LiveOptions standard;
  const auto share = [&](std::size_t bytes) {
    return std::max<std::size_t>(bytes / std::max<std::size_t>(count, 1), 1 << 20);
  };
  auto opened = trace::LiveRank::open(rank.folder, {.most_bytes = share(standard.most_bytes),
                                                    .most_bytes_at_first = share(standard.most_bytes_at_first)});
  rank.may_start = !opened && opened.error().code == base::ErrorCode::not_found;
  if (!opened) {
    rank.why_not = opened.error();
    return;
  }
  rank.trace = std::move(opened).value();
  rank.view = std::make_unique<analysis::LiveView>(*rank.trace);
}

void TopRun::refresh(const std::vector<fs::path>& folders) {
  for (const fs::path& folder : folders)
    if (std::ranges::find(ranks_, folder, &TopRank::folder) == ranks_.end()) {
      TopRank& rank = ranks_.emplace_back();
      rank.folder = folder;
      rank.may_start = true;
    }
  for (TopRank& rank : ranks_) {
    if (rank.trace == nullptr && rank.may_start) start(rank, folders.size());
    if (rank.trace == nullptr) continue;
    rank.trace->poll(*rank.view);
    const auto before = rank.use;
    const bool is_here = rank.trace->state() == trace::LiveState::running;
    rank.use = is_here ? process_use(rank.trace->manifest().process) : std::nullopt;
    const bool is_elsewhere = rank.trace->state() == trace::LiveState::elsewhere;
    // A rank of another host is known by its files only, which say nothing of the present.
    rank.interval = rank.view->take(is_elsewhere ? rank.trace->last_event_ns() : rank.trace->now_ns());
    rank.cpu =
        before && rank.use && rank.interval.length_ns > kNoLength
            ? static_cast<double>(rank.use->cpu_ns - before->cpu_ns) / static_cast<double>(rank.interval.length_ns)
            : 0;
  }
  std::ranges::stable_sort(ranks_, {}, [](const TopRank& rank) {
    return rank.trace != nullptr ? std::uint64_t{rank.rank()} : UINT64_MAX;
  });
}

bool TopRun::is_over() const noexcept {
  return std::ranges::none_of(ranks_, [](const TopRank& rank) {
    return rank.trace != nullptr &&
           (rank.trace->state() == trace::LiveState::running || rank.trace->state() == trace::LiveState::elsewhere);
  });
}

bool TopRun::was_killed() const noexcept {
  return std::ranges::any_of(ranks_, [](const TopRank& rank) {
    return rank.trace != nullptr &&
           (rank.trace->state() == trace::LiveState::killed || rank.trace->state() == trace::LiveState::recovered);
  });
}

const trace::Manifest& TopRun::manifest() const noexcept {
  return std::ranges::find_if(ranks_, [](const TopRank& rank) { return rank.trace != nullptr; })->trace->manifest();
}

}  // namespace tandem::tools
