// tandem/api/recorded_schedule_test.cpp: runs that follow the schedule of an earlier one.
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/api/test_support.hpp"
#include "tandem/runtime/exec/recorded_order.hpp"

namespace tandem::recorded_schedule_test {
namespace {

using runtime::RecordedSchedule;
using test::loop_runtime;
using test::thrown_by;
using testing::AllOf;
using testing::HasSubstr;
using Choices = std::vector<RecordedSchedule::Choice>;

constexpr unsigned worker_count = 3;

runtime::CoreOptions following(const Choices& choices) {
  runtime::CoreOptions options;
  options.watchdog_throws = true;
  options.schedule = std::make_shared<RecordedSchedule>(RecordedSchedule{choices, worker_count});
  return options;
}

/// A file of this process, gone at its end.
class ScheduleFile {
 public:
  ScheduleFile() : name_(testing::TempDir() + "schedule_" + std::to_string(::getpid())) {}
  ~ScheduleFile() { std::filesystem::remove(name_); }
  ScheduleFile(const ScheduleFile&) = delete;
  ScheduleFile& operator=(const ScheduleFile&) = delete;
  const std::string& name() const noexcept { return name_; }
  void write(unsigned workers, const Choices& choices) const {
    std::ofstream out(name_);
    out << "tandem schedule 1\nrank 0 workers " << workers << "\n";
    for (const auto& choice : choices) out << choice.task << " " << choice.worker << "\n";
  }

 private:
  std::string name_;
};

/// Tasks `first` and following, in a drawn order, each on a drawn worker.
Choices drawn(std::uint64_t first, std::size_t count, std::mt19937& random) {
  Choices choices;
  for (std::size_t i = 0; i < count; ++i)
    choices.push_back({first + i, static_cast<std::uint32_t>(random() % worker_count)});
  std::ranges::shuffle(choices, random);
  return choices;
}

TEST(RecordedOrder, CommutingTasksTakeTheirTurnsInIt) {
  for (unsigned seed = 1; seed <= 50; ++seed) {
    std::mt19937 random(seed);
    const Choices choices = drawn(1, 8, random);
    auto rt = loop_runtime({.seed = seed, .workers = worker_count}, following(choices));
    std::string text, other;
    const auto x = rt->object("x", text), y = rt->object("y", other);
    for (int i = 1; i <= 8; ++i)
      rt->submit("append", [i](std::string& first, std::string& second) {
        first += std::to_string(i);
        second += std::to_string(i);
      }, commute(x), commute(y));
    rt->wait();
    std::string expected;
    for (const auto& choice : choices) expected += std::to_string(choice.task);
    EXPECT_EQ(text, expected) << seed;
    EXPECT_EQ(other, expected) << seed;
  }
}

/// Each task begins behind those of its worker that come before it, on threads and with tasks that follow others.
TEST(RecordedOrder, HoldsOnThreads) {
  const ScheduleFile file;
  for (unsigned seed = 1; seed <= 20; ++seed) {
    std::mt19937 random(seed);
    constexpr int count = 60, chains = 12;
    // Tasks of a chain follow each other, so the order within a chain is kept.
    Choices choices = drawn(1, count, random);
    std::map<std::uint64_t, std::vector<std::uint64_t>> by_chain;
    for (std::uint64_t task = 1; task <= count; ++task) by_chain[task % chains].push_back(task);
    std::map<std::uint64_t, std::size_t> next;
    for (auto& choice : choices) choice.task = by_chain[choice.task % chains][next[choice.task % chains]++];
    file.write(worker_count, choices);
    Options options{.workers = worker_count};
    options.sched = "plan";  // gives way
    options.more = {{"sched.recorded", file.name()}, {"ranks", "alone"}, {"bind", "false"}};
    Runtime rt(options);
    std::mutex mutex;
    std::vector<std::uint64_t> begun;
    std::map<std::uint64_t, std::thread::id> threads;
    std::vector<double> values(chains);
    std::vector<Data<double>> data;
    for (double& value : values) data.push_back(rt.data("x", value));
    for (std::uint64_t task = 1; task <= count; ++task)
      rt.submit("note", [&, task](double&) {
        const std::lock_guard guard(mutex);
        begun.push_back(task);
        threads[task] = std::this_thread::get_id();
      }, read_write(data[task % chains]));
    rt.wait();
    ASSERT_EQ(begun.size(), count);
    for (unsigned worker = 0; worker < worker_count; ++worker) {
      std::vector<std::uint64_t> there;
      for (const auto& choice : choices)
        if (choice.worker == worker) there.push_back(choice.task);
      for (const std::uint64_t task : there) EXPECT_EQ(threads[task], threads[there.front()]) << seed;
      std::vector<std::uint64_t> seen;
      for (const std::uint64_t task : begun)
        if (std::ranges::count(there, task) > 0) seen.push_back(task);
      EXPECT_EQ(seen, there) << seed;
    }
  }
}

TEST(RecordedOrder, SaysWhichTaskDoesNotCome) {
  auto rt = loop_runtime({.workers = worker_count}, following({{99, 0}, {1, 1}}));
  double value = 0;
  const auto x = rt->data("x", value);
  rt->submit("k", [](double& to) { to = 1; }, write(x));
  EXPECT_THAT(thrown_by<StuckError>([&] { rt->wait(); }), AllOf(HasSubstr("task 99"), HasSubstr("sched.recorded")));
  for (int task = 2; task <= 99; ++task) rt->submit("other", [] {});
  rt->wait();  // since it comes after all
  EXPECT_EQ(value, 1);
}

TEST(RecordedOrder, RefusesTheScheduleOfOtherWorkers) {
  const ScheduleFile file;
  file.write(5, {});
  const auto start = [&](const std::string& name) {
    Options options{.workers = 2};
    options.more = {{"sched.recorded", name}, {"ranks", "alone"}, {"bind", "false"}};
    Runtime rt(options);
  };
  EXPECT_THAT(thrown_by<StartError>([&] { start(file.name()); }), HasSubstr("5 workers there, and 2 here"));
  EXPECT_THAT(thrown_by<StartError>([&] { start("/nowhere/schedule"); }), HasSubstr("option sched.recorded"));
}

}  // namespace
}  // namespace tandem::recorded_schedule_test
