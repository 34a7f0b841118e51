// tests/verdict/verdict_runs_test.cpp: runs with a fault that was put into them: the verdict names it first. Clean runs
// are not accused.
//
// Kernels take modelled times, and jobs run in manual time, over a network with a latency and a rate: nothing depends
// on this machine. One run has real workers, since a model of times does not know which worker asks.
#include <stdlib.h>

#include <array>
#include <atomic>
#include <deque>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../dist_flow/deterministic_job.hpp"
#include "tandem/analysis/verdict/verdict.hpp"
#include "tandem/tandem.hpp"
#include "tandem/trace.hpp"
#include "tandem/trace/read/reader.hpp"

namespace tandem::analysis::verdict_runs_test {
namespace {

using dist_test::DeterministicJob;
using dist_test::JobSetup;
using runtime::EmulatedTask;
using testing::IsEmpty;

constexpr std::int64_t kMs = 1'000'000;

struct Folder {
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "verdict_XXXXXX").string();
    path = ::mkdtemp(name.data());
  }
  ~Folder() { std::filesystem::remove_all(path); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::filesystem::path path;
};

/// What a verdict says, for messages: a key and a share of the makespan for each finding.
struct Judged {
  std::vector<Finding> findings;
  std::string first;  ///< key; empty: none
  std::string text;
};

Judged judge(const std::filesystem::path& folder) {
  auto run = trace::TraceReader::open(folder);
  EXPECT_TRUE(run.ok()) << (run.ok() ? "" : run.error().message);
  if (!run.ok()) return {};
  const auto history = History::read(*run.value());
  EXPECT_TRUE(history.ok());
  if (!history.ok()) return {};
  const Summary summary(*history.value());
  Judged judged{.findings = verdict(*history.value(), summary), .first = {}, .text = {}};
  if (!judged.findings.empty()) judged.first = judged.findings.front().key;
  judged.text = "makespan " + std::to_string(summary.split.makespan_ns / 1000) + " us, " +
                std::to_string(history.value()->tasks.size()) + " tasks\n";
  for (const Finding& finding : judged.findings)
    judged.text +=
        std::string(finding.key) + " " + std::to_string(finding.lost_ns / 1000) + " us: " + finding.what + "\n";
  return judged;
}

/// One rank with real workers. `memory`: the budget of main memory.
Judged real(unsigned workers, const runtime::Emulation& emulation, const std::function<void(Runtime&)>& program,
            const std::string& memory = "0") {
  const Folder folder;
  {
    Runtime rt(Options{.workers = workers,
                       .more = {{"trace", "all"},
                                {"trace.folder", (folder.path / "run").string()},
                                {"trace.live", folder.path.string()},
                                {"bind", "false"},
                                {"ranks", "alone"},
                                {"memory", memory},
                                {"spill", folder.path.string()}},
                       .emulation = emulation});
    program(rt);
    rt.wait();
  }
  return judge(folder.path / "run");
}

using Program = std::function<void(Runtime&, DeterministicJob&)>;

/// In manual time.
Judged job(JobSetup setup, const runtime::Emulation& emulation, const Program& program, std::uint64_t seed = 1) {
  const Folder folder;
  setup.core.emulation = emulation;
  setup.caller = false;  // its tasks end late: the program's thread is given its turns at random
  if (setup.network.bytes_per_ns == 0) setup.network.bytes_per_ns = 1;
  if (setup.network.latency_max_ns == 0) setup.network.latency_min_ns = setup.network.latency_max_ns = 2'000;
  const auto outcome = DeterministicJob(seed).run(setup, [&](Runtime& rt, DeterministicJob& mine) {
    rt.trace().start("all", folder.path / "run");
    rt.wait();
    program(rt, mine);
    rt.wait();
    rt.trace().stop();
  });
  EXPECT_FALSE(outcome.stuck) << outcome.why;
  for (const auto& ending : outcome.endings) EXPECT_EQ(ending.error, "");
  return judge(folder.path / "run");
}

runtime::Emulation all_take(std::int64_t ns) {
  return [ns](const EmulatedTask&) { return ns; };
}

const Codelet work("work", [](double&) {});
const Codelet use("use", [](std::span<const double>, double&) {});
const Codelet make("make", [](std::span<double>) {});

/// Data with values: numbers, or vectors of `length` of them.
class Values {
 public:
  Values(Runtime& rt, std::size_t count, const std::function<std::uint32_t(std::size_t)>& owner = {}) : memory_(count) {
    for (std::size_t i = 0; i < count; ++i) {
      if (rt.size() > 1) data_.push_back(rt.data("x", memory_[i], {.owner = owner(i)}));
      else data_.push_back(rt.data("x", memory_[i]));
    }
  }
  auto begin() const { return data_.begin(); }
  auto end() const { return data_.end(); }

 private:
  std::vector<double> memory_;
  std::vector<Data<double>> data_;
};

/// A vector that rank 0 owns.
class Shared {
 public:
  Shared(Runtime& rt, std::size_t length)
      : memory_(length), data(rt.size() > 1 ? rt.data("shared", memory_, {.owner = 0}) : rt.data("shared", memory_)) {}
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;

 private:
  std::vector<double> memory_;

 public:
  Data<Vector<double>> data;
};

// --- faults

TEST(PlantedFault, ASlowCore) {
  // The worker that begins first is the slow one, unless it is this thread, which submits.
  const std::thread::id caller = std::this_thread::get_id();
  std::atomic<std::thread::id> slow{std::thread::id()};
  const auto emulation = [&, caller](const EmulatedTask&) {
    const std::thread::id self = std::this_thread::get_id();
    std::thread::id none;
    if (self != caller) slow.compare_exchange_strong(none, self);
    return slow.load() == self ? 30 * kMs : 10 * kMs;
  };
  const Judged judged = real(4, emulation, [](Runtime& rt) {
    const Values data(rt, 120);
    for (const auto& x : data) rt.submit(work, write(x));
  });
  EXPECT_EQ(judged.first, "slow_worker") << judged.text;
}

/// Named, but not always first: workers and file are real, and what else a run costs depends on the machine and its
/// load.
TEST(PlantedFault, ASmallBudgetOfMemory) {
  constexpr std::size_t count = 48, words = 1 << 17;  // of 1 MiB
  const auto program = [](Runtime& rt) {
    std::vector<Data<Vector<double>>> data;
    for (std::size_t i = 0; i < count; ++i) data.push_back(rt.vector<double>("v", words));
    for (const auto& one : data) rt.submit(make, write(one));
    // One task after the other, each with data that was used long ago: else those whose data is there would come first.
    double last = 0;
    const auto turn = rt.data("turn", last);
    for (std::size_t i = 0; i < 4 * count; ++i) rt.submit(use, read(data[i * 29 % count]), read_write(turn));
    rt.wait();
  };
  const auto is_named = [](const Judged& judged) { return judged.text.find("memory_budget") != std::string::npos; };
  const Judged small = real(2, all_take(50'000), program, "6MiB"), large = real(2, all_take(50'000), program);
  EXPECT_TRUE(is_named(small)) << small.text;
  EXPECT_FALSE(is_named(large)) << large.text;
}

TEST(PlantedFault, ALateLink) {
  JobSetup setup{.ranks = 3, .workers = 2};
  setup.network.latency_min_ns = setup.network.latency_max_ns = 3 * kMs;
  const Judged judged = job(setup, all_take(kMs), [](Runtime& rt, DeterministicJob&) {
    const Shared x(rt, 1000);
    const Values y(rt, 6, [](std::size_t i) { return static_cast<std::uint32_t>(i % 3); });
    for (int step = 0; step < 20; ++step) {
      rt.submit(make, read_write(x.data));
      for (const auto& one : y) rt.submit(use, read(x.data), read_write(one));
    }
  });
  EXPECT_EQ(judged.first, "communication") << judged.text;
}

TEST(PlantedFault, APriorityInverted) {
  // A chain of tasks is needed last of all by the order of the queue, and first by the graph.
  const Judged judged = job({.ranks = 1, .workers = 4, .sched = "prio"}, all_take(2 * kMs), [](Runtime& rt,
                                                                                               DeterministicJob&) {
    const Values data(rt, 120);
    const Values chain(rt, 1);
    for (const auto& x : data) rt.submit({.priority = 10}, work, write(x));
    for (int i = 0; i < 40; ++i) rt.submit({.priority = -10}, work, read_write(*chain.begin()));
  });
  EXPECT_EQ(judged.first, "order_of_tasks") << judged.text;
}

TEST(PlantedFault, SubmissionTooSlow) {
  const Judged judged = job({.ranks = 1, .workers = 4, .sched = "prio"}, all_take(2 * kMs), [](Runtime& rt,
                                                                                               DeterministicJob& mine) {
    const Values data(rt, 60);
    for (const auto& x : data) {
      // The program thinks for 3 ms.
      const std::int64_t until_ns = mine.loop().now_ns() + 3 * kMs;
      mine.loop().at(until_ns, [] {});
      while (mine.loop().now_ns() < until_ns) mine.maybe_yield();
      rt.submit(work, write(x));
    }
  });
  EXPECT_THAT(judged.first, testing::AnyOf("slow_submission", "program")) << judged.text;
}

TEST(PlantedFault, ABadDistribution) {
  const Judged judged = job({.ranks = 4, .workers = 2}, all_take(kMs), [](Runtime& rt, DeterministicJob&) {
    const Values data(rt, 200, [](std::size_t i) { return i % 20 == 0 ? static_cast<std::uint32_t>(i / 20 % 4) : 0; });
    for (const auto& x : data) rt.submit(work, read_write(x));
  });
  EXPECT_EQ(judged.first, "imbalance") << judged.text;
}

TEST(PlantedFault, TooFewTasks) {
  const Judged judged = job({.ranks = 1, .workers = 8}, all_take(50 * kMs), [](Runtime& rt, DeterministicJob&) {
    const Values data(rt, 3);
    for (const auto& x : data) rt.submit(work, read_write(x));
  });
  EXPECT_EQ(judged.first, "few_tasks") << judged.text;
}

TEST(PlantedFault, ASerialPhase) {
  const auto emulation = [](const EmulatedTask& task) { return task.codelet == "make" ? 200 * kMs : 2 * kMs; };
  const Judged judged = job({.ranks = 1, .workers = 4}, emulation, [](Runtime& rt, DeterministicJob&) {
    const Shared x(rt, 10);
    const Values data(rt, 200);
    rt.submit(make, read_write(x.data));
    for (const auto& one : data) rt.submit(use, read(x.data), read_write(one));
  });
  EXPECT_EQ(judged.first, "serial_phase") << judged.text;
  EXPECT_THAT(judged.text, testing::HasSubstr("'make'"));
}

void share_with_all(Runtime& rt, DeterministicJob&) {
  const Shared x(rt, 100'000);
  const Values y(rt, rt.size(), [](std::size_t i) { return static_cast<std::uint32_t>(i); });
  for (int step = 0; step < 10; ++step) {
    rt.submit(make, read_write(x.data));
    for (const auto& one : y) rt.submit(use, read(x.data), read_write(one));
  }
}

TEST(PlantedFault, ABroadcastSwitchedOff) {
  JobSetup setup{.ranks = 8};
  setup.flow.transfers.broadcasts = false;
  const Judged judged = job(setup, all_take(kMs), share_with_all);
  EXPECT_EQ(judged.first, "no_broadcasts") << judged.text;
}

TEST(PlantedFault, TooLittleMemoryForCopies) {
  JobSetup setup{.ranks = 2, .workers = 2};
  setup.flow.copy_bytes = 900'000;  // of the eight that are read again and again, one
  const Judged judged = job(setup, all_take(kMs / 2), [](Runtime& rt, DeterministicJob&) {
    std::deque<Shared> inputs;
    for (int i = 0; i < 8; ++i) inputs.emplace_back(rt, 100'000);
    const Values y(rt, 2, [](std::size_t) { return 1U; });
    const Values others(rt, 10, [](std::size_t) { return 0U; });  // so that rank 0 has as much to do
    for (int round = 0; round < 10; ++round)
      for (const auto& x : inputs) {
        for (const auto& one : y) rt.submit(use, read(x.data), read_write(one));
        for (const auto& one : others) rt.submit(work, read_write(one));
      }
  });
  EXPECT_EQ(judged.first, "copies_dropped") << judged.text;
}

TEST(PlantedFault, AChain) {
  const Judged judged = job({.ranks = 1, .workers = 4}, all_take(3 * kMs), [](Runtime& rt, DeterministicJob&) {
    const Values chain(rt, 1);
    const Values data(rt, 40);
    for (const auto& x : data) {
      rt.submit({.priority = 10}, work, read_write(*chain.begin()));
      rt.submit(work, write(x));
    }
  });
  EXPECT_EQ(judged.first, "long_chain") << judged.text;
}

TEST(PlantedFault, SomeSlowTasks) {
  std::atomic<int> count{0};
  const auto emulation = [&](const EmulatedTask&) { return count.fetch_add(1) % 10 == 0 ? 20 * kMs : 2 * kMs; };
  const Judged judged = job({.ranks = 1, .workers = 4}, emulation, [](Runtime& rt, DeterministicJob&) {
    const Values data(rt, 200);
    for (const auto& x : data) rt.submit(work, write(x));
  });
  EXPECT_EQ(judged.first, "slow_executions") << judged.text;
}

TEST(PlantedFault, PollingNeighbours) {
  // A kernel takes twice as long while idle workers poll, and they poll for long.
  constexpr std::int64_t chain_of = 20;
  bool some_poll = false;
  const auto emulation = [&](const EmulatedTask&) { return some_poll ? 2 * kMs : kMs; };
  JobSetup setup{.ranks = 1, .workers = 8};
  setup.core.poll_for_ns = 1'000 * kMs;
  setup.core.poll_max_ns = kMs / 10;
  const Judged judged = job(setup, emulation, [&](Runtime& rt, DeterministicJob&) {
    const auto chains = [&](std::size_t count) {
      some_poll = count < 8;
      const Values data(rt, count);
      for (std::int64_t step = 0; step < chain_of; ++step)
        for (const auto& x : data) rt.submit(work, read_write(x));
      rt.wait();
    };
    chains(8);
    chains(7);
    chains(7);
  });
  EXPECT_EQ(judged.first, "polling_neighbours") << judged.text;
}

/// Ranks that compute all the time, and a vector that travels for 8 ms, ten times. `slow_ns`: what their kernels take
/// meanwhile instead of 1 ms.
Judged beside_messages(std::int64_t slow_ns) {
  constexpr std::size_t words = 1'000'000;
  DeterministicJob* the_job = nullptr;
  std::int64_t from_ns = 0, until_ns = 0;  // a message is under way
  const auto emulation = [&](const EmulatedTask& task) {
    const std::int64_t now_ns = the_job->loop().now_ns();
    if (task.codelet == "make") {
      from_ns = now_ns + 10 * kMs;
      until_ns = from_ns + 8 * kMs;
      return 10 * kMs;
    }
    return now_ns >= from_ns && now_ns + kMs <= until_ns ? slow_ns : kMs;
  };
  return job({.ranks = 2, .workers = 2}, emulation, [&](Runtime& rt, DeterministicJob& mine) {
    the_job = &mine;
    const Shared x(rt, words);
    const Values y(rt, 1, [](std::size_t) { return 1U; });
    const Values data(rt, 24, [](std::size_t i) { return static_cast<std::uint32_t>(i % 2); });
    for (int round = 0; round < 10; ++round) {
      rt.submit({.priority = 5}, make, read_write(x.data));
      for (const auto& one : y) rt.submit({.priority = 5}, use, read(x.data), read_write(one));
    }
    for (int step = 0; step < 20; ++step)
      for (const auto& one : data) rt.submit(work, read_write(one));
  });
}

TEST(PlantedFault, MemoryContention) {
  const Judged judged = beside_messages(kMs * 16 / 10), clean = beside_messages(kMs);
  EXPECT_EQ(judged.first, "contention") << judged.text;
  EXPECT_THAT(clean.text, testing::Not(testing::HasSubstr("contention"))) << clean.text;
}

// --- clean runs

TEST(CleanRun, IndependentTasks) {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    // Independent tasks whose number is a multiple of the workers, of slightly different lengths.
    const Judged judged = job({.ranks = static_cast<std::uint32_t>(seed), .workers = 2},
                              [](const EmulatedTask&) { return kMs; }, [](Runtime& rt, DeterministicJob&) {
      const Values data(rt, 2000 * rt.size(), [&](std::size_t i) { return static_cast<std::uint32_t>(i % rt.size()); });
      for (const auto& x : data) rt.submit(work, read_write(x));
    }, seed);
    EXPECT_THAT(judged.findings, IsEmpty()) << "seed " << seed << '\n' << judged.text;
  }
}

TEST(CleanRun, ManyChains) {
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    const Judged judged = job(
        {.ranks = 2, .workers = static_cast<unsigned>(seed)}, all_take(kMs),
        [](Runtime& rt, DeterministicJob&) {
          const Values data(rt, 24, [](std::size_t i) { return static_cast<std::uint32_t>(i % 2); });
          for (int round = 0; round < 40; ++round)
            for (const auto& x : data) rt.submit(work, read_write(x));
        },
        seed);
    EXPECT_THAT(judged.findings, IsEmpty()) << "seed " << seed << '\n' << judged.text;
  }
}

TEST(CleanRun, HarmlessPolling) {
  JobSetup setup{.ranks = 1, .workers = 64};
  setup.core.poll_for_ns = 1'000 * kMs;
  setup.core.poll_max_ns = kMs / 10;
  const Judged judged = job(setup, all_take(kMs), [](Runtime& rt, DeterministicJob&) {
    for (const std::size_t count : {64U, 63U, 63U}) {
      const Values data(rt, count);
      for (int step = 0; step < 20; ++step)
        for (const auto& x : data) rt.submit(work, read_write(x));
      rt.wait();
    }
  });
  EXPECT_THAT(judged.findings, IsEmpty()) << judged.text;
}

TEST(CleanRun, MessagesBehindWork) {
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    const auto emulation = [](const EmulatedTask& task) { return task.codelet == "make" ? kMs / 100 : kMs; };
    const Judged judged = job({.ranks = 3, .workers = 2}, emulation, [](Runtime& rt, DeterministicJob&) {
      const Shared x(rt, 10'000);
      const Values data(rt, 33, [](std::size_t i) { return static_cast<std::uint32_t>(i % 3); });
      const Values y(rt, 3, [](std::size_t i) { return static_cast<std::uint32_t>(i); });
      for (int round = 0; round < 30; ++round) {
        rt.submit({.priority = 5}, make, read_write(x.data));
        for (const auto& one : data) rt.submit(work, read_write(one));
        for (const auto& one : y) rt.submit(use, read(x.data), read_write(one));
      }
    }, seed);
    EXPECT_THAT(judged.findings, IsEmpty()) << "seed " << seed << '\n' << judged.text;
  }
}

}  // namespace
}  // namespace tandem::analysis::verdict_runs_test
