// tandem/sim/job.cpp: which program runs next, and the driver of each rank.
#include "tandem/sim/job.hpp"

#include <algorithm>
#include <utility>

#include "tandem/base/driver.hpp"

namespace tandem::sim {

namespace {

/// So often programs may go on at one time while the loop has nothing to do then.
constexpr unsigned kMostRounds = 10'000;

}  // namespace

/// One rank's program, and whether it can go on.
struct Job::Rank {
  explicit Rank(std::function<void()> program) : fiber(std::move(program)) {}

  Fiber fiber;
  bool rests = false;  ///< it waits until `woken`
  bool woken = false;
  bool is_listed = false;  ///< among `ready_`

  bool can_run() const noexcept { return !fiber.has_ended() && (!rests || woken); }
};

/// Puts a rank's workers on the common loop; its caller steps on the program's fiber.
class Job::RankDriver final : public base::Driver {
 public:
  RankDriver(Job& job, Rank& self) : job_(job), self_(self), waker_(job, self) {}
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
        if (next < base::kNever) job_.loop_.at(next, [&job = job_, &rank = self_] { job.wake(rank); });
        self_.rests = true;
      }
      Fiber::yield();
      self_.rests = false;
    }
    return base::RunEnd::done;
  }
  std::int64_t now_ns() override { return job_.loop_.now_ns(); }

 private:
  struct RankWaker final : base::Waker {
    RankWaker(Job& all, Rank& one) : job(all), rank(one) {}
    void wake() noexcept override { job.wake(rank); }
    Job& job;
    Rank& rank;
  };

  Job& job_;
  Rank& self_;
  RankWaker waker_;
  base::Steppable* caller_ = nullptr;
  std::vector<base::Steppable*> added_;
};

Job::Job(std::uint64_t seed) : loop_(seed) {}
Job::~Job() = default;

void Job::add(std::function<void()> program) { ranks_.push_back(std::make_unique<Rank>(std::move(program))); }

std::unique_ptr<base::Driver> Job::make_driver(std::uint32_t rank) {
  return std::make_unique<RankDriver>(*this, *ranks_[rank]);
}

void Job::sleep(std::uint32_t rank, std::int64_t ns) {
  Rank& self = *ranks_[rank];
  bool is_over = false;  // early wake-ups are for the wait behind this one
  loop_.at(loop_.now_ns() + ns, [this, &self, &is_over] {
    is_over = true;
    wake(self);
  });
  while (!is_over) {
    self.woken = false;
    self.rests = true;
    Fiber::yield();
  }
  self.rests = false;
}

void Job::wake(Rank& rank) {
  rank.woken = true;
  list(rank);
}

void Job::list(Rank& rank) {
  if (!std::exchange(rank.is_listed, true)) ready_.push_back(&rank);
}

bool Job::run(Turns turns) { return turns == Turns::prompt ? run_promptly() : run_as_drawn(); }

bool Job::run_promptly() {
  for (const auto& rank : ranks_) list(*rank);
  std::size_t running = ranks_.size();
  unsigned rounds = 0;  // in which programs went on, and the loop had nothing to do at this time
  while (running > 0) {
    for (std::size_t left = ready_.size(); left > 0; --left) {
      Rank& rank = *ready_.front();
      ready_.pop_front();
      rank.is_listed = false;
      if (!rank.can_run()) continue;
      rank.fiber.resume();
      if (rank.fiber.has_ended()) --running;
      else if (rank.can_run()) list(rank);
    }
    // A program that goes on without resting may wait for what the loop does, or for time to pass.
    if (!ready_.empty()) {
      rounds = loop_.step_one() ? 0 : rounds + 1;
      if (rounds < kMostRounds) continue;
      bool has_stepped = false;
      loop_.run_until([](void* stepped) { return std::exchange(*static_cast<bool*>(stepped), true); }, &has_stepped,
                      base::kNever);
    }
    rounds = 0;
    if (!ready_.empty()) continue;
    const auto end = loop_.run_until([](void* ready) { return !static_cast<std::deque<Rank*>*>(ready)->empty(); },
                                     &ready_, base::kNever);
    if (end == base::RunEnd::stuck && running > 0 && ready_.empty()) return false;
  }
  return true;
}

bool Job::run_as_drawn() {
  std::vector<Rank*> ready;
  const auto look = [&] {
    ready.clear();
    for (const auto& rank : ranks_)
      if (rank->can_run()) ready.push_back(rank.get());
    return !ready.empty();
  };
  const auto resume_one = [&] { ready[loop_.random() % ready.size()]->fiber.resume(); };
  while (true) {
    const bool some_can_run = look();
    if (std::ranges::all_of(ranks_, [](const auto& rank) { return rank->fiber.has_ended(); })) return true;
    if (some_can_run && loop_.random() % 3 == 0) {
      resume_one();
      continue;
    }
    struct Steps {
      Job& job;
      unsigned left;
    } steps{*this, static_cast<unsigned>(loop_.random() % 8)};
    // Until a program can run, and for some steps beyond.
    const base::RunEnd end = loop_.run_until(
        [](void* context) {
          auto& now = *static_cast<Steps*>(context);
          if (now.left > 0) --now.left;
          return now.left == 0 && std::ranges::any_of(now.job.ranks_, [](const auto& rank) { return rank->can_run(); });
        },
        &steps, base::kNever);
    if (end != base::RunEnd::stuck) continue;
    if (some_can_run) resume_one();
    else if (!look()) return false;
  }
}

}  // namespace tandem::sim
