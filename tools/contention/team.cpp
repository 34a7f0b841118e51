// tools/contention/team.cpp: starts computing threads together, and ends them together.
#include "tools/contention/team.hpp"

#include <sys/mman.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "tandem/base/thread.hpp"

namespace tandem::tools::contention {
namespace {

/// Processor time of the calling thread.
std::int64_t cpu_ns() {
  timespec spent{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &spent);
  return spent.tv_sec * std::int64_t{1'000'000'000} + spent.tv_nsec;
}

constexpr double longest_run_s = 60;  // of one run, when iterations take long

}  // namespace

std::int64_t steady_now_ns() noexcept {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

base::Result<NodeMemory> NodeMemory::create(const base::Topology& topology, std::size_t bytes,
                                            std::optional<std::size_t> numa_place) {
  void* const area = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (area == MAP_FAILED)
    return base::Error{base::ErrorCode::exhausted,
                       fmt::format("no memory for {} bytes: take smaller arrays or messages", bytes)};
  NodeMemory memory;
  memory.data_ = static_cast<std::byte*>(area);
  memory.bytes_ = bytes;
  ::madvise(area, bytes, MADV_HUGEPAGE);
  if (numa_place && topology.numa_nodes().size() > 1)
    if (const auto bound = topology.bind_memory(area, bytes, *numa_place); !bound) return bound.error();
  std::memset(area, 0, bytes);
  return memory;
}

NodeMemory::NodeMemory(NodeMemory&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(other.bytes_) {}
NodeMemory& NodeMemory::operator=(NodeMemory&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}
NodeMemory::~NodeMemory() {
  if (data_ != nullptr) ::munmap(data_, bytes_);
}

std::optional<SteadyRate> steady_rate(std::span<const std::int64_t> ends_ns) {
  if (ends_ns.size() < least_repetitions) return std::nullopt;
  const std::int64_t first = ends_ns.front(), last = ends_ns[ends_ns.size() - 2];
  return SteadyRate{ends_ns.size() - 2, static_cast<double>(last - first) / 1e9};
}

base::Result<Team> Team::create(const base::Topology& topology, Options options) {
  Team team(topology);
  const std::size_t bytes = options.array_bytes / 64 * 64;
  if (bytes == 0) return base::Error{base::ErrorCode::invalid_argument, "arrays have at least 64 bytes"};
  if (bytes_of(options.kernel, 1) != 0)
    for (std::size_t i = 0; i < options.cores.size(); ++i) {
      auto memory = NodeMemory::create(topology, bytes_of(options.kernel, bytes / sizeof(double)), options.numa_place);
      if (!memory) return memory.error();
      team.memory_.push_back(std::move(memory).value());
    }
  options.array_bytes = bytes;
  team.options_ = std::move(options);
  return team;
}

/// The threads of one run. They begin together; each writes only its own `ends`, `sums` and `shares`, which are read
/// after it was joined.
struct Team::Work::State {
  std::vector<base::Thread> threads;
  std::vector<std::vector<std::int64_t>> ends;
  std::vector<double> sums, shares;
  std::atomic<unsigned> waiting{0};
  std::atomic<bool> go{false};
  std::int64_t least_end_ns = 0;  ///< written before `go`
  std::atomic<bool> stop{false};
};

Team::Work::Work(const Team& team, unsigned count, double seconds) : state_(std::make_unique<State>()) {
  State& state = *state_;
  state.ends.resize(count);
  state.sums.resize(count);
  state.shares.resize(count, 1);
  const auto begin = [&state, &team](unsigned i) {
    state.threads.emplace_back(base::Thread::Options{.name = "team"}, [&state, &team, i] {
      (void)team.topology_->bind_this_thread(
          team.options_.cores[i]);  // a campaign says at its beginning whether threads can be bound
      const std::size_t each = team.options_.array_bytes / sizeof(double);
      double* const a = team.memory_.empty() ? nullptr : reinterpret_cast<double*>(team.memory_[i].data());
      const Arrays arrays{a, a + (a != nullptr ? each : 0), a + (a != nullptr ? 2 * each : 0), each};
      state.ends[i].reserve(1 << 14);
      ++state.waiting;
      while (!state.go.load()) std::this_thread::yield();
      const std::int64_t latest = state.least_end_ns + static_cast<std::int64_t>(longest_run_s * 1e9);
      const std::int64_t began_ns = steady_now_ns(), spent_ns = cpu_ns();
      double sum = 0;
      for (std::int64_t now = 0;;) {
        sum += run_once(team.options_.kernel, arrays, team.options_.cursor);
        state.ends[i].push_back(cpu_ns());
        now = steady_now_ns();
        const bool may_end = state.stop.load(std::memory_order_relaxed) && now >= state.least_end_ns;
        if ((may_end && state.ends[i].size() >= least_repetitions) || now > latest) break;
      }
      state.sums[i] = sum;
      state.shares[i] = static_cast<double>(cpu_ns() - spent_ns) / static_cast<double>(steady_now_ns() - began_ns);
    });
  };
  state.threads.reserve(count);
  try {
    for (unsigned i = 0; i < count; ++i) begin(i);
  } catch (...) {  // the threads made so far run once
    state.go = true;
    finish();
    throw;
  }
  while (state.waiting.load() < count) std::this_thread::yield();
  state.least_end_ns = steady_now_ns() + static_cast<std::int64_t>(seconds * 1e9);
  state.go = true;
}

Team::Work::~Work() { finish(); }

TeamRate Team::Work::finish() {
  State& state = *state_;
  state.stop = true;
  TeamRate team;
  for (std::size_t i = 0; i < state.threads.size(); ++i) {
    if (state.threads[i].joinable()) state.threads[i].join();
    if (const auto rate = steady_rate(state.ends[i])) team.per_second += rate->per_second();
    team.cpu_share = std::min(team.cpu_share, state.shares[i]);
  }
  return team;
}

}  // namespace tandem::tools::contention
