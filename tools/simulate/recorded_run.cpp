// tools/simulate/recorded_run.cpp: the tables of a trace as a flow.
#include "tools/simulate/recorded_run.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <functional>
#include <new>
#include <optional>
#include <span>
#include <tuple>
#include <unordered_map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tandem/analysis/history/history.hpp"
#include "tandem/analysis/verdict/kernel_profile.hpp"
#include "tandem/trace/read/reader.hpp"
#include "tandem/tandem.hpp"

namespace tandem::tools {

namespace {

using analysis::History;
using base::Error;
using base::ErrorCode;
using base::Result;

/// What schedules and messages depend on. Others say where things are on the recorded machine.
constexpr std::string_view replayed_options[] = {"sched",  "caller", "window",     "broadcast",
                                                 "copies", "seed",   "early_read", "broadcast_hold"};

/// Of `analysis::AccessRow::mode`.
enum Mode : std::uint8_t { mode_read, mode_write, mode_read_write, mode_commute, mode_reduce, mode_scratch };

}  // namespace

/// One rank's data, and its way through the flow.
class RecordedRun::Player {
 public:
  Player(const RecordedRun& run, std::uint32_t rank, const Play& how)
      : run_(run), rank_(rank), how_(how), memory_(bytes_here()), rt_(options()) {
    for (const Datum& datum : run_.data_) {
      const bool is_here = datum.is_everywhere || datum.owner == rank_;
      const std::span<std::byte> view(is_here ? memory_.take(datum.bytes) : nullptr, datum.bytes);
      data_.push_back(datum.is_everywhere ? rt_.data("data", view) : rt_.data("data", view, {.owner = datum.owner}));
    }
    for (const std::string& name : run_.kernels_) kernels_.emplace_back(name, Nothing());
  }

  std::pair<std::int64_t, std::int64_t> play() {
    const std::int64_t begin_ns = how_.now_ns();
    auto wait = run_.waits_.begin();
    for (std::size_t number = 0; number < run_.tasks_.size(); ++number) {
      if (wait != run_.waits_.end() && *wait <= number) {
        ++wait;
        rt_.wait();
        recorded_from_ns_.reset();
      }
      const Task& task = run_.tasks_[number];
      if (task.is_local && task.rank != rank_) continue;
      if (task.rank == rank_ && how_.change.keeps_pace) keep_pace(task.submit_ns);
      submit(task, number);
    }
    rt_.wait();
    return {begin_ns, how_.now_ns()};
  }

 private:
  /// Memory for data that nobody touches: it is never used.
  class Untouched {
   public:
    explicit Untouched(std::size_t bytes)
        : bytes_(std::max<std::size_t>(bytes, 1)),
          at_(::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {
      if (at_ == MAP_FAILED) throw std::bad_alloc();
    }
    ~Untouched() { ::munmap(at_, bytes_); }
    Untouched(const Untouched&) = delete;
    Untouched& operator=(const Untouched&) = delete;
    std::byte* take(std::size_t bytes) noexcept {
      return static_cast<std::byte*>(at_) + std::exchange(taken_, taken_ + (bytes + 63) / 64 * 64);
    }
    static std::size_t of(std::size_t bytes) noexcept { return (bytes + 63) / 64 * 64; }

   private:
    const std::size_t bytes_;
    void* const at_;
    std::size_t taken_ = 0;
  };

  using Bytes = Data<Vector<std::byte>>;
  template <AccessMode mode>
  using Views = AccessList<mode, Vector<std::byte>>::View;
  /// A kernel that does not run.
  struct Nothing {
    void operator()(const Views<AccessMode::read>&, const Views<AccessMode::write>&,
                    const Views<AccessMode::read_write>&, const Views<AccessMode::commute>&) const {}
  };

  std::size_t bytes_here() const {
    std::size_t bytes = 0;
    for (const Datum& datum : run_.data_)
      if (datum.is_everywhere || datum.owner == rank_) bytes += Untouched::of(datum.bytes);
    return bytes;
  }

  /// Each task takes what it took, times the factor of its kernel.
  Options options() const {
    Options options;
    options.emulation = [this](const runtime::EmulatedTask& emulated) -> std::optional<runtime::EmulatedWork> {
      if (emulated.tag == 0 || emulated.tag > run_.tasks_.size()) return 0;
      const Task& task = run_.tasks_[emulated.tag - 1];
      const std::int64_t took_ns = how_.change.has_usual_durations ? task.usual_ns : task.duration_ns;
      const auto factor = how_.change.factors.find(run_.kernels_[task.kernel]);
      if (factor == how_.change.factors.end()) return took_ns;
      return std::llround(static_cast<double>(took_ns) * factor->second);
    };
    options.more = how_.change.options;
    options.more.emplace_back("models", "off");
    for (const auto& [name, value] : run_.options_)
      if (std::ranges::count(how_.change.options, name, &std::pair<std::string, std::string>::first) == 0)
        options.more.emplace_back(name, value);
    return options;
  }

  /// Submits no sooner behind the last wait than the program did: it may have computed, or submitted slowly.
  void keep_pace(std::int64_t submit_ns) {
    if (!recorded_from_ns_) {
      const auto& resumed = run_.resumed_ns_[rank_];
      const auto later = std::ranges::upper_bound(resumed, submit_ns);
      recorded_from_ns_ = later == resumed.begin() ? submit_ns : *(later - 1);
      from_ns_ = how_.now_ns();
    }
    constexpr std::int64_t too_little_ns = 1'000;
    const std::int64_t left_ns = from_ns_ + (submit_ns - *recorded_from_ns_) - how_.now_ns();
    if (left_ns > too_little_ns) how_.sleep(left_ns);
  }

  void submit(const Task& task, std::size_t number) {
    for (std::vector<Bytes>& list : lists_) list.clear();
    for (std::uint32_t i = 0; i < task.accesses; ++i) {
      const Access access = run_.accesses_[task.first_access + i];
      lists_[access.mode].push_back(data_[access.datum]);
    }
    TaskOptions options{.priority = task.priority, .tag = number + 1};
    if (!task.is_local) options.on = task.rank;
    rt_.submit(options, kernels_[task.kernel], tandem::read(lists_[mode_read]), write(lists_[mode_write]),
               read_write(lists_[mode_read_write]), commute(lists_[mode_commute]));
  }

  const RecordedRun& run_;
  const std::uint32_t rank_;
  const Play& how_;
  Untouched memory_;
  Runtime rt_;
  std::vector<Bytes> data_;
  std::vector<Codelet<Nothing>> kernels_;
  std::array<std::vector<Bytes>, mode_commute + 1> lists_;  ///< by mode
  std::optional<std::int64_t> recorded_from_ns_;  ///< when the program went on behind its last wait; as recorded
  std::int64_t from_ns_ = 0;                      ///< and here
};

std::pair<std::int64_t, std::int64_t> RecordedRun::play(std::uint32_t rank, const Play& how) const {
  return Player(*this, rank, how).play();
}

std::vector<std::string> RecordedRun::kernels() const {
  std::vector<std::string> names = kernels_;
  std::ranges::sort(names);
  return names;
}

std::vector<std::pair<std::string, double>> RecordedRun::shares() const {
  std::vector<std::pair<std::string, double>> shares;
  for (const std::string& name : kernels_) shares.emplace_back(name, 0);
  double all_ns = 1;  // a run may take no time
  for (const Task& task : tasks_) {
    shares[task.kernel].second += static_cast<double>(task.duration_ns);
    all_ns += static_cast<double>(task.duration_ns);
  }
  for (auto& [name, share] : shares) share /= all_ns;
  std::ranges::stable_sort(shares, std::greater(), &std::pair<std::string, double>::second);
  return shares;
}

std::string RecordedRun::option(std::string_view name) const {
  const auto found = std::ranges::find(options_, name, &std::pair<std::string, std::string>::first);
  return found == options_.end() ? "" : found->second;
}

/// Takes the tasks that ran, in the order of the flow, with their data.
void RecordedRun::take_tasks(const History& history) {
  const auto& tasks = history.tasks;
  std::vector<std::uint32_t> rows;
  for (const std::uint32_t row : tasks.rows())
    if (tasks.has_run(row) && tasks.submit_ns[row] != analysis::no_time) rows.push_back(row);
  std::ranges::stable_sort(rows, {}, [&](std::uint32_t row) {
    return std::tuple(history.number_of(tasks.id[row]), tasks.id[row], tasks.rank[row]);
  });
  std::vector<std::vector<Access>> accesses(tasks.size());
  std::unordered_map<std::uint32_t, std::uint32_t> indices;  // of data, by number
  for (const analysis::AccessRow& row : history.accesses) {
    if (row.mode == mode_scratch) continue;
    const auto [known, is_new] = indices.try_emplace(row.data, static_cast<std::uint32_t>(data_.size()));
    if (is_new) {
      const analysis::DataRow* const data = history.find_data(tasks.rank[row.task], row.data);
      Datum datum;
      datum.is_everywhere = data == nullptr || data->owner == analysis::no_number || data->owner >= ranks_;
      if (!datum.is_everywhere) datum.owner = data->owner;
      datum.bytes = data == nullptr ? 1 : std::max<std::uint64_t>(data->bytes, 1);
      data_.push_back(datum);
    }
    accesses[row.task].push_back({known->second, row.mode == mode_reduce ? std::uint8_t{mode_commute} : row.mode});
  }
  const auto profiles = analysis::profile_kernels(history);
  const analysis::UsualDurations usual(history, profiles);
  std::unordered_map<analysis::Texts::Id, std::uint32_t> kernels;
  first_ns_ = tasks.submit_ns[rows.empty() ? 0 : rows.front()];
  for (const std::uint32_t row : rows) {
    const auto [kernel, is_new] = kernels.try_emplace(tasks.codelet(row), static_cast<std::uint32_t>(kernels_.size()));
    if (is_new) kernels_.push_back(history.texts[tasks.codelet(row)]);
    Task task{.submit_ns = tasks.submit_ns[row],
              .duration_ns = std::max<std::int64_t>(tasks.end_ns[row] - tasks.start_ns[row], 0),
              .usual_ns = 0,
              .rank = std::min(tasks.rank[row], ranks_ - 1),
              .kernel = kernel->second,
              .priority = tasks.priority[row],
              .first_access = static_cast<std::uint32_t>(accesses_.size()),
              .accesses = static_cast<std::uint32_t>(accesses[row].size())};
    task.is_local = ranks_ == 1 || std::ranges::all_of(accesses[row], [this](const Access& access) {
                      return data_[access.datum].is_everywhere;
                    });
    task.usual_ns = usual.is_outlier(row) ? usual.of(row).median_ns : task.duration_ns;
    accesses_.insert(accesses_.end(), accesses[row].begin(), accesses[row].end());
    tasks_.push_back(task);
    first_ns_ = std::min(first_ns_, task.submit_ns);
    last_ns_ = std::max(last_ns_, tasks.end_ns[row]);
  }
}

/// Takes where rank 0's program waited, which its tasks show, and when each rank's went on.
void RecordedRun::take_waits(const History& history) {
  resumed_ns_.resize(ranks_);
  std::vector<std::int64_t> begun_ns;
  for (const analysis::WaitRow& row : history.waits) {
    if (row.kind != analysis::WaitKind::waiting || row.rank >= ranks_) continue;
    if (row.end_ns != analysis::no_time) resumed_ns_[row.rank].push_back(row.end_ns);
    if (row.rank == 0 && row.start_ns != analysis::no_time) begun_ns.push_back(row.start_ns);
  }
  for (auto& resumed : resumed_ns_) std::ranges::sort(resumed);
  std::ranges::sort(begun_ns);
  auto wait = begun_ns.begin();
  for (std::size_t number = 0; number < tasks_.size(); ++number) {
    if (tasks_[number].rank != 0) continue;
    bool has_waited = false;
    for (; wait != begun_ns.end() && *wait < tasks_[number].submit_ns; ++wait) has_waited = number > 0;
    if (has_waited) waits_.push_back(number);
  }
}

Result<std::vector<unsigned>> count_workers(const History& history) {
  std::vector<unsigned> workers(history.size, 0);
  for (const analysis::ActorFacts& actor : history.actors) {
    if (actor.kind != trace::ActorKind::worker || actor.rank >= history.size) continue;
    if (actor.kind_of_worker() != "cpu")
      return Error{ErrorCode::unsupported, fmt::format("a run with devices ({}) cannot be replayed", actor.name)};
    ++workers[actor.rank];
  }
  return workers;
}

Result<RecordedRun> RecordedRun::read(const std::filesystem::path& folder) {
  auto trace = trace::TraceReader::open(folder);
  if (!trace.ok()) return trace.error();
  auto read = History::read(*trace.value());
  if (!read.ok()) return read.error();
  const History& history = *read.value();
  RecordedRun run;
  run.ranks_ = history.size;
  run.program_ = fmt::format("{} {}", std::filesystem::path(history.program).filename().string(),
                             fmt::join(history.arguments, " "));
  for (const auto& [name, value] : trace.value()->ranks.front()->options)
    if (std::ranges::count(replayed_options, name) > 0) run.options_.emplace_back(name, value);
  const auto workers = count_workers(history);
  if (!workers.ok())
    return Error{workers.error().code, fmt::format("{}: {}", folder.string(), workers.error().message)};
  run.workers_ = std::max(run.workers_, *std::ranges::max_element(workers.value()));
  run.take_tasks(history);
  if (run.tasks_.empty())
    return Error{ErrorCode::not_found, fmt::format("{}: no task of this run has run", folder.string())};
  if (run.accesses_.empty())
    return Error{ErrorCode::unsupported,
                 fmt::format("{}: the trace has no accesses of tasks: trace with --tandem.trace=all", folder.string())};
  run.take_waits(history);
  return run;
}

}  // namespace tandem::tools
