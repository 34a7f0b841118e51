// tandem/comm/progress.cpp: stepping, telling and sleeping.
#include "tandem/comm/progress.hpp"

#include <poll.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "tandem/trace/current.hpp"

namespace tandem::comm::internal {
Progress::Progress(Engine& engine, const EndpointOptions& options, std::function<std::int64_t()> now_ns, base::EventLoop* loop)
    : engine_(engine),
      patience_(options.spin_ns),
      core_(options.progress_core),
      with_thread_(options.progress == "thread"),
      now_ns_(std::move(now_ns)),
      loop_(loop) {}

Progress::~Progress() { stop(); }

base::Result<void> Progress::start() {
  if (loop_ != nullptr) {
    waker_ = &loop_->add(seat_, {.name = "progress"});
    return {};
  }
  const auto failed = [](const char* what) {
    return base::Error{base::ErrorCode::exhausted,
                       fmt::format("the progress engine cannot make {}: {}", what, std::strerror(errno))};
  };
  epoll_ = base::FileDescriptor(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll_) return failed("an epoll set");
  bell_ = base::FileDescriptor(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!bell_) return failed("an eventfd");
  epoll_event event{.events = EPOLLIN | EPOLLET, .data = {.fd = bell_.get()}};
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, bell_.get(), &event) != 0) return failed("its bell");
  for (const auto& transport : engine_.transports()) {
    const int descriptor = transport->wait_descriptor();
    event.data.fd = descriptor;
    if (descriptor >= 0 && epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, descriptor, &event) != 0) return failed("its wait set");
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
  const trace::CurrentStream current(trace_);
  ShortSlice slice;
  slice.take();
  Polling polling(patience_, now_ns_());
  std::int64_t rest_ns = kShortestRestNs;
  std::uint64_t seen_steps = 0;
  while (!stopping_.load(std::memory_order_relaxed)) {
    if (attended_.load(std::memory_order_relaxed)) {
      sleep_below(polling);
      continue;
    }
    const std::uint64_t steps = inline_steps_.load(std::memory_order_relaxed);
    const bool somebody_waits = waiters_.load() > 0;
    if (somebody_waits || steps != seen_steps) {  // somebody makes progress without us
      seen_steps = steps;
      const bool long_rest = somebody_waits && rest_ns >= kLongestRestNs;
      enter_sleep();
      rests_.store(long_rest ? Rests::until_they_leave : Rests::shortly);
      if ((!long_rest || waiters_.load() > 0) && !attended_.load()) parker_.park(long_rest ? kLongestAbsenceNs : rest_ns);
      rests_.store(Rests::no, std::memory_order_relaxed);
      rest_ns = std::min(2 * rest_ns, kLongestRestNs);
      polling = Polling(patience_, now_ns_());
      continue;
    }
    const bool traced = trace_.begin_instant<trace::Type::progress_state>();
    const std::int64_t now = now_ns_();
    const bool happened = step_and_tell(now);
    if (traced) [[unlikely]] enter_state(happened ? trace::ProgressState::working : trace::ProgressState::polling);
    if (happened) rest_ns = kShortestRestNs;
    switch (polling.polled(happened, now_ns_)) {
      case Polling::Next::poll: break;
      case Polling::Next::yield: offer_core(polling); break;
      case Polling::Next::sleep:
        sleep_below(polling);
        bed_.wake_resting();  // when callers wait, we leave it to them, and make no progress ourselves
        break;
    }
  }
}

/// True when something happened.
bool Progress::step_and_tell(std::int64_t now_ns) {
  bool happened;
  {
    const std::lock_guard guard(lock_);
    happened = engine_.step(now_ns) <= now_ns;
  }
  tell_events();
  if (happened) wake_others();
  return happened;
}

void Progress::offer_core(Polling& polling) {
  sched_yield();
  polling.yielded(now_ns_());
}

/// False: another thread has the bed.
bool Progress::sleep_in_bed(Polling& polling, std::int64_t until_ns, bool (*done)(void*), void* context) {
  if (!bed_.take()) return false;
  const bool found = lie_down(until_ns, done, context);
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
  if (epoll_pwait2(epoll_.get(), events, 8, wait_ns < 0 ? nullptr : &limit, nullptr) <= 0) return false;
  told_.store(true);
  return true;
}

/// Declares that nobody polls, unless there is something to do.
Progress::LastLook Progress::arm() {
  LastLook look;
  const auto transports = engine_.transports();
  for (const auto& transport : transports) look.all_ring &= transport->rings();
  if (!armed_) {
    std::size_t armed = 0;
    while (armed < transports.size() && transports[armed]->arm()) ++armed;
    armed_ = armed == transports.size();
    // Whoever refused to be armed is not armed.
    if (!armed_) std::for_each_n(transports.begin(), armed, [](const auto& transport) { transport->disarm(); });
  }
  look.due_ns = engine_.due_ns(now_ns_());
  look.work = !armed_ || engine_.busy() || !engine_.events().empty() || stopping_.load();
  const bool left = !look.work && told_.load(std::memory_order_relaxed) && something_ready();
  if (armed_ && (look.work || left)) disarm();
  look.work |= left;
  return look;
}

void Progress::disarm() {
  if (std::exchange(armed_, false))
    for (const auto& transport : engine_.transports()) transport->disarm();
  engine_.poll_all_next();
}

/// What was told of and is still there. The next event is told of in any case.
bool Progress::something_ready() {
  told_.store(false, std::memory_order_relaxed);
  for (const auto& transport : engine_.transports()) {
    pollfd descriptor{.fd = transport->wait_descriptor(), .events = POLLIN, .revents = 0};
    if (descriptor.fd < 0 || ::poll(&descriptor, 1, 0) <= 0) continue;
    told_.store(true, std::memory_order_relaxed);
    return true;
  }
  return false;
}

/// Negative: for ever.
std::int64_t Progress::longest_sleep_ns(const LastLook& look, std::int64_t until_ns) {
  until_ns = std::min(until_ns, look.due_ns);
  const std::int64_t wait_ns = until_ns == base::kNever ? -1 : std::max<std::int64_t>(0, until_ns - now_ns_());
  if (look.all_ring) return wait_ns;
  const std::int64_t back_off_ns = engine_.quiet() ? kQuietBackOffNs : kBackOffNs;
  return wait_ns < 0 ? back_off_ns : std::min(wait_ns, back_off_ns);
}

/// In the bed that we have taken. True when there is, or may be, something to do.
bool Progress::lie_down(std::int64_t until_ns, bool (*done)(void*), void* context) {
  in_bed_.store(true);  // before the last look; pairs with `kick`, see the type
  std::int64_t wait_ns = 0;
  bool work = false;
  {
    const std::lock_guard guard(lock_);
    const LastLook look = arm();
    work = look.work;
    wait_ns = longest_sleep_ns(look, until_ns);
  }
  if (!work) {
    work = done(context) || rest(wait_ns);
    const std::lock_guard guard(lock_);
    disarm();
  } else if (baton_.load(std::memory_order_relaxed)) {
    sched_yield();  // what is left is to be told by whoever has the baton, and that one may be waiting for this core
  }
  in_bed_.store(false);
  return work;
}

/// By the thread. An attendant that is awake looks after all, and arms the transports when it leaves.
void Progress::sleep_below(Polling& polling) {
  enter_sleep();
  below_.store(true);
  LastLook look;
  std::int64_t wait_ns = -1;
  {
    const std::lock_guard guard(lock_);
    if (attended_.load() && !in_bed_.load()) {
      look.work = stopping_.load();
    } else {
      look = arm();
      wait_ns = longest_sleep_ns(look, base::kNever);
    }
  }
  const bool found = look.work || rest(wait_ns);
  bool somebody_above;
  {
    // Who is in bed counts on what is armed.
    const std::lock_guard guard(lock_);
    below_.store(false);
    somebody_above = in_bed_.load();
    if (!somebody_above) disarm();
  }
  if (somebody_above) {
    if (found) ring();
    parker_.park(kShortestRestNs);
  }
  polling.slept(now_ns_(), found);
}

/// Under the lock, by who looks no more: true when the thread must be woken; else it sleeps on until transports ring, or is
/// awake.
bool Progress::hand_over() {
  if (attended_.load() || waiters_.load() > 0) return false;
  if (!below_.load()) return !engine_.nothing_left();  // it may be about to rest
  const LastLook look = arm();
  return look.work || !look.all_ring || look.due_ns != base::kNever;
}

void Progress::kick() noexcept {
  if (loop_ != nullptr) {
    if (waker_ != nullptr) waker_->wake();
    return;
  }
  if (in_bed_.load() || (below_.load() && !attended_.load())) ring();
}

void Progress::ring() noexcept {
  const std::uint64_t one = 1;  // never read: each is told of once, and in 500 years there is no room for more
  if (!bell_ || write(bell_.get(), &one, sizeof one) < 0) return;
}

void Progress::wake_for_work() {
  if (left_to_this_thread() || waiters_.load(std::memory_order_relaxed) > 0) return;
  if (in_bed_.load()) return ring();
  if (attended_.load()) return;  // who leaves looks once more
  wake_thread();
}

void Progress::wake_thread() noexcept {
  if (below_.load()) ring();
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

/// For the user's threads. One of them may take what another one sleeps for, with the ring that would have woken it.
bool Progress::once() {
  if (loop_ != nullptr) return loop_->step_one();
  const bool happened = once(now_ns_());
  if (happened) wake_others();
  return happened;
}

bool Progress::once(std::int64_t now) {
  return look_once(now, true);
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
  if (!in_bed_.load()) kick();  // the thread leaves all to us
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
  if (waiters_.fetch_sub(1) == 1) {
    if (rests_.load() == Rests::until_they_leave) parker_.unpark();
    if (below_.load()) leave_to_thread();
  }
  wake_others();  // one of them takes the bed; else the thread does, when it finds that nobody makes progress
  return done(context);
}

void Progress::leave_to_thread() {
  bool wanted;
  {
    const std::lock_guard guard(lock_);
    wanted = hand_over();
  }
  if (wanted) wake_thread();
}

// --- idle workers

void Progress::enter() {
  {
    const std::lock_guard guard(lock_);
    attended_.store(true);
    if (armed_ && !in_bed_.load()) disarm();
  }
  if (rests_.load() != Rests::no) parker_.unpark();  // so that it is below when we leave
  attending_.emplace(patience_, now_ns_());
}

base::IdleWork::Found Progress::look() {
  Polling& polling = *attending_;
  const bool happened = look_once(polling.now_ns(), false);
  if (happened) wake_others();
  switch (polling.polled(happened, now_ns_)) {
    case Polling::Next::poll: break;
    case Polling::Next::yield: offer_core(polling); break;
    case Polling::Next::sleep: return Found::nothing_for_long;
  }
  return happened ? Found::something : Found::nothing;
}

void Progress::sleep(bool (*done)(void*), void* context, std::int64_t until_ns) {
  slice_.take();
  if (!sleep_in_bed(*attending_, until_ns, done, context)) bed_.rest([&] { return done(context); }, kLongestRestNs);
}

void Progress::leave() {
  slice_.give_back();
  bool wanted;
  {
    const std::lock_guard guard(lock_);
    attended_.store(false);
    wanted = hand_over();
  }
  if (wanted) wake_thread();
  bed_.wake_resting();
}

void Progress::wake() noexcept {
  if (in_bed_.load()) ring();
  bed_.wake_resting();
}

void Progress::tend() {
  step_and_tell(now_ns_());
  bool left;
  {
    const std::lock_guard guard(lock_);
    left = !engine_.nothing_left();
  }
  if (left) wake_for_work();
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
