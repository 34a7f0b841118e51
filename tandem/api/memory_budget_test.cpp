// tandem/api/memory_budget_test.cpp: programs whose data exceeds the budget of main memory.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <sys/resource.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/api/test_support.hpp"
#include "tandem/runtime/memory/out_of_memory.hpp"
#include "tandem/runtime/runtime_core.hpp"
#include "tandem/trace/read/reader.hpp"
#include "tandem/trace/read/test_support.hpp"

namespace tandem::memory_budget_test {
namespace {

using test::thread_runtime;
using test::thrown_by;
using testing::AllOf;
using testing::HasSubstr;

constexpr std::size_t kWords = 8'192;  // words of 64 KiB

std::unique_ptr<Runtime> small_runtime() {
  return thread_runtime(
      {.workers = 2, .more = {{"memory", "256KiB"}, {"spill", testing::TempDir()}, {"bind", "false"}}});
}

TEST(MemoryBudget, SixteenTimesTheMemoryIsUsedAgainAndAgain) {
  const auto rt = small_runtime();
  std::vector<Data<Vector<std::uint64_t>>> data;
  for (std::uint64_t i = 0; i < 64; ++i) {
    data.push_back(rt->vector<std::uint64_t>("v" + std::to_string(i), kWords));
    rt->submit("fill", [i](std::span<std::uint64_t> v) {
      for (std::size_t k = 0; k < v.size(); ++k) v[k] = i * kWords + k;
    }, write(data.back()));
  }
  for (std::uint64_t round = 0; round < 3; ++round)
    for (std::size_t i = 0; i < data.size(); ++i)
      rt->submit("add", [](std::span<const std::uint64_t> from, std::span<std::uint64_t> to) {
        for (std::size_t k = 0; k < to.size(); ++k) to[k] += from[k];
      }, read(data[(i * 29 + 7) % data.size()]), read_write(data[i]));
  // The expected values, computed sequentially.
  std::vector<std::uint64_t> first(data.size());  // the first element of each vector; all others follow from it
  std::vector<std::uint64_t> times(data.size(), 1);
  for (std::uint64_t i = 0; i < data.size(); ++i) first[i] = i * kWords;
  for (int round = 0; round < 3; ++round)
    for (std::size_t i = 0; i < data.size(); ++i) {
      first[i] += first[(i * 29 + 7) % data.size()];
      times[i] += times[(i * 29 + 7) % data.size()];
    }
  for (std::size_t i = 0; i < data.size(); ++i) {
    auto view = rt->acquire(read(data[i]));
    for (std::size_t k = 0; k < kWords; ++k) ASSERT_EQ((*view)[k], first[i] + times[i] * k) << i << "," << k;
  }
}

TEST(MemoryBudget, TheThreadOfTheFileIsKnownAsOurs) {  // other computing threads cause a warning
  const auto rt = small_runtime();
  std::vector<Data<Vector<std::uint64_t>>> data;
  for (int i = 0; i < 8; ++i) {  // more than fits: the thread works
    data.push_back(rt->vector<std::uint64_t>("v" + std::to_string(i), kWords));
    rt->submit("fill", [](std::span<std::uint64_t> v) { v[0] = 1; }, write(data.back()));
  }
  rt->wait();
  std::vector<std::string> names;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task")) {
    names.emplace_back();
    std::getline(std::ifstream(thread.path() / "comm"), names.back());
  }
  EXPECT_THAT(names, testing::Contains("tandem-spill"));
}

TEST(MemoryBudget, ATaskThatNeedsMoreIsToldTheNumbers) {
  const auto rt = small_runtime();
  const auto large = rt->vector<std::uint64_t>("large", 5 * kWords);
  EXPECT_THAT(
      thrown_by<OutOfMemory>([&] {
        rt->submit(
            "touch", [](std::span<std::uint64_t>) {}, write(large));
      }),
      AllOf(HasSubstr("'touch'"), HasSubstr("takes 327680 bytes in main memory"), HasSubstr("budget is 262144 bytes")));
  const auto small = rt->vector<std::uint64_t>("small", 3 * kWords);
  rt->submit("touch", [](std::span<std::uint64_t> v) { v[0] = 1; }, write(small));
  rt->wait();
}

/// Number of copies between main memory and the file in the trace of a run, which names both.
std::size_t copies_in(const std::filesystem::path& folder) {
  const auto run = trace::TraceReader::open(folder);
  if (!run.ok()) throw std::runtime_error(run.error().message);
  std::vector<std::string> memories;
  for (const auto& [kind, text] : run.value()->ranks.at(0)->names)
    if (kind == trace::NameKind::node) memories.push_back(text);
  EXPECT_THAT(memories, testing::ElementsAre("0 main memory", testing::StartsWith("1 the file in ")));
  std::size_t copies = 0;
  for (const auto& rank : run.value()->ranks)
    for (const auto& stream : rank->streams)
      for (auto event = stream->next(); event.value(); event = stream->next())
        copies += event.value()->type == trace::Type::transfer_started;
  return copies;
}

TEST(MemoryBudget, AReplayKnowsWhatItsTasksWillUse) {
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / "replay_with_budget";
  std::filesystem::remove_all(folder);
  {
    const auto rt = std::make_unique<Runtime>(Options{.workers = 1,
                                                      .more = {{"memory", "160KiB"},
                                                               {"spill", testing::TempDir()},
                                                               {"trace.folder", folder.string()},
                                                               {"trace", "all"},
                                                               {"ranks", "alone"}}});
    const auto a = rt->vector<std::uint64_t>("a", kWords), b = rt->vector<std::uint64_t>("b", kWords);
    const auto c = rt->vector<std::uint64_t>("c", kWords);
    std::uint64_t sum = 0;
    const auto turn = rt->data("sum", sum);  // it makes the tasks run one after the other
    const Codelet fill("fill",
                       [](std::span<std::uint64_t> v, std::uint64_t& last) { std::fill(v.begin(), v.end(), ++last); });
    const Codelet add("add", [](std::span<const std::uint64_t> v, std::uint64_t& total) { total += v[0] + v.back(); });
    Graph graph = rt->record([&] {
      for (const auto* const data : {&a, &b, &c}) rt->submit(fill, write(*data), read_write(turn));
      for (const auto* const data : {&a, &b}) rt->submit(add, read(*data), read_write(turn));
    });
    rt->replay(graph);
    rt->wait();
    EXPECT_EQ(sum, 3U + 2 * 1 + 2 * 2);
  }
  // b leaves for c, since a is used before it; then c for b. By least recent use a, b and c would leave, and a and b
  // would return.
  EXPECT_EQ(copies_in(folder), 3U);
}

TEST(MemoryBudget, TheProgramsOwnMemoryDoesNotCount) {
  const auto rt = small_runtime();
  std::vector<std::uint64_t> own(10 * kWords, 1);
  const auto data = rt->data("own", own);
  rt->submit("double", [](std::span<std::uint64_t> v) {
    for (std::uint64_t& x : v) x *= 2;
  }, read_write(data));
  rt->wait();
  EXPECT_EQ(own.back(), 2U);
}

TEST(MemoryBudget, AFolderThatCannotBeWrittenEndsTheStart) {
  EXPECT_THAT(thrown_by<StartError>([] {
                thread_runtime({.workers = 1, .more = {{"memory", "1MiB"}, {"spill", "/nowhere"}}});
              }),
              AllOf(HasSubstr("/nowhere"), HasSubstr("option spill")));
}

/// Completes an event and checks its memory after `between`, which uses more data than fits, and before it releases the
/// event.
void expect_kept(Runtime& rt, const std::function<void()>& between) {
  const auto data = rt.vector<std::uint64_t>("received", kWords);
  std::uint64_t* place = nullptr;
  Event event = rt.event("receive", Release::separate,
                         [&](Event) { place = static_cast<std::uint64_t*>(data.handle()->home.pointer); }, write(data));
  rt.submit("read", [](std::span<const std::uint64_t>) {}, read(data));
  for (int turn = 0; place == nullptr && turn < 10'000; ++turn)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  ASSERT_NE(place, nullptr);
  std::fill(place, place + kWords, 7);
  event.readable();
  between();
  EXPECT_EQ(data.handle()->home.pointer, place) << "a library still reads it";
  EXPECT_EQ(std::count(place, place + kWords, 7), static_cast<std::ptrdiff_t>(kWords));
  rt.submit("add", [](std::span<std::uint64_t> v) { v[0] += 1; }, read_write(data));
  event.released();
  EXPECT_EQ((*rt.acquire(read(data)))[0], 8U);
}

/// Uses 1 MiB of data; a task needs all the memory beside one event of 64 KiB.
void use_much(Runtime& rt, std::uint64_t first) {
  std::vector<Data<Vector<std::uint64_t>>> data;
  for (std::uint64_t i = 0; i < 16; ++i) {
    data.push_back(rt.vector<std::uint64_t>("v" + std::to_string(i), kWords));
    rt.submit("fill", [value = first + i](std::span<std::uint64_t> v) { std::fill(v.begin(), v.end(), value); },
              write(data.back()));
  }
  for (std::size_t i = 0; i < data.size(); ++i)
    rt.submit("add", [](std::span<const std::uint64_t> a, std::span<const std::uint64_t> b,
                        std::span<std::uint64_t> c) { c[0] += a[0] + b[0]; },
              read(data[(i + 5) % 16]), read(data[(i + 9) % 16]), read_write(data[i]));
  for (const auto& each : data) rt.wait(each);
}

TEST(MemoryBudget, AnEventKeepsItsDataInPlaceUntilItIsReleased) {
  const auto rt = small_runtime();
  expect_kept(*rt, [&] { use_much(*rt, 1); });
  rt->wait();
  EXPECT_LE(rt->core().memory().room().used(0), 4 * kWords * 8);
}

TEST(MemoryBudget, AnEventOfAReplayKeepsItsDataInPlaceUntilItIsReleased) {
  const auto rt = small_runtime();
  const auto data = rt->vector<std::uint64_t>("received", kWords);
  std::vector<Event> started;
  std::atomic<int> starts{0};
  Graph graph = rt->record([&] {
    rt->event("receive", Release::separate, [&](Event event) {
      started.push_back(event);
      starts.store(static_cast<int>(started.size()));
    }, write(data));
    rt->submit("read", [](std::span<const std::uint64_t>) {}, read(data));
  });
  for (int round = 0; round < 2; ++round) {
    rt->replay(graph);
    for (int turn = 0; starts.load() <= round && turn < 10'000; ++turn)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    ASSERT_EQ(starts.load(), round + 1);
    auto* const place = static_cast<std::uint64_t*>(data.handle()->home.pointer);
    std::fill(place, place + kWords, 7 + round);
    started[static_cast<std::size_t>(round)].readable();
    use_much(*rt, 1);
    EXPECT_EQ(data.handle()->home.pointer, place);
    EXPECT_EQ(std::count(place, place + kWords, 7 + round), static_cast<std::ptrdiff_t>(kWords));
    started[static_cast<std::size_t>(round)].released();
    rt->wait();
  }
  use_much(*rt, 1);
  EXPECT_NE(data.handle()->valid.load() & 2U, 0U) << "it may leave when it was released";
}

TEST(MemoryBudget, AnEventThatIsReleasedBeforeItBeginsKeepsNothing) {
  const auto rt = small_runtime();
  const auto data = rt->vector<std::uint64_t>("x", 3 * kWords), other = rt->vector<std::uint64_t>("y", 3 * kWords);
  std::atomic<bool> goes_on{false};
  rt->submit("before", [&](std::span<std::uint64_t> v) {
    while (!goes_on.load()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    v[0] = 1;
  }, write(data));
  Event event = rt->event("early", Release::separate, {}, read_write(data));
  event.released();
  goes_on = true;
  event.readable();
  rt->submit("other", [](std::span<std::uint64_t> v) { v[0] = 2; }, write(other));  // both do not fit together
  EXPECT_EQ((*rt->acquire(read(other)))[0], 2U);
  EXPECT_EQ((*rt->acquire(read(data)))[0], 1U);
}

/// Number of records of each stage of a task's way into memory, in a run whose data is 16 times as large as 256 KiB.
std::map<std::uint64_t, int> stages_of(const std::string& budget) {
  const trace::test::TempFolder folder;
  {
    Runtime rt(Options{.workers = 2,
                       .more = {{"memory", budget},
                                {"spill", testing::TempDir()},
                                {"bind", "false"},
                                {"ranks", "alone"},
                                {"trace", "all"},
                                {"trace.folder", (folder.path() / "run").string()}}});
    std::vector<Data<Vector<std::uint64_t>>> data;
    for (int i = 0; i < 64; ++i) data.push_back(rt.vector<std::uint64_t>("v" + std::to_string(i), kWords));
    for (int round = 0; round < 2; ++round)
      for (const auto& one : data) rt.submit("fill", [](std::span<std::uint64_t> v) { v[0] = 1; }, write(one));
    for (std::size_t i = 0; i < data.size(); ++i)
      rt.submit("add", [](std::span<const std::uint64_t> from, std::span<std::uint64_t> to) { to[0] += from[0]; },
                read(data[(i * 29 + 7) % data.size()]), read_write(data[i]));
    rt.wait();
  }
  auto run = trace::TraceReader::open(folder.path() / "run");
  if (!run) throw std::runtime_error(run.error().message);
  std::map<std::uint64_t, int> stages;
  for (const auto& stream : run.value()->ranks.at(0)->streams)
    for (auto event = stream->next(); event.value(); event = stream->next())
      if (event.value()->type == trace::Type::data_staging) ++stages[event.value()->number(1)];
  return stages;
}

TEST(MemoryBudget, TheTraceSaysThatTasksWaitForMemory) {
  const auto stages = stages_of("256KiB");
  ASSERT_EQ(stages.size(), 3u) << "for room, for data, and that all is there";
  for (const auto& [stage, count] : stages) EXPECT_GT(count, 10) << "stage " << stage;
  EXPECT_TRUE(stages_of("0").empty()) << "without a budget nothing is recorded";
}

/// Makes `count` temporaries of 64 KiB, each filled at once, or as soon as `gate` has a value, and used one after the
/// other. Checks the passing bytes after each.
void use_temporaries(Runtime& rt, int count, const Data<std::uint64_t>& total, const Data<std::uint64_t>* gate,
                     const std::function<void()>& look = {}) {
  for (int i = 0; i < count; ++i) {
    const auto temporary = rt.vector<std::uint64_t>("temporary", kWords);
    if (gate == nullptr)
      rt.submit(
          "fill", [](std::span<std::uint64_t> v) { std::fill(v.begin(), v.end(), 1); }, write(temporary));
    else rt.submit("fill", [](std::uint64_t one, std::span<std::uint64_t> v) { std::fill(v.begin(), v.end(), one); },
                   read(*gate), write(temporary));
    rt.submit("add", [](std::span<const std::uint64_t> v, std::uint64_t& to) {
      for (int turn = 0; turn < 20; ++turn)
        for (const std::uint64_t x : v) to += x;
    }, read(temporary), read_write(total));
    if (look) look();
  }
}

TEST(MemoryBudget, TemporariesDoNotGoToTheFile) {
  constexpr int kCount = 500;
  const trace::test::TempFolder folder;
  std::uint64_t sum = 0;
  {
    Runtime rt(Options{.workers = 2,
                       .more = {{"memory", "512KiB"},
                                {"spill", testing::TempDir()},
                                {"bind", "false"},
                                {"ranks", "alone"},
                                {"trace", "all"},
                                {"trace.folder", (folder.path() / "run").string()}}});
    use_temporaries(rt, kCount, rt.data("sum", sum), nullptr);
    rt.wait();
  }
  EXPECT_EQ(sum, std::uint64_t{kCount} * 20 * kWords);
  EXPECT_EQ(copies_in(folder.path() / "run"), 0U);
}

TEST(MemoryBudget, SubmissionWaitsForDataThatTheProgramHasDropped) {
  constexpr std::size_t kBytes = kWords * sizeof(std::uint64_t);
  const auto rt = test::loop_runtime({.main_bytes = 8 * kBytes}, {});
  const runtime::Room& room = rt->core().memory().room();
  std::uint64_t sum = 0;
  std::size_t most = 0;
  use_temporaries(*rt, 200, rt->data("sum", sum), nullptr, [&] { most = std::max(most, room.passing_bytes()); });
  EXPECT_EQ(most, 6 * kBytes) << "three quarters of the budget";
  rt->wait();
  EXPECT_EQ(room.passing_bytes(), 0U);
  EXPECT_EQ(sum, 200U * 20 * kWords);
}

/// Submits tasks of which none can end before the program goes on.
void submit_behind_an_event(Runtime& rt) {
  std::uint64_t sum = 0;
  const auto total = rt.data("sum", sum);
  const auto gate = rt.scalar<std::uint64_t>("gate");
  std::atomic<std::uint64_t*> place{nullptr};
  Event event = rt.event("open", Release::with_readable,
                         [&](Event) { place = static_cast<std::uint64_t*>(gate.handle()->home.pointer); }, write(gate));
  use_temporaries(rt, 100, total, &gate);
  EXPECT_EQ(sum, 0U);
  ASSERT_NE(place.load(), nullptr);
  *place.load() = 1;
  event.readable();
  rt.wait();
  EXPECT_EQ(sum, 100U * 20 * kWords);
}

TEST(MemoryBudget, SubmissionGoesOnWhenWhatItWaitsForWaitsForTheProgram) {
  submit_behind_an_event(*small_runtime());
  submit_behind_an_event(*test::loop_runtime({.main_bytes = 8 * kWords * sizeof(std::uint64_t)}, {}));
}

TEST(MemoryBudget, ASumOfTasksThatTheProgramHasDroppedIsStillMade) {
  const auto rt = small_runtime();
  std::uint64_t seen = 0;
  {
    const auto out = rt->data("seen", seen);
    auto sum = rt->vector<std::uint64_t>("sum", kWords);
    sum.reduction([](std::span<std::uint64_t> v) { std::fill(v.begin(), v.end(), 0); },
                  [](std::span<std::uint64_t> into, std::span<const std::uint64_t> from) {
                    for (std::size_t i = 0; i < into.size(); ++i) into[i] += from[i];
                  });
    rt->submit("begin", [](std::span<std::uint64_t> v) { std::fill(v.begin(), v.end(), 1); }, write(sum));
    rt->submit("add", [](std::span<std::uint64_t> v) { v[0] += 1; }, reduce(sum));
    rt->submit("look", [](std::span<const std::uint64_t> v, std::uint64_t& to) { to = v[0] + v[1]; }, read(sum),
               write(out));
    rt->submit("add", [](std::span<std::uint64_t> v) { v[0] += 1; }, reduce(sum));  // no task sees it
  }
  use_much(*rt, 1);
  rt->wait();
  EXPECT_EQ(seen, 3U);
}

TEST(MemoryBudget, ScratchMemoryCounts) {
  const auto rt = small_runtime();
  const auto workspace = rt->vector<std::uint64_t>("workspace", 5 * kWords / 2);
  std::atomic<int> inside{0}, most{0};
  std::vector<Data<Vector<std::uint64_t>>> data;
  for (int i = 0; i < 8; ++i) {
    data.push_back(rt->vector<std::uint64_t>("v", kWords));
    rt->submit("work", [&](std::span<std::uint64_t> v, std::span<std::uint64_t> space) {
      const int now = ++inside;
      for (int seen = most; now > seen && !most.compare_exchange_weak(seen, now);) {}
      std::fill(space.begin(), space.end(), 7);
      std::copy_n(space.begin(), v.size(), v.begin());
      --inside;
    }, write(data.back()), scratch(workspace));
  }
  rt->wait();
  EXPECT_EQ(most, 1) << "the workspaces of two do not fit";
  for (const auto& each : data) EXPECT_EQ((*rt->acquire(read(each)))[kWords - 1], 7U);
  EXPECT_LE(rt->core().memory().room().used(0), 4 * kWords * 8);
  const auto large = rt->vector<std::uint64_t>("large", 7 * kWords / 2);
  EXPECT_THAT(thrown_by<OutOfMemory>([&] {
                rt->submit("work", [](std::span<std::uint64_t>, std::span<std::uint64_t>) {}, write(data[0]),
                           scratch(large));
              }),
              AllOf(HasSubstr("'work'"), HasSubstr("takes 294912 bytes in main memory"),
                    HasSubstr("budget is 262144 bytes")));
}

/// While it lives, files of this process may have this many bytes; `write` fails beyond, as on a full disk.
class FileLimit {
 public:
  explicit FileLimit(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileLimit() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  void (*handler_)(int);
  rlimit before_{};
};

TEST(MemoryBudget, AFullDiskIsNamed) {
  const auto rt = small_runtime();
  std::string failure;
  {
    const FileLimit limit(100'000);
    std::vector<Data<Vector<std::uint64_t>>> data;
    for (int i = 0; i < 16; ++i) {
      data.push_back(rt->vector<std::uint64_t>("v" + std::to_string(i), kWords));
      rt->submit("fill", [](std::span<std::uint64_t> v) { v[0] = 1; }, write(data.back()));
    }
    failure = thrown_by<OutOfMemory>([&] { rt->wait(); });
  }
  EXPECT_THAT(failure, AllOf(HasSubstr("cannot be moved away"), HasSubstr("in folder " + testing::TempDir()),
                             HasSubstr("option spill"), HasSubstr("File too large")));
}

}  // namespace
}  // namespace tandem::memory_budget_test
