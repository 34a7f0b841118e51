// tandem/analysis/history/memory_test.cpp: memory of a summary, counted by the system. A program of its own, since it
// would count other tests.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "tandem/analysis/bounds/replay.hpp"
#include "tandem/analysis/history/small_run.hpp"
#include "tandem/analysis/verdict/communication.hpp"
#include "tandem/analysis/verdict/parallelism.hpp"
#include "tandem/analysis/verdict/quality.hpp"
#include "tandem/analysis/verdict/verdict.hpp"

namespace tandem::analysis::memory_test {
namespace {

constexpr std::uint32_t tasks = 400'000;
constexpr std::size_t mib = std::size_t{1} << 20;

/// Two workers run the tasks in turns; each task needs the two before it.
void write_run(const std::filesystem::path& folder) {
  test::SmallRun run;
  run.usual();
  for (std::uint32_t task = 1; task <= tasks; ++task) {
    const std::int64_t start_ns = 200 * std::int64_t{task}, end_ns = start_ns + 60 + 2 * (task * 37 % 40);
    const std::uint32_t actor = 2 + task % 2;
    std::vector<std::uint32_t> before;
    if (task > 2) before = {task - 1, task - 2};
    run.submit(0, start_ns - 100, task, task % 2, {8, 9}, before);
    run.stream(0, actor)
        .add(trace::Type::worker_state, test::at(start_ns - 20),
             {static_cast<std::uint8_t>(trace::WorkerState::scheduling)})
        .add(trace::Type::task_ready, test::at(start_ns - 20), {task})
        .add(trace::Type::task_popped, test::at(start_ns), {task});
    run.execute(0, actor, task, start_ns, end_ns);
    run.stream(0, actor).add(trace::Type::worker_state, test::at(end_ns),
                             {static_cast<std::uint8_t>(trace::WorkerState::sleeping)});
  }
  std::filesystem::rename(run.write(), folder);
}

/// Writes a run in another process, whose memory does not count.
void write_run_apart(const std::filesystem::path& folder) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    write_run(folder);
    ::_exit(0);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
}

std::int64_t most_resident_bytes() {
  rusage usage = {};
  ::getrusage(RUSAGE_SELF, &usage);
  return std::int64_t{usage.ru_maxrss} * 1024;
}

/// Everything that `tandem trace summary` computes, in some numbers.
struct Numbers {
  std::uint64_t events = 0;
  std::int64_t makespan_ns = 0, path_ns = 0, replayed_ns = 0, starved_ns = 0;
  SpentTimes spent = {};
  std::size_t path_tasks = 0, steps = 0, findings = 0;
  double ready = 0, running = 0;
  bool is_complete = false;
  bool operator==(const Numbers&) const = default;
};

Numbers numbers_of(const std::filesystem::path& folder, const HistoryOptions& options) {
  const std::unique_ptr<History> history = test::read_history(folder, options);
  Numbers numbers{.events = history->events};
  std::optional<Summary> summary;
  {
    const TaskGraph graph(*history);
    summary.emplace(*history, graph);
    numbers.replayed_ns = replay_end_ns(*history, graph, Messages::free);
    communication(*history, graph, summary->split);
  }
  const RunParallelism parallel = parallelism(*history, summary->split);
  numbers.makespan_ns = summary->split.makespan_ns;
  numbers.path_ns = summary->path.length_ns;
  numbers.starved_ns = parallel.all.starved_ns;
  numbers.spent = summary->split.total();
  numbers.path_tasks = summary->path.tasks.size();
  numbers.steps = summary->realised.steps.size();
  numbers.findings = verdict(*history, *summary).size();
  numbers.ready = parallel.all.ready.mean(parallel.all.makespan);
  numbers.running = parallel.all.running.mean(parallel.all.makespan);
  numbers.is_complete = quality(*history).is_complete();
  return numbers;
}

// The limit corresponds to 100 million events in 2 GB. With tables in main memory this run takes 130 bytes per event.
TEST(Memory, ASummaryTakesAtMost20BytesPerEvent) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the sanitizer's memory would be counted";
#endif
  const trace::test::TempFolder temporary;
  const std::filesystem::path folder = temporary.path() / "run";
  write_run_apart(folder);
  const std::int64_t before = most_resident_bytes();
  const SpillOptions little{.main_bytes = 16 * mib, .window_bytes = 4 * mib};
  const Numbers in_files = numbers_of(folder, {.content = HistoryContent::summary, .memory = little});
  const std::int64_t bytes = most_resident_bytes() - before;
  ASSERT_GE(in_files.events, 7u * tasks);
  EXPECT_LT(static_cast<double>(bytes) / static_cast<double>(in_files.events), 20.0)
      << bytes << " bytes for " << in_files.events << " events";
  // More memory without files shows that the measurement works.
  const Numbers in_main_memory = numbers_of(folder, {});
  EXPECT_GT(most_resident_bytes() - before, 2 * bytes);
  EXPECT_EQ(in_files, in_main_memory) << "numbers depend on where tables lie";
}

}  // namespace
}  // namespace tandem::analysis::memory_test
