// tandem/api/trace_test.cpp: records of a program in its trace, on all its threads.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <latch>
#include <map>
#include <memory>
#include <ostream>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tandem/api/test_support.hpp"
#include "tandem/base/hardware_counters.hpp"
#include "tandem/trace.hpp"
#include "tandem/trace/read/reader.hpp"
#include "tandem/trace/read/test_support.hpp"
#include "tandem/trace/recover.hpp"

namespace tandem::trace_test {
namespace {

using trace::ActorKind;
using trace::Type;

/// An event, the actor that recorded it, and the tasks and spans that were open on that actor.
struct Recorded {
  Type type;
  ActorKind kind;
  std::uint32_t actor;
  std::string actor_name;
  std::string name;
  double value = 0;
  std::vector<std::string> around;
};

class TraceTest : public ::testing::Test {
 protected:
  Options options() const {
    Options options;
    options.more = {{"trace.folder", folder_.string()}};
    return options;
  }
  /// Makes a runtime on threads, three of them by default; nothing is recorded before `start`.
  std::unique_ptr<Runtime> threads(unsigned workers = 3) const {
    Options options = this->options();
    options.workers = workers;
    options.more.emplace_back("ranks", "alone");
    return std::make_unique<Runtime>(options);
  }

  /// The program's records, in the order of each actor. Called after the end of the runtime.
  std::vector<Recorded> read() const {
    auto run = trace::TraceReader::open(folder_);
    if (!run) throw std::runtime_error(run.error().message);
    std::vector<Recorded> recorded;
    for (const auto& rank : run.value()->ranks) {
      for (const auto& stream : rank->streams) {
        std::vector<std::string> around;
        for (auto event = stream->next(); event.value(); event = stream->next()) {
          const trace::Event& one = *event.value();
          const trace::StreamSummary& actor = stream->summary();
          if (one.type == Type::task_started) around.push_back("task");
          if (one.type == Type::task_ended) around.pop_back();
          if (one.spec().category != trace::Category::user || one.type == Type::declared) continue;
          if (static_cast<std::size_t>(one.type) >= trace::kFirstDeclared) {
            recorded.push_back({one.type, actor.kind, actor.actor, actor.name,
                                std::string(one.spec().name) + " " + one.described(), 0, around});
            continue;
          }
          const std::string name = rank->names.at(one.number(0)).second;
          if (one.type == Type::span_ended) around.pop_back();
          const bool has_value = one.type == Type::mark || one.type == Type::counter;
          recorded.push_back(
              {one.type, actor.kind, actor.actor, actor.name, name, has_value ? one.real(1) : 0, around});
          if (one.type == Type::span_began) around.push_back(name);
        }
        if (!around.empty()) throw std::runtime_error(around.back() + " has no end");
      }
    }
    return recorded;
  }

  trace::test::TempFolder temporary_;
  std::filesystem::path folder_ = temporary_.path() / "run";
};

/// Facts that the program gave for a task.
struct Told {
  std::int32_t iteration = 0;
  double flops = 0;
  std::uint64_t tag = 0;
  std::string parameters;
  bool operator==(const Told&) const = default;
};
void PrintTo(const Told& told, std::ostream* out) {
  *out << "{" << told.iteration << ", " << told.flops << ", " << told.tag << ", \"" << told.parameters << "\"}";
}

/// Facts of all tasks, in the order of their submission.
std::vector<Told> read_told(const std::filesystem::path& folder) {
  auto run = trace::TraceReader::open(folder);
  if (!run) throw std::runtime_error(run.error().message);
  std::vector<Told> told;
  for (const auto& stream : run.value()->ranks.at(0)->streams) {
    if (stream->summary().kind != ActorKind::submitter) continue;
    std::map<std::uint64_t, double> flops;  // operations by site
    Told next;
    next.iteration = runtime::TaskFacts::kNoIteration;
    for (auto event = stream->next(); event.value(); event = stream->next()) {
      const trace::Event& one = *event.value();
      if (one.type == Type::task_iteration) next.iteration = static_cast<std::int32_t>(one.integer(0));
      if (one.type == Type::task_flops) flops[one.number(0)] = one.real(1);
      if (one.type == Type::task_note) {
        next.tag = one.number(1);
        next.parameters = one.text(2);
      }
      if (one.type != Type::task_submitted) continue;
      next.flops = flops[one.number(2)];
      told.push_back(next);
      next.tag = 0;
      next.parameters.clear();
    }
  }
  return told;
}

constexpr std::int32_t none = runtime::TaskFacts::kNoIteration;

/// Counters with given counts: 1000 cycles and 1500 instructions from one read to the next.
class MadeUpCounters final : public base::HardwareCounters {
 public:
  base::HardwareCounts read() noexcept override {
    ++reads_;
    return {.cycles = 1000 * reads_, .instructions = 1500 * reads_, .misses = 10 * reads_};
  }

 private:
  std::uint64_t reads_ = 0;
};

/// The counts of each task that has some.
std::vector<base::HardwareCounts> read_counts(const std::filesystem::path& folder) {
  auto run = trace::TraceReader::open(folder);
  if (!run) throw std::runtime_error(run.error().message);
  std::vector<base::HardwareCounts> counts;
  for (const auto& stream : run.value()->ranks.at(0)->streams) {
    std::uint64_t ended = 0;
    for (auto event = stream->next(); event.value(); event = stream->next()) {
      const trace::Event& one = *event.value();
      if (one.type == Type::task_ended) ended = one.number(0);
      if (one.type != Type::task_counters) continue;
      EXPECT_EQ(one.number(0), ended) << "the record follows the end of its task";
      counts.push_back({one.number(1), one.number(2), one.number(3), one.number(4)});
    }
  }
  return counts;
}

TEST_F(TraceTest, WhatTheProcessorCountsIsRecordedWithEachTask) {
  std::atomic<int> opened = 0;
  for (const bool counted : {true, false}) {
    const std::filesystem::path folder = folder_ / (counted ? "counted" : "not");
    {
      auto resources = test::test_resources();
      runtime::World world = make_real_world(test::test_config({.workers = 2}), *resources);
      if (counted)
        world.counters = [&opened]() -> base::Result<std::unique_ptr<base::HardwareCounters>> {
          ++opened;
          return std::unique_ptr<base::HardwareCounters>(std::make_unique<MadeUpCounters>());
        };
      Runtime rt(std::move(resources), std::move(world), {});
      rt.trace().start("all", folder);
      std::vector<double> x(100);
      const auto dx = rt.data("x", x);
      for (int i = 0; i < 10; ++i) rt.submit("work", [](std::span<double>) {}, read_write(dx));
      rt.wait();
    }
    const auto counts = read_counts(folder);
    ASSERT_EQ(counts.size(), counted ? 10u : 0u);
    for (const base::HardwareCounts& of : counts) {
      EXPECT_EQ(of.cycles, 1000u);
      EXPECT_EQ(of.instructions, 1500u);
      EXPECT_EQ(of.stalled, base::HardwareCounts::kNotCounted);
      EXPECT_EQ(of.misses, 10u);
    }
  }
  EXPECT_GE(opened.load(), 1);
  EXPECT_LE(opened.load(), 2) << "once for each worker that has run a task";
}

TEST_F(TraceTest, CountsCostNothingWhileTheyAreNotRecorded) {
  std::atomic<int> opened = 0;
  auto resources = test::test_resources();
  runtime::World world = make_real_world(test::test_config({.workers = 1}), *resources);
  world.counters = [&opened]() -> base::Result<std::unique_ptr<base::HardwareCounters>> {
    ++opened;
    return base::Error{base::ErrorCode::unsupported, "no"};
  };
  Runtime rt(std::move(resources), std::move(world), {});
  rt.submit("work", [] {});
  rt.wait();
  EXPECT_EQ(opened.load(), 0);
  rt.trace().start("task", folder_);
  rt.submit("work", [] {});
  rt.submit("work", [] {});
  rt.wait();
  EXPECT_EQ(opened.load(), 1) << "what was refused is not tried again";
}

TEST_F(TraceTest, AMachineWithoutCountersSaysSoOnceAndRuns) {
  Options options = this->options();
  options.workers = 2;
  for (const char* const name : {"ranks", "trace.counters", "trace"})
    options.more.emplace_back(name, name == std::string_view("ranks")   ? "alone"
                                    : name == std::string_view("trace") ? "task"
                                                                        : "true");
  testing::internal::CaptureStderr();
  {
    Runtime rt(options);
    for (int i = 0; i < 5; ++i) rt.submit("work", [] {});
    rt.wait();
  }
  const std::string said = testing::internal::GetCapturedStderr();
  const auto counters = base::open_hardware_counters();
  EXPECT_EQ(read_counts(folder_).size(), counters ? 5u : 0u);
  const std::size_t line = said.find("option trace.counters: tasks are traced without the processor's counts: ");
  EXPECT_EQ(line == std::string::npos, counters.ok()) << said;
  if (!counters) {
    EXPECT_NE(said.find(counters.error().message), std::string::npos) << said;
    EXPECT_EQ(said.find("option trace.counters", line + 1), std::string::npos) << said;
  }
}

TEST_F(TraceTest, TheCallersWorkerIsInTheProgramUntilTheFirstWait) {
  {
    const auto rt = threads();
    rt->trace().start("worker");
    rt->submit("nothing", [] {});
    rt->wait();
  }
  auto run = trace::TraceReader::open(folder_);
  ASSERT_TRUE(run);
  const auto& streams = run.value()->ranks.at(0)->streams;
  const auto first = std::ranges::find_if(streams, [](const auto& stream) {
    return stream->summary().kind == trace::ActorKind::worker && stream->summary().index == 0;
  });
  ASSERT_NE(first, streams.end());
  const auto event = (*first)->next();
  ASSERT_TRUE(event && event.value());
  EXPECT_EQ(event.value()->type, trace::Type::worker_state);
  EXPECT_EQ(event.value()->number(0), static_cast<std::uint64_t>(trace::WorkerState::absent));
}

TEST_F(TraceTest, TheColourOfACodeletIsRecordedOnce) {
  {
    const auto rt = threads();
    rt->trace().start("task");
    std::vector<double> x(100);
    const auto dx = rt->data("x", x);
    const auto scale = Codelet("scale", [](std::span<double>) {}).colour(0xcc79a7);
    // This one has a function of operations, too.
    const auto counted = scale.flops([](std::span<const runtime::Shape>) { return 1.0; });
    const auto plain = Codelet("plain", [](std::span<double>) {});
    for (int i = 0; i < 3; ++i) {
      rt->submit(scale, read_write(dx));
      rt->submit(counted, read_write(dx));
      rt->submit(plain, read_write(dx));
    }
    rt->wait();
  }
  auto run = trace::TraceReader::open(folder_);
  ASSERT_TRUE(run);
  const auto& colours = run.value()->ranks.at(0)->colours;
  ASSERT_EQ(colours.size(), 1u);
  EXPECT_EQ(colours[0], std::pair(std::string("scale"), 0xcc79a7u));
}

TEST_F(TraceTest, WhatTheProgramSaysOfItsTasksIsRecorded) {
  {
    const auto rt = threads();
    rt->trace().start("task");
    std::vector<double> x(100), y(50);
    const auto dx = rt->data("x", x), dy = rt->data("y", y);
    const auto work = Codelet("work", [](std::span<double>) {}).flops([](std::span<const runtime::Shape> data) {
      return 2.0 * static_cast<double>(data[0].rows);
    });
    const Codelet plain("plain", [](std::span<double>) {});
    const auto submit = [&](const TaskOptions& options, const auto& codelet, const auto& data) {
      rt->submit(options, codelet, read_write(data));
    };
    submit({}, work, dx);
    {
      const auto outer = rt->iteration(4);
      submit({}, work, dx);
      submit({}, work, dy);
      {
        const auto inner = rt->iteration(5);
        submit({.iteration = -1}, plain, dx);
        submit({.flops = 7}, plain, dx);
        submit({}, plain, dx);
      }
      submit({.tag = UINT64_MAX, .parameters = "k=1 m=2"}, work, dx);
    }
    submit({.flops = 8}, work, dx);
    submit({}, plain, dx);
    rt->wait();
  }
  const std::vector<Told> expected{{none, 200, 0, ""}, {4, 200, 0, ""}, {4, 100, 0, ""}, {-1, 0, 0, ""},
                                   {5, 7, 0, ""},      {5, 0, 0, ""},   {4, 200, UINT64_MAX, "k=1 m=2"},
                                   {none, 8, 0, ""},   {none, 0, 0, ""}};
  EXPECT_EQ(read_told(folder_), expected);
}

TEST_F(TraceTest, ARecordedTaskKeepsTheIterationOfItsRecording) {
  {
    const auto rt = threads();
    std::vector<double> x(10);
    const auto dx = rt->data("x", x);
    const Codelet plain("plain", [](std::span<double>) {});
    Graph graph = rt->record([&] {  // before the trace begins
      for (int step = 0; step < 2; ++step) {
        const auto iteration = rt->iteration(step);
        rt->submit(TaskOptions{.flops = 3.0 + step, .parameters = "recorded"}, plain, read_write(dx));
      }
    });
    rt->trace().start("task");
    rt->replay(graph);
    rt->wait();
    rt->submit(plain, read_write(dx));
    rt->wait();
  }
  const auto told = read_told(folder_);
  ASSERT_GE(told.size(), 3U);
  EXPECT_EQ(told[0], (Told{0, 3, 0, "recorded"}));
  EXPECT_EQ(told[1], (Told{1, 4, 0, "recorded"}));
  EXPECT_EQ(told.back(), (Told{none, 0, 0, ""}));
}

TEST_F(TraceTest, EachPacketTellsTheIterationAnew) {
  constexpr int tasks = 20000;
  {
    Options options = this->options();
    options.workers = 1;
    options.more.insert(
        options.more.end(),
        {{"trace.buffer", "8KiB"}, {"trace.memory", "64KiB"}, {"trace.when_full", "newest"}, {"ranks", "alone"}});
    Runtime rt(options);
    rt.trace().start("task");
    const auto iteration = rt.iteration(12);
    const Codelet work = Codelet("work", [] {}).flops([](std::span<const runtime::Shape>) { return 5.0; });
    for (int i = 0; i < tasks; ++i) rt.submit(work);
    rt.wait();
  }
  const auto told = read_told(folder_);
  ASSERT_GT(told.size(), 50U);
  ASSERT_LT(told.size(), tasks) << "the first packets must have been overwritten";
  std::size_t known = 0;
  for (const Told& one : told) known += one == Told{12, 5, 0, ""} ? 1 : 0;
  EXPECT_GE(known + 1, told.size()) << "one task may come before its packet says it";
}

TEST_F(TraceTest, EventsOfKernelsLieWithinTheirTasksOnTheirWorkers) {
  constexpr unsigned tasks = 300;
  {
    const auto rt = threads();
    const Trace::Name part = rt->trace().name("part"), piece = rt->trace().name("piece"),
                      step = rt->trace().name("step");
    rt->trace().start("task,user");
    for (unsigned i = 0; i < tasks; ++i)
      rt->submit(Codelet("kernel",
                         [&](unsigned number) {
                           const auto whole = rt->trace().span(part);
                           rt->trace().counter(step, number);
                           const auto half = rt->trace().span(piece);
                           rt->trace().mark("by text", number);
                         }),
                 i);
    rt->wait();
  }
  std::map<Type, unsigned> counts;
  std::set<double> steps, marks;
  for (const Recorded& recorded : read()) {
    ++counts[recorded.type];
    EXPECT_EQ(recorded.kind, ActorKind::worker) << recorded.actor_name;
    ASSERT_GE(recorded.around.size(), 1u) << recorded.name;
    EXPECT_EQ(recorded.around[0], "task");
    if (recorded.name == "piece") {
      EXPECT_EQ(recorded.around, (std::vector<std::string>{"task", "part"}));
    }
    if (recorded.type == Type::counter) steps.insert(recorded.value);
    if (recorded.type == Type::mark) marks.insert(recorded.value);
  }
  EXPECT_EQ(counts[Type::span_began], 2 * tasks);
  EXPECT_EQ(counts[Type::span_ended], 2 * tasks);
  EXPECT_EQ(steps.size(), tasks);
  EXPECT_EQ(marks.size(), tasks);
}

TEST_F(TraceTest, TheSameHoldsInAnEventLoop) {
  {
    const auto rt = test::loop_runtime({.seed = 3, .workers = 4}, {});
    rt->trace().start("task,user", folder_);
    const Trace::Name part = rt->trace().name("part");
    for (int i = 0; i < 50; ++i)
      rt->submit(Codelet("kernel", [&] { const auto span = rt->trace().span(part); }));
    const auto outside = rt->trace().span("waiting");
    rt->wait();
  }
  unsigned inside = 0, outside = 0;
  for (const Recorded& recorded : read()) {
    if (recorded.name == "part") {
      EXPECT_EQ(recorded.kind, ActorKind::worker);
      ASSERT_FALSE(recorded.around.empty());
      EXPECT_EQ(recorded.around[0], "task");
      ++inside;
    } else {
      EXPECT_EQ(recorded.kind, ActorKind::submitter);
      ++outside;
    }
  }
  EXPECT_EQ(inside, 100u);
  EXPECT_EQ(outside, 2u);
}

TEST_F(TraceTest, WhatASchedulerExpectsIsRecorded) {
  constexpr unsigned tasks = 40;
  {
    auto resources = test::test_resources();
    runtime::World world = make_test_world({.workers = 2,
                                            .sched = "dmda",
                                            .devices = 1,
                                            .link = runtime::MachineLink{.bytes_per_ns = 1, .latency_ns = 1'000}},
                                           *resources);
    runtime::CoreOptions options;
    options.emulation = [](const runtime::EmulatedTask& task) {
      return task.device == DeviceKind::cpu ? 15'000 : 10'000;
    };
    Runtime rt(std::move(resources), std::move(world), options);
    rt.trace().start("task,sched", folder_);
    const auto kernel = [](const double&, double&) {};
    const auto work = Codelet("work", kernel).also(DeviceKind::user, kernel);
    double go = 0;
    const auto gate = rt.data("go", go);
    std::vector<double> x(2 * tasks);
    std::vector<Data<double>> data;
    for (unsigned i = 0; i < 2 * tasks; ++i) {
      // The tasks of the second half become ready at once, when durations are known.
      if (i == tasks) {
        rt.wait();
        rt.submit(Codelet("open", [](double&) {}), read_write(gate));
      }
      data.push_back(rt.data("x", x[i]));
      rt.submit(work, tandem::read(gate), read_write(data.back()));
    }
    rt.wait();
  }
  auto run = trace::TraceReader::open(folder_);
  ASSERT_TRUE(run.ok()) << run.error().message;
  std::map<std::uint64_t, std::uint64_t> kernels;
  unsigned waited = 0;
  for (const auto& stream : run.value()->ranks.at(0)->streams) {
    for (auto event = stream->next(); event.value(); event = stream->next()) {
      const trace::Event& one = *event.value();
      if (one.type != Type::task_expected) continue;
      ++kernels[one.number(1)];
      waited += one.number(2) != 0;
    }
  }
  // The first task of each kind of worker is placed before its duration is known.
  EXPECT_EQ(kernels.size(), 2u);
  EXPECT_GE(kernels[10'000] + kernels[15'000], tasks);
  EXPECT_GT(kernels[10'000], 0u);
  EXPECT_GT(kernels[15'000], 0u);
  EXPECT_GT(waited, 0u) << "for the first copy to the card";
}

TEST_F(TraceTest, SaysWhichImplementationRan) {
  std::atomic<unsigned> first{0}, second{0};
  {
    const auto rt = threads(1);
    rt->trace().start("task,sched", folder_);
    double x = 0;
    const auto data = rt->data("x", x);
    const auto work = Codelet("work", [&](double&) { ++first; }).also([&](double&) { ++second; });
    for (int i = 0; i < 20; ++i) rt->submit(work, read_write(data));
    rt->wait();
  }
  auto run = trace::TraceReader::open(folder_);
  ASSERT_TRUE(run.ok()) << run.error().message;
  std::map<std::uint64_t, unsigned> told;
  std::uint64_t last = 0;
  for (const auto& stream : run.value()->ranks.at(0)->streams)
    for (auto event = stream->next(); event.value(); event = stream->next()) {
      const trace::Event& one = *event.value();
      if (one.type == Type::task_implementation) last = one.number(0), ++told[one.number(1)];
      if (one.type == Type::task_started) {
        EXPECT_EQ(one.number(0), last) << "told before it starts";
      }
    }
  EXPECT_EQ(told[0], first);
  EXPECT_EQ(told[1], second);
  EXPECT_EQ(first + second, 20U);
}

TEST_F(TraceTest, AnEmptyTaskIsTwoRecords) {
  constexpr std::uint64_t tasks = 1000;
  {
    const auto rt = threads(1);
    rt->trace().start("task,sched");
    double x = 0;
    const auto data = rt->data("x", x);
    const Codelet work("work", [](double&) {});
    for (std::uint64_t i = 0; i < tasks; ++i) rt->submit(work, read_write(data));
    rt->wait();
  }
  auto run = trace::TraceReader::open(folder_);
  ASSERT_TRUE(run.ok()) << run.error().message;
  std::map<Type, std::uint64_t> events;
  std::uint64_t records = 0, bytes = 0;
  for (const auto& stream : run.value()->ranks.at(0)->streams) {
    for (auto event = stream->next(); event.value(); event = stream->next()) {
      const trace::Event& one = *event.value();
      const trace::Category category = one.spec().category;
      if (category != trace::Category::task && category != trace::Category::sched) continue;
      ++events[one.type];
      records += one.record_bytes() > 0 ? 1 : 0;
      bytes += one.record_bytes();
    }
  }
  for (const Type type : {Type::task_submitted, Type::task_started, Type::task_ended})
    EXPECT_EQ(events[type], tasks) << trace::find_spec(type)->name;
  EXPECT_EQ(events[Type::task_ready], tasks - 1) << "the first was ready when it was submitted";
  EXPECT_LE(records, 2 * tasks + tasks / 10) << "nearly all are kept by the worker that made them ready";
  EXPECT_LE(bytes, 26 * tasks);
}

/// The stamps of submissions, in order, and the time when `ended` tasks had ended.
struct Submissions {
  std::vector<std::uint64_t> stamps;
  std::uint64_t ended_ticks = 0;

  Submissions(const std::filesystem::path& folder, std::size_t ended) {
    auto run = trace::TraceReader::open(folder);
    if (!run) throw std::runtime_error(run.error().message);
    for (const auto& stream : run.value()->ranks.at(0)->streams) {
      for (auto event = stream->next(); event.value(); event = stream->next()) {
        if (event.value()->type == Type::task_submitted) stamps.push_back(event.value()->ticks);
        if (event.value()->type == Type::task_ended && --ended == 0) ended_ticks = event.value()->ticks;
      }
    }
  }
  std::size_t distinct(std::size_t count) const {
    return std::set(stamps.begin(), stamps.begin() + static_cast<std::ptrdiff_t>(count)).size();
  }
};

TEST_F(TraceTest, SubmissionsThatNoWorkerWaitsForShareStamps) {
  constexpr std::size_t tasks = 32;
  {
    const auto rt = threads(1);  // only the caller works, and runs nothing before `wait`
    rt->trace().start("task");
    const Codelet work("work", [] {});
    for (std::size_t i = 0; i < tasks; ++i) rt->submit(work);
    rt->wait();
    rt->submit(work);
    rt->wait();
  }
  const Submissions submissions(folder_, tasks);
  ASSERT_EQ(submissions.stamps.size(), tasks + 1);
  EXPECT_TRUE(std::is_sorted(submissions.stamps.begin(), submissions.stamps.end()));
  EXPECT_EQ(submissions.distinct(tasks), tasks / 8);
  EXPECT_GT(submissions.stamps.back(), submissions.ended_ticks) << "the first one after a wait has its own";
}

TEST_F(TraceTest, ASubmissionForSomeWorkersOnlyHasItsOwnStamp) {
  constexpr std::size_t tasks = 32;
  {
    const auto rt = threads(2);
    rt->trace().start("task");
    const Codelet work =
        Codelet("work", [] {}).can_run([](const WorkerDescription& worker) { return worker.worker == 0; });
    for (std::size_t i = 0; i < tasks; ++i) rt->submit(work);
    rt->wait();
  }
  const Submissions submissions(folder_, tasks);
  ASSERT_EQ(submissions.stamps.size(), tasks);
  EXPECT_EQ(submissions.distinct(tasks), tasks);
}

TEST_F(TraceTest, AStolenTaskNamesItsVictim) {
  unsigned stolen = 0;
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    folder_ = temporary_.path() / std::to_string(seed);
    {
      const auto rt = test::loop_runtime({.seed = seed, .workers = 4});
      rt->trace().start("task,sched", folder_);
      double x = 0;
      const auto data = rt->data("x", x);
      const Codelet first("first", [](double&) {});
      const Codelet next("next", [](const double&) {});
      rt->submit(first, read_write(data));
      // The worker that runs the first one releases them all.
      for (int i = 0; i < 50; ++i) rt->submit(next, tandem::read(data));
      rt->wait();
    }
    auto run = trace::TraceReader::open(folder_);
    ASSERT_TRUE(run.ok()) << run.error().message;
    std::map<std::uint64_t, std::uint64_t> queue_of;
    const auto& rank = *run.value()->ranks.at(0);
    for (const bool pushes : {true, false}) {
      for (const auto& stream : rank.streams) {
        stream->rewind();
        for (auto event = stream->next(); event.value(); event = stream->next()) {
          const trace::Event& one = *event.value();
          if (pushes && one.type == Type::task_pushed) queue_of[one.number(0)] = one.number(1);
          if (pushes || one.type != Type::task_stolen) continue;
          ++stolen;
          EXPECT_NE(one.number(1), stream->summary().index) << "a worker steals from others";
          EXPECT_EQ(one.number(1), queue_of.at(one.number(0)));
        }
      }
    }
  }
  EXPECT_GT(stolen, 0u);
}

TEST_F(TraceTest, AKilledProgramLeavesTheTaskThatRan) {
  int said[2];
  ASSERT_EQ(::pipe(said), 0);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const auto rt = threads(1);
    rt->trace().start("all");
    double x = 0;
    const auto data = rt->data("x", x);
    for (int i = 0; i < 3; ++i) rt->submit(Codelet("quick", [](double&) {}), read_write(data));
    rt->submit(Codelet("endless", [&](double&) {
      if (::write(said[1], "x", 1) != 1) ::_exit(1);
      for (;;) ::pause();
    }), read_write(data));
    rt->wait();
    ::_exit(1);
  }
  ::close(said[1]);
  char byte = 0;
  const auto got = ::read(said[0], &byte, 1);
  ::kill(child, SIGKILL);
  int status = 0;
  ::waitpid(child, &status, 0);
  ::close(said[0]);
  ASSERT_EQ(got, 1);
  ASSERT_TRUE(WIFSIGNALED(status));
  const auto recovered = trace::recover_run(folder_);
  ASSERT_TRUE(recovered.ok()) << recovered.error().message;
  auto run = trace::TraceReader::open(folder_);
  ASSERT_TRUE(run.ok()) << run.error().message;
  const auto& rank = *run.value()->ranks.at(0);
  std::map<std::uint64_t, std::string> running, codelets;
  for (const auto& stream : rank.streams) {
    for (auto event = stream->next(); event.value(); event = stream->next()) {
      const trace::Event& one = *event.value();
      if (one.type == Type::task_submitted) codelets[one.number(0)] = rank.sites.at(one.number(2)).codelet;
      if (one.type == Type::task_started) running[one.number(0)] = stream->summary().name;
      if (one.type == Type::task_ended) running.erase(one.number(0));
    }
  }
  ASSERT_EQ(codelets.size(), 4u);
  ASSERT_EQ(running.size(), 1u) << "the others have ended";
  EXPECT_EQ(codelets.at(running.begin()->first), "endless");
  EXPECT_EQ(running.begin()->second, "worker 0");
}

TEST_F(TraceTest, DataThatIsLetGoSaysOnWhichNumaNodeItLay) {
  const auto machine = base::Topology::discover();
  ASSERT_TRUE(machine.ok());
  if (machine.value().numa_nodes().empty()) GTEST_SKIP() << "the system does not say which NUMA nodes there are";
  {
    const auto rt = threads();
    rt->trace().start("data");
    std::vector<double> values(1'000, 1);
    const auto outside = rt->data("outside", values);
    const auto inside = rt->scalar<double>("inside");
    const Codelet fill("fill", [](double& value) { value = 2; });
    rt->submit(fill, write(inside));
    rt->wait();
  }
  auto run = trace::TraceReader::open(folder_);
  ASSERT_TRUE(run.ok());
  std::set<std::uint64_t> recorded;
  ASSERT_TRUE(run.value()->in_order([](const trace::Event&) { return 0; }, [&](const trace::Event& event,
                                                                               std::int64_t) {
    if (event.type != Type::data_numa) return true;
    recorded.insert(event.number(0));
    EXPECT_LT(event.number(1), machine.value().numa_nodes().size());
    return true;
  }).ok());
  EXPECT_EQ(recorded, (std::set<std::uint64_t>{0, 1}));
}

/// Allocates like the driver of a device.
class PlainLocker final : public runtime::PageLocker {
 public:
  void* allocate(std::size_t bytes, std::string&) override { return std::aligned_alloc(4096, bytes); }
  void release(void* memory) noexcept override { std::free(memory); }
};

TEST_F(TraceTest, SaysWhatThePoolOfPageLockedMemoryHolds) {
  constexpr std::size_t kBytes = std::size_t{1} << 20;  // each allocation is a separate block
  {
    auto resources = test::test_resources();
    auto world = make_test_world({}, *resources);
    world.page_locked =
        std::make_shared<runtime::PageLockedPool>(std::make_unique<PlainLocker>(), 3 * kBytes, *resources->log);
    Runtime rt(std::move(resources), std::move(world), {});
    rt.trace().start("data", folder_);
    for (int i = 0; i < 4; ++i) {  // the last one finds no room
      const auto data = rt.vector<std::byte>("data", kBytes);
      rt.submit(Codelet("fill", [](std::span<std::byte> bytes) { bytes[0] = std::byte{1}; }), write(data));
    }
    rt.wait();
  }
  auto run = trace::TraceReader::open(folder_);
  ASSERT_TRUE(run.ok());
  std::vector<std::array<std::uint64_t, 8>> recorded;
  ASSERT_TRUE(run.value()->in_order([](const trace::Event&) { return 0; }, [&](const trace::Event& event,
                                                                               std::int64_t) {
    if (event.type != Type::data_page_locked) return true;
    auto& fields = recorded.emplace_back();
    for (unsigned i = 0; i < fields.size(); ++i) fields[i] = event.number(i);
    return true;
  }).ok());
  ASSERT_EQ(recorded.size(), 4u);
  const std::array<std::uint64_t, 8> last = {3 * kBytes, 3 * kBytes, 3 * kBytes, 3 * kBytes, 3, 3, 1, kBytes};
  EXPECT_EQ(recorded.back(), last);
}

TEST_F(TraceTest, TheCallersThreadIsTheSubmitterOutsideOfWaitsAndAWorkerWithin) {
  {
    const auto rt = threads(1);
    rt->trace().start("task,user");
    const auto span = rt->trace().span("whole");
    rt->submit(Codelet("kernel", [&] { rt->trace().mark("within"); }));
    rt->wait();
    rt->trace().mark("outside", 7);
  }
  for (const Recorded& recorded : read()) {
    EXPECT_EQ(recorded.kind, recorded.name == "within" ? ActorKind::worker : ActorKind::submitter) << recorded.name;
    if (recorded.name == "outside") {
      EXPECT_EQ(recorded.around, std::vector<std::string>{"whole"});
    }
  }
  EXPECT_EQ(read().size(), 4u);
}

TEST_F(TraceTest, ThreadsOfTheProgramGetAStreamWithTheirFirstSpan) {
  constexpr int threads_count = 4, rounds = 500;
  {
    const auto rt = threads(1);
    rt->trace().start("user");
    const Trace::Name part = rt->trace().name("part");
    std::vector<std::thread> own;
    for (int i = 0; i < threads_count; ++i)
      own.emplace_back([&, i] {
        if (i == 0) rt->trace().name_thread("reader");
        else rt->trace().mark("alone", i);  // goes to the stream of all others
        for (int round = 0; round < rounds; ++round) {
          const auto span = rt->trace().span(part);
          rt->trace().counter("round", round);
        }
      });
    for (std::thread& thread : own) thread.join();
    rt->trace().mark("joined");
  }
  std::map<std::uint32_t, unsigned> spans;
  unsigned alone = 0;
  bool reader = false;
  for (const Recorded& recorded : read()) {
    if (recorded.name == "alone") {
      EXPECT_EQ(recorded.kind, ActorKind::others);
      ++alone;
      continue;
    }
    if (recorded.name == "joined") continue;
    EXPECT_EQ(recorded.kind, ActorKind::user);
    reader |= recorded.actor_name == "reader";
    if (recorded.type == Type::span_ended) ++spans[recorded.actor];
    if (recorded.type == Type::counter) {
      EXPECT_EQ(recorded.around, std::vector<std::string>{"part"});
    }
  }
  EXPECT_EQ(alone, threads_count - 1u);
  EXPECT_TRUE(reader);
  ASSERT_EQ(spans.size(), std::size_t{threads_count});
  for (const auto& [actor, count] : spans) EXPECT_EQ(count, unsigned{rounds}) << actor;
}

TEST_F(TraceTest, AThreadOutlivesARuntimeAndRecordsInTheNextOne) {
  const std::filesystem::path other = temporary_.path() / "other";
  auto first = threads(1);
  first->trace().start("user");
  std::unique_ptr<Runtime> second;
  std::latch recorded_first(1), second_is_there(1), recorded_second(1), second_is_gone(1);
  std::thread thread([&] {
    { const auto span = first->trace().span("first"); }
    recorded_first.count_down();
    second_is_there.wait();
    { const auto span = second->trace().span("second"); }
    recorded_second.count_down();
    second_is_gone.wait();
  });
  recorded_first.wait();
  first.reset();
  second = threads(1);
  second->trace().start("user", other);
  second_is_there.count_down();
  recorded_second.wait();
  second.reset();
  second_is_gone.count_down();
  thread.join();
  EXPECT_EQ(read().size(), 2u);
  for (const Recorded& recorded : read()) EXPECT_EQ(recorded.name, "first");
  folder_ = other;
  EXPECT_EQ(read().size(), 2u);
  for (const Recorded& recorded : read()) EXPECT_EQ(recorded.name, "second");
  auto run = trace::TraceReader::open(folder_);
  ASSERT_TRUE(run.ok());
  for (const auto& stream : run.value()->ranks[0]->streams) EXPECT_EQ(stream->summary().missing_packets, 0u);
}

TEST_F(TraceTest, TwoRuntimesInOneProcessKeepApart) {
  const std::filesystem::path other = temporary_.path() / "other";
  {
    const auto rt = threads(2);
    const auto inner = threads(1);
    rt->trace().start("task,user");
    inner->trace().start("user", other);
    rt->submit(Codelet("kernel", [&] {
      const auto mine = rt->trace().span("mine");
      const auto theirs = inner->trace().span("theirs");
    }));
    rt->wait();
  }
  for (const Recorded& recorded : read()) EXPECT_EQ(recorded.name, "mine");
  EXPECT_EQ(read().size(), 2u);
  folder_ = other;
  for (const Recorded& recorded : read()) EXPECT_EQ(recorded.name, "theirs");
  EXPECT_EQ(read().size(), 2u);
}

TEST_F(TraceTest, WithoutATraceNothingIsRecordedAndNamesTakenEarlyKeepTheirMeaning) {
  {
    const auto rt = threads(1);
    const Trace::Name a = rt->trace().name("a"), b = rt->trace().name("b"), again = rt->trace().name("a");
    rt->trace().mark(a, 1);
    { const auto span = rt->trace().span(b); }
    rt->trace().start("user");
    const Trace::Name c = rt->trace().name("c");
    rt->trace().mark(b, 2);
    rt->trace().mark(again, 3);
    rt->trace().mark(c, 4);
    rt->trace().mark(Trace::Name(), 5);
    rt->trace().stop();
    rt->trace().mark(a, 6);
    { const auto span = rt->trace().span("late"); }
  }
  std::vector<std::pair<std::string, double>> marks;
  for (const Recorded& recorded : read()) marks.emplace_back(recorded.name, recorded.value);
  EXPECT_EQ(marks, (std::vector<std::pair<std::string, double>>{{"b", 2}, {"a", 3}, {"c", 4}}));
}

TEST_F(TraceTest, EventsOfTheProgramsOwnComeBackWithTheirFields) {
  constexpr std::uint32_t tasks = 100;
  {
    const auto rt = threads();
    const auto early = rt->trace().event<std::uint8_t, std::int64_t>("early", {"small", "large"});
    early(1, 2);  // there is no trace yet
    rt->trace().start("task,user");
    const auto residual = rt->trace().event<std::uint32_t, double>("solver.residual", {"iteration", "norm"});
    const auto note = rt->trace().event<std::string_view, std::int32_t>("note", {"text", "level"});
    const auto nothing = rt->trace().event("nothing", {});
    for (std::uint32_t i = 0; i < tasks; ++i)
      rt->submit(Codelet("solve", [=](std::uint32_t iteration) { residual(iteration, 0.5 * iteration); }), i);
    rt->wait();
    early(255, -3);
    note("a \"text\"", -7);
    nothing();
    std::thread([&] { note("elsewhere", 1); }).join();
    rt->trace().start("task,user,-user.event");
    note("not recorded", 2);
  }
  std::set<std::string> residuals;
  std::vector<std::string> others;
  for (const Recorded& recorded : read()) {
    if (!recorded.name.starts_with("solver.residual ")) {
      others.push_back(std::string(name_of(recorded.kind)) + ": " + recorded.name);
      continue;
    }
    residuals.insert(recorded.name);
    EXPECT_EQ(recorded.kind, ActorKind::worker);
    EXPECT_EQ(recorded.around, std::vector<std::string>{"task"});
  }
  EXPECT_EQ(residuals.size(), tasks);
  EXPECT_TRUE(residuals.contains("solver.residual iteration=17 norm=8.5"));
  EXPECT_EQ(others,
            (std::vector<std::string>{"others: note text=\"elsewhere\" level=1", "submitter: early small=255 large=-3",
                                      "submitter: note text=\"a \"text\"\" level=-7", "submitter: nothing "}));
}

TEST_F(TraceTest, ADeclarationThatCannotBeIsRefused) {
  const auto rt = threads(1);
  Trace& trace = rt->trace();
  trace.event<double>("mine", {"x"});
  trace.event<double>("mine", {"x"});  // the same declaration again
  const auto refusal = [](const std::function<void()>& declare) { return test::thrown_by<UsageError>(declare); };
  EXPECT_NE(refusal([&] { trace.event<double>("mine", {"y"}); }).find("declared before"), std::string::npos);
  EXPECT_NE(refusal([&] { trace.event<double>("task.started", {"x"}); }).find("Tandem has a type"), std::string::npos);
  EXPECT_NE(refusal([&] { trace.event<double>("two words", {"x"}); }).find("letters, digits"), std::string::npos);
  EXPECT_NE(refusal([&] { trace.event<double>("other", {"a.b"}); }).find("no name of a field"), std::string::npos);
  EXPECT_NE(refusal([&] { trace.event<double, double>("other", {"x"}); }).find("no name of a field"),
            std::string::npos);
  EXPECT_NE(refusal([&] { trace.event<double, double>("other", {"x", "x"}); }).find("two fields"), std::string::npos);
  for (std::size_t i = 1; i < trace::kMostDeclared; ++i) trace.event<double>("mine" + std::to_string(i), {"x"});
  EXPECT_NE(refusal([&] { trace.event<double>("one-too-many", {"x"}); }), "nothing was thrown");
}

}  // namespace
}  // namespace tandem::trace_test
