// tandem/api/stretch_test.cpp: tasks posted to a device behind the one that they wait for: order, failures, memory,
// measurements.
#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/api/card_device.hpp"
#include "tandem/api/test_support.hpp"
#include "tandem/device.hpp"
#include "tandem/trace.hpp"
#include "tandem/trace/read/reader.hpp"
#include "tandem/trace/read/test_support.hpp"

namespace tandem::stretch_test {
namespace {

using test::Card;
using test::CardMemory;
using test::MemoryUse;
using test::on_device;
using test::runtime_with;
using test::thrown_by;
using testing::AllOf;
using testing::HasSubstr;

/// A step whose order shows in the value.
void step(int by, double& v) { v = v * 3 + by; }
const auto kStep = Codelet("step", [](int by, double& v) { step(by, v); }).also(DeviceKind::user,
                                                                                [](int by, double& v) { step(by, v); });
const auto kStepThere = kStep.can_run(on_device);
const auto kMove = Codelet("move", [](const double&, double&) {})
                       .also(DeviceKind::user, [](const double& from, double& to) { to = from + 1; })
                       .can_run(on_device);

double after_steps(int count, double v = 0) {
  for (int i = 0; i < count; ++i) step(i % 5, v);
  return v;
}

std::uint64_t behind(Runtime& rt) { return rt.statistics().workers.back().posted_behind; }

runtime::CoreOptions with_stretch(unsigned stretch) {
  runtime::CoreOptions options;
  options.device_stretch = stretch;
  return options;
}

struct Chain {
  double value = 0;
  Data<double> x;
  explicit Chain(Runtime& rt) : x(rt.data(value)) {}
};

TEST(Stretches, SaveTheWayOfEachEndToTheHost) {
  std::int64_t took_ns[2] = {};
  for (const unsigned stretch : {1U, 8U}) {
    Card card{.depth = 1, .task_ns = 1'000, .in_order = true, .way_ns = 5'000};
    auto rt = runtime_with({&card}, {}, with_stretch(stretch));
    Chain chain(*rt);
    for (int i = 0; i < 41; ++i) rt->submit(kStepThere, i % 5, read_write(chain.x));
    rt->wait();
    took_ns[stretch / 8] = rt->resources().loop->now_ns();
    rt->wait(chain.x);
    EXPECT_EQ(chain.value, after_steps(41));
    EXPECT_EQ(card.most_in_flight, stretch);
    EXPECT_EQ(behind(*rt), stretch == 1 ? 0U : 40U);
  }
  EXPECT_GE(took_ns[0], 41 * 6'000);
  EXPECT_LE(took_ns[1], took_ns[0] / 3);
}

TEST(Stretches, AreMadeOfTheTasksOfAReplay) {
  Card card{.depth = 1, .in_order = true, .way_ns = 3'000};
  auto rt = runtime_with({&card}, {}, with_stretch(16));
  Chain chain(*rt);
  rt->submit(kStepThere, 0, read_write(chain.x));
  Graph graph = rt->record([&] {
    for (int i = 0; i < 30; ++i) rt->submit(kStepThere, i % 5, read_write(chain.x));
  });
  for (int replay = 0; replay < 3; ++replay) rt->replay(graph);
  rt->wait(chain.x);
  double expected = 0;
  for (int replay = 0; replay < 3; ++replay) expected = after_steps(30, expected);
  EXPECT_EQ(chain.value, expected);
  EXPECT_GE(behind(*rt), 3 * 29U);
  EXPECT_LE(card.most_in_flight, 16U);
}

TEST(Stretches, GetOnlySoLongAsTheirTasksTakeLittle) {
  Card card{.depth = 1, .task_ns = 10'000'000, .in_order = true};
  auto rt = runtime_with({&card}, {}, with_stretch(16));
  Chain chain(*rt);
  for (int i = 0; i < 20; ++i) rt->submit(kStepThere, i % 5, read_write(chain.x));
  rt->wait(chain.x);
  EXPECT_EQ(chain.value, after_steps(20));
  EXPECT_EQ(card.most_in_flight, 2U) << "one that runs, and one behind it";
}

TEST(Stretches, ComeAfterTasksThatAreReady) {
  Card card{.depth = 1, .task_ns = 1'000, .in_order = true};
  auto rt = runtime_with({&card}, {}, with_stretch(16));
  std::vector<std::unique_ptr<Chain>> chains;
  for (int i = 0; i < 6; ++i) chains.push_back(std::make_unique<Chain>(*rt));
  std::vector<int> order;
  const auto note = Codelet("note", [](int, double&) {}).also(DeviceKind::user, [&](int chain, double& v) {
    order.push_back(chain);
    v += 1;
  }).can_run(on_device);
  for (int round = 0; round < 2; ++round)
    for (int i = 0; i < 6; ++i) rt->submit(note, i, read_write(chains[i]->x));
  rt->wait();
  const auto ten = order.begin() + 10;
  for (int i = 0; i < 5; ++i)
    EXPECT_TRUE(std::find(order.begin(), ten, i) != ten) << "chain " << i << " begins before others are done";
}

TEST(Stretches, FollowTheMostUrgentOfSeveralSuccessors) {
  Card card{.depth = 1, .task_ns = 1'000, .in_order = true};
  auto rt = runtime_with({&card}, {}, with_stretch(4));
  Chain x(*rt), y(*rt), z(*rt);
  std::vector<int> order;
  const auto note = Codelet("note", [](int, const double&, double&) {})
                        .also(DeviceKind::user,
                              [&](int number, const double& from, double& to) {
                                order.push_back(number);
                                to = from + number;
                              })
                        .can_run(on_device);
  rt->submit(kStepThere, 7, read_write(x.x));
  rt->submit({.priority = 1}, note, 1, read(x.x), write(y.x));
  rt->submit({.priority = 2}, note, 2, read(x.x), write(z.x));
  rt->wait();
  EXPECT_EQ(order, (std::vector<int>{2, 1}));
  EXPECT_EQ(behind(*rt), 1U);
  rt->wait(y.x);
  rt->wait(z.x);
  EXPECT_EQ(y.value, 8);
  EXPECT_EQ(z.value, 9);
}

TEST(Stretches, EndBehindATaskWithACallbackWhichRunsBeforeOthersBegin) {
  Card card{.depth = 1, .in_order = true};
  auto rt = runtime_with({&card}, {}, with_stretch(16));
  Chain chain(*rt);
  std::vector<unsigned> launched;
  for (int i = 0; i < 9; ++i) {
    if (i % 3 == 2)
      rt->submit({.callback = [&] { launched.push_back(card.launches); }}, kStepThere, i % 5, read_write(chain.x));
    else rt->submit(kStepThere, i % 5, read_write(chain.x));
  }
  rt->wait(chain.x);
  EXPECT_EQ(chain.value, after_steps(9));
  EXPECT_EQ(launched, (std::vector<unsigned>{3, 6, 9}));
  EXPECT_EQ(behind(*rt), 6U);
}

TEST(Stretches, HaveTheTimesThatTheDeviceSays) {
  Card card{.depth = 1, .task_ns = 1'000, .in_order = true, .times = true, .way_ns = 700};
  runtime::CoreOptions options = with_stretch(8);
  options.timeline = true;
  auto rt = runtime_with({&card}, {}, options);
  Chain chain(*rt);
  for (int i = 0; i < 30; ++i) rt->submit(kStepThere, i % 5, read_write(chain.x));
  rt->wait();
  const StatisticsReport report = rt->statistics();
  EXPECT_EQ(report.workers.back().tasks, 30U);
  ASSERT_EQ(report.codelets.size(), 1U);
  EXPECT_EQ(report.codelets[0].durations.count, 30U);
  EXPECT_EQ(report.codelets[0].durations.mean_ns, 1'000);
  EXPECT_EQ(report.codelets[0].durations.deviation_ns(), 0);
  const auto timeline = rt->timeline();
  ASSERT_EQ(timeline.size(), 30U);
  for (std::size_t i = 1; i < timeline.size(); ++i) {
    EXPECT_EQ(timeline[i].task, timeline[i - 1].task + 1);
    EXPECT_GE(timeline[i].start_ns, timeline[i - 1].end_ns);
  }
}

TEST(Stretches, AreTracedAsTasksOneAfterTheOther) {
  constexpr std::uint64_t tasks = 40;
  const trace::test::TempFolder temporary;
  const auto folder = temporary.path() / "run";
  {
    Card card{.depth = 1, .in_order = true, .way_ns = 500};
    auto rt = runtime_with({&card}, {}, with_stretch(8));
    rt->trace().start("task,sched", folder);
    Chain chain(*rt);
    for (std::uint64_t i = 0; i < tasks; ++i) rt->submit(kStepThere, static_cast<int>(i), read_write(chain.x));
    rt->wait();
    EXPECT_EQ(behind(*rt), tasks - 1);
  }
  auto run = trace::TraceReader::open(folder);
  ASSERT_TRUE(run.ok()) << run.error().message;
  std::vector<std::pair<trace::Type, std::uint64_t>> seen;  // events of the device's worker
  for (const auto& stream : run.value()->ranks.at(0)->streams) {
    for (auto event = stream->next(); event.value(); event = stream->next()) {
      const trace::Event& one = *event.value();
      const bool counts = one.type == trace::Type::task_ready || one.type == trace::Type::task_started ||
                          one.type == trace::Type::task_ended;
      if (counts && stream->summary().kind == trace::ActorKind::worker) seen.emplace_back(one.type, one.number(0));
    }
  }
  // The submission makes the first task ready, and it runs to its end; then the next is ready.
  ASSERT_EQ(seen.size(), 3 * tasks - 1);
  for (std::uint64_t i = 0; i < tasks; ++i) {
    const std::size_t at = 3 * i;
    EXPECT_EQ(seen[at], std::pair(trace::Type::task_started, seen[0].second + i));
    EXPECT_EQ(seen[at + 1], std::pair(trace::Type::task_ended, seen[0].second + i));
    if (i + 1 == tasks) break;
    EXPECT_EQ(seen[at + 2], std::pair(trace::Type::task_ready, seen[0].second + i + 1));
  }
}

TEST(Stretches, OfAModelledDeviceTakeTheSameTime) {
  std::int64_t took_ns[2] = {};
  for (const unsigned stretch : {1U, 8U}) {
    Card card{.depth = 2};
    runtime::CoreOptions options = with_stretch(stretch);
    options.emulation = [](const runtime::EmulatedTask&) -> std::optional<std::int64_t> { return 5'000; };
    auto rt = runtime_with({&card}, {}, options);
    Chain chain(*rt);
    for (int i = 0; i < 10; ++i) rt->submit(kStepThere, i, read_write(chain.x));
    rt->wait();
    took_ns[stretch / 8] = rt->resources().loop->now_ns();
    EXPECT_EQ(behind(*rt), stretch == 1 ? 0U : 9U);
    const StatisticsReport report = rt->statistics();
    EXPECT_EQ(report.codelets.at(0).durations.mean_ns, 5'000);
  }
  EXPECT_GE(took_ns[1], 50'000);
  EXPECT_LE(took_ns[1], took_ns[0]);
}

// --- failures

TEST(FailingStretches, ATaskThatThrowsHasNoneBehindItAndCancelsTheRest) {
  for (const bool is_recorded : {false, true}) {
    Card card{.depth = 1, .in_order = true};
    auto rt = runtime_with({&card}, {}, with_stretch(16));
    Chain chain(*rt);
    int calls = 0;
    const auto kernel = Codelet("k", [](int, double&) {}).also(DeviceKind::user, [&](int number, double& v) {
      ++calls;
      if (number == 4) throw std::runtime_error("four");
      step(number, v);
    }).can_run(on_device);
    rt->submit(kStepThere, 0, read_write(chain.x));
    const auto submit = [&] {
      for (int i = 0; i < 10; ++i) rt->submit(kernel, i, read_write(chain.x));
    };
    Graph graph;
    if (is_recorded) {
      graph = rt->record(submit);
      rt->replay(graph);
    } else {
      submit();
    }
    EXPECT_EQ(thrown_by<std::runtime_error>([&] { rt->wait(); }), "four");
    EXPECT_EQ(calls, 5);
    EXPECT_EQ(behind(*rt), 5U);
    rt->submit(Codelet("set", [](double& v) { v = 1; }), write(chain.x));
    rt->submit(kStepThere, 2, read_write(chain.x));
    rt->wait(chain.x);
    EXPECT_EQ(chain.value, 5) << "and the runtime goes on";
  }
}

TEST(FailingStretches, ATaskThatAnotherOneCancelsIsPostedBehindNone) {
  Card card{.depth = 2, .in_order = true};
  auto rt = runtime_with({&card}, {}, with_stretch(16));
  Chain chain(*rt), other(*rt);
  int calls = 0;
  const auto fails = Codelet("fails", [](double&) {
                     }).also(DeviceKind::user, [](double&) {
                         throw std::runtime_error("at once");
                       }).can_run(on_device);
  const auto counts = Codelet("counts", [](double&) {}).also(DeviceKind::user,
                                                             [&](double&) { ++calls; }).can_run(on_device);
  const TaskRef failed = rt->submit(fails, write(other.x));
  rt->submit(kStepThere, 1, read_write(chain.x));
  rt->submit({.after = {failed}}, counts, read_write(chain.x));
  EXPECT_EQ(thrown_by<std::runtime_error>([&] { rt->wait(); }), "at once");
  EXPECT_EQ(calls, 0);
}

TEST(FailingStretches, WhatIsBehindATaskThatTheDeviceBreaksDoesNotCount) {
  Card card{.depth = 1, .in_order = true};
  int ends = 0;
  card.at_end = [&](const DeviceTask&) {
    if (++ends == 3) throw DeviceError(DeviceEffect::broken, "bit flip");
  };
  MemoryUse use;
  auto rt = runtime_with({&card}, {.budget = 2 * sizeof(double), .use = &use}, with_stretch(16));
  Chain chain(*rt), other(*rt);
  for (int i = 0; i < 8; ++i) rt->submit(kStepThere, i, read_write(chain.x));
  EXPECT_THAT(thrown_by<DeviceError>([&] { rt->wait(); }),
              AllOf(HasSubstr("'step'"), HasSubstr("on card"), HasSubstr("bit flip")));
  EXPECT_EQ(card.launches, 8U) << "they were posted before";
  EXPECT_THAT(thrown_by<DeviceError>([&] { rt->wait(chain.x); }), HasSubstr("bit flip"));
  // The memory of the failed tasks is free again.
  Chain more(*rt);
  for (int i = 0; i < 4; ++i) {
    rt->submit(kStepThere, i, read_write(other.x));
    rt->submit(kMove, read(other.x), write(more.x));
  }
  rt->wait(more.x);
  rt->wait(other.x);
  EXPECT_EQ(other.value, after_steps(4));
  EXPECT_EQ(more.value, other.value + 1);
}

TEST(FailingStretches, WhatDoesNotSeeTheFailedValueCounts) {
  Card card{.depth = 1, .in_order = true};
  int ends = 0;
  card.at_end = [&](const DeviceTask&) {
    if (++ends == 1) throw DeviceError(DeviceEffect::broken, "bit flip");
  };
  auto rt = runtime_with({&card}, {}, with_stretch(16));
  Chain x(*rt), y(*rt);
  rt->submit(kMove, read(x.x), write(y.x));  // fails
  rt->submit(kStepThere, 6, read_write(x.x));  // waits for the task before it, but sees none of its data
  rt->submit(kStepThere, 6, read_write(x.x));
  EXPECT_THAT(thrown_by<DeviceError>([&] { rt->wait(); }), HasSubstr("bit flip"));
  EXPECT_EQ(behind(*rt), 2U);
  rt->wait(x.x);
  EXPECT_EQ(x.value, 24);
}

TEST(FailingStretches, ATaskThatWouldGoElsewhereHasNoneBehindIt) {
  unsigned broken = 0;
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    Card card{.depth = 1, .in_order = true};
    card.at_end = [&](const DeviceTask& task) {
      if (task.task().accesses()[0].handle()->valid_on(0)) {  // the first run on the device
        ++broken;
        throw DeviceError(DeviceEffect::broken, "bit flip");
      }
    };
    auto rt = runtime_with({&card}, {}, with_stretch(16), 1, nullptr, seed);
    Chain chain(*rt);
    for (int i = 0; i < 12; ++i) rt->submit(kStep, i % 5, read_write(chain.x));
    rt->wait(chain.x);
    EXPECT_EQ(chain.value, after_steps(12)) << "seed " << seed;
  }
  EXPECT_GT(broken, 0U);
}

TEST(FailingStretches, ATaskThatIsRefusedGoesElsewhereAfterTheOneBeforeIt) {
  std::uint64_t behind_others = 0;
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    Card card{.depth = 1, .in_order = true};
    card.at_launch = [&](const DeviceTask&) {
      if (card.launches % 5 == 4) throw DeviceError(DeviceEffect::refused, "queue full");
    };
    auto rt = runtime_with({&card}, {}, with_stretch(16), 1, nullptr, seed);
    Chain chain(*rt);
    for (int i = 0; i < 40; ++i) rt->submit(kStep, i % 5, read_write(chain.x));
    rt->wait(chain.x);
    EXPECT_EQ(chain.value, after_steps(40)) << "seed " << seed;
    behind_others += behind(*rt);
  }
  EXPECT_GT(behind_others, 0U);
}

TEST(FailingStretches, OfALostDeviceFailWithItsName) {
  for (const int at : {1, 3}) {
    Card card{.depth = 2, .in_order = true};
    int ends = 0;
    card.at_end = [&](const DeviceTask&) {
      if (++ends == at) throw DeviceError(DeviceEffect::lost, "fell off the bus");
    };
    auto rt = runtime_with({&card}, {}, with_stretch(16));
    Chain chain(*rt);
    for (int i = 0; i < 10; ++i) rt->submit(kStepThere, i, read_write(chain.x));
    EXPECT_THAT(thrown_by<DeviceError>([&] { rt->wait(); }),
                AllOf(HasSubstr("'step'"), HasSubstr("on card"), HasSubstr("fell off the bus")));
    EXPECT_EQ(card.launches, at == 1 ? 2U : 10U)
        << "one is posted behind a task as long as nobody knows how long they take";
  }
}

TEST(FailingStretches, OfADeviceThatIsLostAtALaunchLetOthersGoOn) {
  Card card{.depth = 1, .in_order = true};
  card.at_launch = [&](const DeviceTask&) {
    if (card.launches == 2) throw DeviceError(DeviceEffect::lost, "fell off the bus");
  };
  auto rt = runtime_with({&card}, {}, with_stretch(16), 1);
  Chain x(*rt), y(*rt);
  rt->submit(kMove, read(x.x), write(y.x));
  rt->submit(kStepThere, 1, read_write(y.x));  // lost when it is posted behind the first task
  // Waits for the first task, and sees none of its data.
  rt->submit(Codelet("set", [](double& v) { v = 5; }), read_write(x.x));
  EXPECT_THAT(thrown_by<DeviceError>([&] { rt->wait(); }), HasSubstr("fell off the bus"));
  EXPECT_EQ(behind(*rt), 1U);
  rt->wait(x.x);
  EXPECT_EQ(x.value, 5);
}

// --- memory and ends

TEST(Stretches, KeepToBudgets) {
  for (const unsigned fit : {2U, 3U, 5U}) {
    MemoryUse use;
    Card card{.depth = 2, .in_order = true};
    const std::size_t budget = fit * sizeof(double);
    auto rt = runtime_with({&card}, {.budget = budget, .use = &use}, with_stretch(16));
    std::vector<std::unique_ptr<Chain>> data;
    for (int i = 0; i < 12; ++i) data.push_back(std::make_unique<Chain>(*rt));
    for (int round = 0; round < 4; ++round)
      for (int i = 0; i + 1 < 12; ++i) rt->submit(kMove, read(data[i]->x), write(data[i + 1]->x));
    rt->wait(data[11]->x);
    EXPECT_EQ(data[11]->value, 11);
    EXPECT_LE(use.most_bytes, budget);
    EXPECT_TRUE(behind(*rt) > 0 || fit < 5);
  }
}

TEST(Stretches, EndWhereTheFlowIsCancelled) {
  for (const int at : {1, 7, 20}) {
    Card card{.depth = 1, .in_order = true, .way_ns = 2'000};
    runtime::CoreOptions options = with_stretch(4);
    options.begin_ahead_ns = 0;
    auto rt = runtime_with({&card}, {}, options);
    Chain chain(*rt);
    int calls = 0;
    const auto kernel = Codelet("k", [](int, double&) {}).also(DeviceKind::user, [&](int number, double& v) {
      if (++calls == at) rt->cancel();
      step(number, v);
    }).can_run(on_device);
    for (int i = 0; i < 40; ++i) rt->submit(kernel, i % 5, read_write(chain.x));
    rt->wait();
    EXPECT_EQ(calls, at);
    EXPECT_GE(behind(*rt), static_cast<std::uint64_t>(at - 1));
    rt->wait(chain.x);
    EXPECT_EQ(chain.value, after_steps(calls));
  }
}

TEST(Stretches, EndBeforeAPause) {
  Card card{.depth = 1, .in_order = true};
  auto rt = runtime_with({&card}, {}, with_stretch(8));
  Chain chain(*rt);
  for (int i = 0; i < 60; ++i) rt->submit(kStepThere, i % 5, read_write(chain.x));
  rt->resources().loop->step_some(20);
  rt->pause();
  EXPECT_EQ(card.in_flight, 0U);
  const unsigned launches = card.launches;
  EXPECT_LT(launches, 60U);
  rt->resume();
  rt->wait(chain.x);
  EXPECT_EQ(chain.value, after_steps(60));
}

}  // namespace
}  // namespace tandem::stretch_test
