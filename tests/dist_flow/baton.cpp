// tests/dist_flow/baton.cpp: turns of programs, and the driver of each rank.
#include "baton.hpp"

#include <utility>

namespace tandem::dist_test {

/// One rank's program.
struct BatonJob::Seat {
  std::thread thread;
  std::condition_variable turn;  ///< it has the baton
  bool ended = false;
  bool resting = false;  ///< it waits for a wake-up
  bool woken = false;
  Runtime* runtime = nullptr;  ///< while its program runs
};

class BatonJob::RankClock final : public clock::Clock {
 public:
  explicit RankClock(base::EventLoop& loop) : loop_(loop) {}
  std::int64_t now_ns() const noexcept override { return loop_.now_ns(); }

 private:
  base::EventLoop& loop_;
};

/// Puts a rank's workers on the common loop; its caller steps on the program's thread.
class BatonJob::RankDriver final : public base::Driver {
 public:
  RankDriver(BatonJob& job, Seat& seat) : job_(job), seat_(seat), waker_(seat) {}
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
      seat_.woken = false;
      const std::int64_t next = caller_->step(now);
      if (done(context)) break;
      if (next > now) {
        if (next < base::kNever) job_.loop_.at(next, [&seat = seat_] { seat.woken = true; });
        seat_.resting = true;
      }
      job_.yield(seat_);
      seat_.resting = false;
    }
    return base::RunEnd::done;
  }
  std::int64_t now_ns() override { return job_.loop_.now_ns(); }

 private:
  struct SeatWaker final : base::Waker {
    explicit SeatWaker(Seat& the_seat) : seat(the_seat) {}
    void wake() noexcept override { seat.woken = true; }
    Seat& seat;
  };

  BatonJob& job_;
  Seat& seat_;
  SeatWaker waker_;
  base::Steppable* caller_ = nullptr;
  std::vector<base::Steppable*> added_;
};

BatonJob::BatonJob(std::uint64_t seed) : loop_(seed) {}
BatonJob::~BatonJob() = default;

void BatonJob::let_others(std::uint32_t rank) { yield(*seats_[rank]); }

void BatonJob::yield(Seat& seat) {
  std::unique_lock lock(mutex_);
  running_ = nullptr;
  given_back_.notify_one();
  seat.turn.wait(lock, [&] { return running_ == &seat; });
}

void BatonJob::resume(Seat& seat) {
  std::unique_lock lock(mutex_);
  running_ = &seat;
  seat.turn.notify_one();
  given_back_.wait(lock, [&] { return running_ == nullptr; });
}

BatonJob::Outcome BatonJob::run(const JobSetup& setup, const std::function<void(Runtime&, BatonJob&)>& program) {
  comm::LoopOptions network_options = setup.network;
  network_options.ranks = setup.ranks;
  network_ = std::make_unique<comm::LoopNetwork>(network_options, &loop_);
  Outcome outcome;
  outcome.endings.resize(setup.ranks);
  for (std::uint32_t rank = 0; rank < setup.ranks; ++rank) seats_.push_back(std::make_unique<Seat>());
  for (std::uint32_t rank = 0; rank < setup.ranks; ++rank) {
    Seat& seat = *seats_[rank];
    seat.thread = std::thread([&, rank] {
      {
        std::unique_lock lock(mutex_);
        seat.turn.wait(lock, [&] { return running_ == &seat; });
      }
      try {
        auto resources = test::test_resources();
        TestWorldOptions world_options;
        world_options.workers = setup.workers;
        world_options.sched = setup.sched;
        auto world = make_test_world(world_options, *resources);
        resources->clock = std::make_unique<RankClock>(loop_);
        world.clock = resources->clock.get();
        world.driver = std::make_unique<RankDriver>(*this, seat);
        resources->loop = nullptr;
        auto endpoint = comm::Endpoint::open_loop(*network_, comm::Rank(rank), {}, *resources->log, &loop_);
        Runtime rt(std::move(resources), std::move(world), setup.core, std::move(endpoint), setup.flow);
        const struct Shown {
          Seat& seat;
          ~Shown() { seat.runtime = nullptr; }
        } shown{seat};
        seat.runtime = &rt;
        program(rt, *this);
      } catch (const std::exception& error) {
        outcome.endings[rank].error = error.what();
      }
      const std::lock_guard lock(mutex_);
      seat.ended = true;
      running_ = nullptr;
      given_back_.notify_one();
    });
  }

  std::vector<Seat*> ready;
  while (true) {
    ready.clear();
    bool all_ended = true;
    for (const auto& seat : seats_) {
      all_ended &= seat->ended;
      if (!seat->ended && (!seat->resting || seat->woken)) ready.push_back(seat.get());
    }
    if (all_ended) break;
    if (!ready.empty() && loop_.random() % 3 == 0) {
      resume(*ready[loop_.random() % ready.size()]);
      continue;
    }
    struct Steps {
      BatonJob& job;
      bool may_pause;
      unsigned left;
    } steps{*this, !ready.empty(), static_cast<unsigned>(loop_.random() % 8)};
    // Goes on until a program can go on, and for some steps beyond.
    const base::RunEnd end = loop_.run_until(
        [](void* context) {
          auto& now = *static_cast<Steps*>(context);
          if (now.left > 0) --now.left;
          if (now.left > 0) return false;
          for (const auto& seat : now.job.seats_)
            if (!seat->ended && (!seat->resting || seat->woken)) return true;
          return false;
        },
        &steps, base::kNever);
    if (end == base::RunEnd::stuck && ready.empty()) {
      bool anybody = false;
      for (const auto& seat : seats_) anybody |= !seat->ended && (!seat->resting || seat->woken);
      if (anybody) continue;
      for (const Ending& ending : outcome.endings) outcome.why += ending.error + "\n";
      for (const auto& seat : seats_)
        if (seat->runtime != nullptr)
          outcome.why += seat->runtime->core().loop().explain_stuck() + seat->runtime->flow()->endpoint().describe();
      outcome.stuck = true;
      return outcome;  // the caller ends the process: the programs wait for ever
    }
    if (end == base::RunEnd::stuck) resume(*ready[loop_.random() % ready.size()]);
  }
  for (const auto& seat : seats_) seat->thread.join();
  return outcome;
}

}  // namespace tandem::dist_test
