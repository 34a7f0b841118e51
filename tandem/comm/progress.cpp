// tandem/comm/progress.cpp: stepping, telling and sleeping.
#include "tandem/comm/progress.hpp"

#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>

namespace tandem::comm::internal {
namespace {

/// As the kernel's `struct sched_attr` in its first version, which glibc knows only since 2.41.
struct SchedulingAttributes {
  std::uint32_t size = sizeof(SchedulingAttributes);
  std::uint32_t policy = 0;
  std::uint64_t flags = 0;
  std::int32_t nice = 0;
  std::uint32_t priority = 0;
  std::uint64_t runtime_ns = 0, deadline_ns = 0, period_ns = 0;
};
static_assert(sizeof(SchedulingAttributes) == 48);

/// Asks for short turns on the core. Since Linux 6.12 a thread that wakes interrupts one whose slice is longer; otherwise it may
/// wait for the next tick, 4 ms at 250 Hz, behind an application that computes on the same core. Needs no privilege, and older
/// kernels take no notice.
void ask_for_short_slice() noexcept {
  constexpr std::uint64_t slice_ns = 100'000;  // the least that the kernel grants
  SchedulingAttributes attributes;
  if (syscall(SYS_sched_getattr, 0, &attributes, sizeof attributes, 0) != 0 || attributes.policy != SCHED_OTHER) return;
  attributes.runtime_ns = slice_ns;
  (void)syscall(SYS_sched_setattr, 0, &attributes, 0);
}

}  // namespace

Progress::Progress(Engine& engine, const EndpointOptions& options, std::function<std::int64_t()> now_ns, base::EventLoop* loop)
    : engine_(engine),
      patience_(options.spin_ns),
      core_(options.progress_core),
      with_thread_(options.progress == "thread"),
      now_ns_(std::move(now_ns)),
      loop_(loop) {}

Progress::~Progress() {
  stop();
  if (epoll_ >= 0) close(epoll_);
  if (bell_ >= 0) close(bell_);
}

base::Result<void> Progress::start() {
  if (loop_ != nullptr) {
    waker_ = &loop_->add(seat_, {.name = "progress"});
    return {};
  }
  const auto failed = [](const char* what) {
    return base::Error{base::ErrorCode::exhausted,
                       fmt::format("the progress engine cannot make {}: {}", what, std::strerror(errno))};
  };
  epoll_ = epoll_create1(EPOLL_CLOEXEC);
  if (epoll_ < 0) return failed("an epoll set");
  bell_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (bell_ < 0) return failed("an eventfd");
  epoll_event event{.events = EPOLLIN, .data = {.fd = bell_}};
  if (epoll_ctl(epoll_, EPOLL_CTL_ADD, bell_, &event) != 0) return failed("its bell");
  for (const auto& transport : engine_.transports()) {
    const int descriptor = transport->wait_descriptor();
    event.data.fd = descriptor;
    if (descriptor >= 0 && epoll_ctl(epoll_, EPOLL_CTL_ADD, descriptor, &event) != 0) return failed("its wait set");
  }
  if (with_thread_) thread_ = std::thread([this] { run(); });
  return {};
}

void Progress::stop() {
  if (stopping_.exchange(true)) return;
  if (loop_ != nullptr) loop_->remove(seat_);
  if (thread_.joinable()) {
    parker_.unpark();
    kick();
    thread_.join();
  }
}

void Progress::run() {
  pthread_setname_np(pthread_self(), "tandem-comm");
  if (core_ >= 0) {
    cpu_set_t cores;
    CPU_ZERO(&cores);
    CPU_SET(static_cast<unsigned>(core_), &cores);
    sched_setaffinity(0, sizeof cores, &cores);
  }
  ask_for_short_slice();
  Polling polling(patience_, now_ns_());
  std::int64_t rest_ns = kShortestRestNs;
  std::uint64_t seen_steps = 0;
  while (!stopping_.load(std::memory_order_relaxed)) {
    const std::uint64_t steps = inline_steps_.load(std::memory_order_relaxed);
    const bool somebody_waits = waiters_.load() > 0;
    if (somebody_waits || steps != seen_steps) {  // somebody makes progress without us
      seen_steps = steps;
      const bool long_rest = somebody_waits && rest_ns >= kLongestRestNs;
      if (long_rest) rests_long_.store(true);
      if (!long_rest || waiters_.load() > 0) parker_.park(long_rest ? kLongestAbsenceNs : rest_ns);
      if (long_rest) rests_long_.store(false, std::memory_order_relaxed);
      rest_ns = std::min(2 * rest_ns, kLongestRestNs);
      polling = Polling(patience_, now_ns_());
      continue;
    }
    const std::int64_t now = now_ns_();
    bool happened;
    {
      const std::lock_guard guard(lock_);
      happened = engine_.step(now) <= now;
    }
    tell_events();
    if (happened) {
      wake_others();
      rest_ns = kShortestRestNs;
    }
    switch (polling.polled(happened, now_ns_)) {
      case Polling::Next::poll: break;
      case Polling::Next::yield: offer_core(polling); break;
      case Polling::Next::sleep:
        if (!sleep_in_bed(polling, base::kNever, [](void*) { return false; }, nullptr)) parker_.park(kLongestRestNs);
        else bed_.wake_resting();  // when callers wait, we leave it to them, and make no progress ourselves
        break;
    }
  }
}

void Progress::offer_core(Polling& polling) {
  sched_yield();
  polling.yielded(now_ns_());
}

/// False: another thread has the bed.
bool Progress::sleep_in_bed(Polling& polling, std::int64_t until_ns, bool (*done)(void*), void* context) {
  if (!bed_.take()) return false;
  const bool found = sleep(until_ns, done, context);
  bed_.leave();
  polling.slept(now_ns_(), found);
  return true;
}

/// Gives back what bursts have left.
void Progress::trim() noexcept {
  RequestCore::free_orphans();
  {
    const std::lock_guard guard(lock_);
    if (engine_.spare_bytes() == 0) return;
    engine_.trim_tables();
  }
  Engine::trim_requests();
}

/// As `await_bell`. Users may drop their requests long after we fell asleep, and nobody rings for that; so we look after ever
/// longer periods.
bool Progress::rest(std::int64_t wait_ns) {
  for (std::int64_t period_ns = kRestBeforeTrimNs;; period_ns = std::min(2 * period_ns, kLongestTrimNs)) {
    if (wait_ns >= 0 && wait_ns <= period_ns) return await_bell(wait_ns);
    if (await_bell(period_ns)) return true;
    if (wait_ns >= 0) wait_ns -= period_ns;
    trim();
  }
}

/// Sleeps until a descriptor of the bed is ready, for `wait_ns` at most (negative: for ever). True when one was.
bool Progress::await_bell(std::int64_t wait_ns) {
  timespec limit{.tv_sec = wait_ns / 1'000'000'000, .tv_nsec = wait_ns % 1'000'000'000};
  epoll_event events[8];
  const int found = epoll_pwait2(epoll_, events, 8, wait_ns < 0 ? nullptr : &limit, nullptr);
  for (int i = 0; i < found; ++i) {
    std::uint64_t rung;
    if (events[i].data.fd == bell_ && read(bell_, &rung, sizeof rung) < 0) continue;  // another thread was faster
  }
  return found > 0;
}

/// In the bed that we have taken. True when there is, or may be, something to do.
bool Progress::sleep(std::int64_t until_ns, bool (*done)(void*), void* context) {
  bool all_ring = true;
  bool work = false;
  in_bed_.store(true);  // before the last look; pairs with `kick`, see the type
  {
    const std::lock_guard guard(lock_);
    std::size_t armed = 0;
    const auto transports = engine_.transports();
    for (; armed < transports.size() && !work; ++armed) {
      all_ring &= transports[armed]->rings();
      work = !transports[armed]->arm();
    }
    until_ns = std::min(until_ns, engine_.due_ns(now_ns_()));
    work |= engine_.busy() || !engine_.events().empty() || stopping_.load();
    if (work) {
      // Whoever refused to be armed is not armed.
      for (std::size_t i = 0; i < armed; ++i) transports[i]->disarm();
    }
  }
  const auto disarm_all = [this] {
    const std::lock_guard guard(lock_);
    for (const auto& transport : engine_.transports()) transport->disarm();
    engine_.poll_all_next();
  };
  if (!work && done(context)) {
    disarm_all();
    work = true;
  }
  if (!work) {
    std::int64_t wait_ns = until_ns == base::kNever ? -1 : std::max<std::int64_t>(0, until_ns - now_ns_());
    if (!all_ring) {
      const std::int64_t back_off_ns = engine_.quiet() ? kQuietBackOffNs : kBackOffNs;
      wait_ns = wait_ns < 0 ? back_off_ns : std::min(wait_ns, back_off_ns);
    }
    work = rest(wait_ns);
    disarm_all();
  }
  in_bed_.store(false);
  return work;
}

void Progress::kick() noexcept {
  if (loop_ != nullptr) {
    if (waker_ != nullptr) waker_->wake();
    return;
  }
  if (in_bed_.load() && bell_ >= 0) {
    const std::uint64_t one = 1;
    if (write(bell_, &one, sizeof one) < 0) return;  // it is rung already
  }
}

void Progress::wake_for_work() {
  if (waiters_.load(std::memory_order_relaxed) > 0) return;
  if (in_bed_.load()) kick();
  else parker_.unpark();
}

void Progress::tell_events() {
  while (true) {
    if (baton_.exchange(true, std::memory_order_seq_cst)) return;  // its holder looks again after putting it down
    std::vector<Event> events;
    while (true) {
      {
        const std::lock_guard guard(lock_);
        events = engine_.events().take(std::move(events));
      }
      if (events.empty()) break;
      for (Event& event : events) tell(event);
      events.clear();
    }
    baton_.store(false, std::memory_order_seq_cst);
    const std::lock_guard guard(lock_);
    if (engine_.events().empty()) return;
  }
}

void Progress::tell(Event& event) {
  if (event.call) return event.call();
  RequestCore& core = *event.core;
  const Status status = core.status();
  Extra& notify = *core.extra;
  const auto& call = event.what == CompletionQueue::Event::arrived    ? notify.callbacks.arrived
                     : event.what == CompletionQueue::Event::released ? notify.callbacks.released
                                                                      : notify.callbacks.failed;
  if (notify.queue != nullptr) {
    Status plain = status;
    plain.header = {};
    plain.owned = {};
    notify.queue->push({.user = notify.user, .event = event.what, .status = plain});
  }
  if (call) call(status);
  if (event.what != CompletionQueue::Event::arrived) {
    // The last event. Callbacks may hold references to the request itself, which would keep it for ever.
    notify.callbacks = {};
  }
  core.drop();
}

bool Progress::once() { return loop_ != nullptr ? loop_->step_one() : once(now_ns_()); }

bool Progress::once(std::int64_t now) {
  bool happened = false;
  if (lock_.try_lock()) {
    // Not a read-modify-write: callers hold the lock, and the thread only looks for changes.
    inline_steps_.store(inline_steps_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    happened = engine_.step(now) <= now;
    const bool events = !engine_.events().empty();
    lock_.unlock();
    if (events) [[unlikely]] tell_events();
  }
  return happened;
}

/// Something happened in our step. Whoever sleeps may wait for just that: a caller may have gone to bed while this thread, about
/// to step, was not running.
void Progress::wake_sleepers() {
  if (in_bed_.load()) kick();
  bed_.wake_resting();
}

bool Progress::wait_for(bool (*done)(void*), void* context, std::int64_t deadline_ns) {
  if (loop_ != nullptr) return loop_->run_until(done, context, deadline_ns) == base::RunEnd::done;
  waiters_.fetch_add(1);
  if (in_bed_.load() && bed_.taken()) kick();  // the thread leaves the bed to us
  Polling polling(patience_, now_ns_());
  while (!done(context) && polling.now_ns() < deadline_ns) {
    const bool happened = once(polling.now_ns());
    if (happened) wake_others();
    switch (polling.polled(happened, now_ns_)) {
      case Polling::Next::poll: break;
      case Polling::Next::yield: offer_core(polling); break;
      case Polling::Next::sleep:
        if (!done(context) && !sleep_in_bed(polling, deadline_ns, done, context)) {
          bed_.rest([&] { return done(context); }, kLongestRestNs);
        }
        break;
    }
  }
  if (waiters_.fetch_sub(1) == 1 && rests_long_.load()) parker_.unpark();
  wake_others();  // one of them takes the bed; else the thread does, when it finds that nobody makes progress
  return done(context);
}

std::int64_t Progress::Seat::step(std::int64_t now_ns) {
  std::int64_t next;
  {
    const std::lock_guard guard(progress.lock_);
    next = progress.engine_.step(now_ns);
  }
  progress.tell_events();
  const std::lock_guard guard(progress.lock_);
  return progress.engine_.busy() || !progress.engine_.events().empty() ? now_ns : next;
}

}  // namespace tandem::comm::internal
