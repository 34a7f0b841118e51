// tests/dist_flow/deterministic_job.cpp: who runs next, and the driver of each rank.
#include "deterministic_job.hpp"

#include <algorithm>
#include <utility>

#include "tandem/api/test_support.hpp"
#include "tandem/api/world.hpp"
#include "tandem/clock/clock.hpp"
#include "tandem/comm/endpoint.hpp"
#include "tandem/dist/flow.hpp"
#include "tandem/runtime/runtime_core.hpp"
#include "tandem/trace/session.hpp"

namespace tandem::dist_test {

/// One rank's program, and whether it can run.
struct DeterministicJob::Rank {
  explicit Rank(std::function<void()> program) : fiber(std::move(program)) {}

  sim::Fiber fiber;
  bool resting = false;  ///< it waits until `woken`
  bool woken = false;
  Runtime* runtime = nullptr;  ///< while its program runs

  bool can_run() const noexcept { return !fiber.has_ended() && (!resting || woken); }
};

class DeterministicJob::RankClock final : public clock::Clock {
 public:
  explicit RankClock(base::EventLoop& loop) : loop_(loop) {}
  std::int64_t now_ns() const noexcept override { return loop_.now_ns(); }

 private:
  base::EventLoop& loop_;
};

/// Puts a rank's workers on the common loop; its caller steps on the program's fiber.
class DeterministicJob::RankDriver final : public base::Driver {
 public:
  RankDriver(DeterministicJob& job, Rank& self) : job_(job), self_(self), waker_(self) {}
  ~RankDriver() override { stop(); }

  base::Waker& add(base::Steppable& steppable, const Placement& placement) override {
    added_.push_back(&steppable);
    return job_.loop_.add(steppable, placement);
  }
  base::Waker& add_caller(base::Steppable& steppable) override {
    caller_ = &steppable;
    return waker_;
  }
  void stop() override {
    for (base::Steppable* steppable : std::exchange(added_, {})) job_.loop_.remove(*steppable);
  }
  base::RunEnd run_until(bool (*done)(void*), void* context, std::int64_t deadline_ns) override {
    while (!done(context)) {
      const std::int64_t now = job_.loop_.now_ns();
      if (now >= deadline_ns) return base::RunEnd::timed_out;
      self_.woken = false;
      // A wait that looks again soon is stepped then; watchdogs would step for ever where nothing goes on.
      constexpr std::int64_t soon_ns = 1'000'000;
      const std::int64_t next = std::min(caller_->step(now), deadline_ns - now <= soon_ns ? deadline_ns : base::kNever);
      if (done(context)) break;
      if (next > now) {
        if (next < base::kNever) job_.loop_.at(next, [&self = self_] { self.woken = true; });
        self_.resting = true;
      }
      sim::Fiber::yield();
      self_.resting = false;
    }
    return base::RunEnd::done;
  }
  std::int64_t now_ns() override { return job_.loop_.now_ns(); }

 private:
  struct RankWaker final : base::Waker {
    explicit RankWaker(Rank& rank) : of(rank) {}
    void wake() noexcept override { of.woken = true; }
    Rank& of;
  };

  DeterministicJob& job_;
  Rank& self_;
  RankWaker waker_;
  base::Steppable* caller_ = nullptr;
  std::vector<base::Steppable*> added_;
};

DeterministicJob::DeterministicJob(std::uint64_t seed) : loop_(seed) {}
DeterministicJob::~DeterministicJob() = default;

/// Adds a rank, whose program runs when it is resumed.
void DeterministicJob::start(std::uint32_t rank, const JobSetup& setup,
                             const std::function<void(Runtime&, DeterministicJob&)>& program, Ending& ending) {
  ranks_.push_back(std::make_unique<Rank>([this, rank, &setup, &program, &ending] {
    Rank& self = *ranks_[rank];
    try {
      auto resources = test::test_resources();
      TestWorldOptions world_options;
      world_options.workers = setup.workers;
      world_options.sched = setup.sched;
      world_options.main_bytes = setup.main_bytes;
      world_options.devices = setup.devices;
      world_options.device_bytes = setup.device_bytes;
      world_options.device_messages = setup.device_messages;
      world_options.loop = &loop_;
      if (setup.adjust) setup.adjust(rank, world_options);
      auto world = make_test_world(world_options, *resources);
      resources->clock = std::make_unique<RankClock>(loop_);
      world.clock = resources->clock.get();
      world.caller_works = setup.caller;
      world.driver = std::make_unique<RankDriver>(*this, self);
      auto endpoint = comm::Endpoint::open_loop(*network_, comm::Rank(rank), {}, *resources->log, &loop_);
      runtime::CoreOptions core = setup.core;
      if (!setup.memories.empty()) core.modelled_memory = setup.memories[rank];
      Runtime rt(std::move(resources), std::move(world), core, std::move(endpoint), setup.flow);
      const struct Shown {
        Rank& of;
        ~Shown() { of.runtime = nullptr; }
      } shown{self};
      self.runtime = &rt;
      program(rt, *this);
    } catch (const std::exception& error) {
      ending.error = error.what();
    }
  }));
}

DeterministicJob::Outcome DeterministicJob::run(const JobSetup& setup,
                                                const std::function<void(Runtime&, DeterministicJob&)>& program) {
  comm::LoopOptions network_options = setup.network;
  network_options.ranks = setup.ranks;
  network_ = std::make_unique<comm::LoopNetwork>(network_options, &loop_);
  Outcome outcome;
  outcome.endings.resize(setup.ranks);
  for (std::uint32_t rank = 0; rank < setup.ranks; ++rank) start(rank, setup, program, outcome.endings[rank]);

  std::vector<Rank*> ready;
  while (true) {
    ready.clear();
    bool all_ended = true;
    for (const auto& rank : ranks_) {
      all_ended &= rank->fiber.has_ended();
      if (rank->can_run()) ready.push_back(rank.get());
    }
    if (all_ended) break;
    if (!ready.empty() && loop_.random() % 3 == 0) {
      ready[loop_.random() % ready.size()]->fiber.resume();
      continue;
    }
    struct Steps {
      DeterministicJob& job;
      bool may_pause;
      unsigned left;
    } steps{*this, !ready.empty(), static_cast<unsigned>(loop_.random() % 8)};
    // Until a program can run, and for some steps beyond.
    const base::RunEnd end = loop_.run_until(
        [](void* context) {
          auto& now = *static_cast<Steps*>(context);
          if (now.left > 0) --now.left;
          if (now.left > 0) return false;
          for (const auto& rank : now.job.ranks_)
            if (rank->can_run()) return true;
          return false;
        },
        &steps, base::kNever);
    if (end == base::RunEnd::stuck && ready.empty()) {
      bool anybody = false;
      for (const auto& rank : ranks_) anybody |= rank->can_run();
      if (anybody) continue;
      for (const Ending& ending : outcome.endings) outcome.why += ending.error + "\n";
      for (const auto& rank : ranks_)
        if (rank->runtime != nullptr)
          outcome.why += rank->runtime->core().loop().explain_stuck() + rank->runtime->flow()->endpoint().describe();
      outcome.stuck = true;
      return outcome;  // the caller ends the process: the programs wait for ever
    }
    if (end == base::RunEnd::stuck) ready[loop_.random() % ready.size()]->fiber.resume();
  }
  return outcome;
}

Killer::Killer(Runtime& rt, DeterministicJob& job, std::int64_t after_ns) : target_(std::make_shared<Runtime*>(&rt)) {
  job.loop().at(job.loop().now_ns() + after_ns, [&job, target = target_] {
    if (*target == nullptr) return;
    job.network().kill(comm::Rank((*target)->rank()));
    (*target)->flow()->abort("killed");
    (*target)->flow()->endpoint().abandon();  // no rank receives its abort messages, and the sends would wait for that
  });
}

Killer::~Killer() { *target_ = nullptr; }

}  // namespace tandem::dist_test
