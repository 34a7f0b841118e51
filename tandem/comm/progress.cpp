// tandem/comm/progress.cpp: how threads step the engine, call callbacks, and sleep.
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

#include "tandem/base/exceptions.hpp"
#include "tandem/base/fork.hpp"
#include "tandem/comm/wait_events.hpp"
#include "tandem/trace/current.hpp"

namespace tandem::comm::internal {
Progress::Progress(Engine& engine, const EndpointOptions& options, std::function<std::int64_t()> now_ns,
                   base::EventLoop* loop)
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
                       fmt::format("the progress engine cannot make {}: {}", what, base::system_error_text(errno))};
  };
  epoll_ = base::kept_from_children(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll_) return failed("an epoll set");
  wake_event_ = base::kept_from_children(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake_event_) return failed("an eventfd");
  epoll_event event{.events = EPOLLIN | EPOLLET, .data = {.fd = wake_event_.get()}};
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, wake_event_.get(), &event) != 0) return failed("its event");
  for (const auto& transport : engine_.transports()) {
    const int descriptor = transport->wait_descriptor();
    event.data.fd = descriptor;
    if (descriptor >= 0 && epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, descriptor, &event) != 0)
      return failed("its wait set");
  }
  try {
    if (with_thread_) thread_ = base::Thread({.name = "tandem-comm"}, [this] { run(); });
  } catch (const StartError& error) {
    return base::Error{base::ErrorCode::exhausted, fmt::format("the progress engine: {}", error.what())};
  }
  return {};
}

void Progress::stop() {
  if (stopping_.exchange(true)) return;
  if (loop_ != nullptr) loop_->remove(seat_);
  if (thread_.joinable()) {
    parker_.unpark();
    signal();  // also when it sleeps because an idle worker attends
    thread_.join();
  }
}

void Progress::run() {
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
      sleep_as_thread(polling);
      continue;
    }
    const std::uint64_t steps = inline_steps_.load(std::memory_order_relaxed);
    const bool somebody_waits = waiters_.load() > 0;
    if (somebody_waits || steps != seen_steps) {  // another thread makes progress
      seen_steps = steps;
      const bool long_rest = somebody_waits && rest_ns >= kLongestRestNs;
      enter_sleep();
      rests_.store(long_rest ? Rests::until_they_leave : Rests::shortly);
      if ((!long_rest || waiters_.load() > 0) && !attended_.load())
        parker_.park(long_rest ? kLongestAbsenceNs : rest_ns);
      rests_.store(Rests::no, std::memory_order_relaxed);
      rest_ns = std::min(2 * rest_ns, kLongestRestNs);
      polling = Polling(patience_, now_ns_());
      continue;
    }
    const bool traced = trace_.begin_instant<trace::Type::progress_state>();
    const std::int64_t now = now_ns_();
    const bool happened = step_and_dispatch(now);
    if (traced) [[unlikely]] enter_state(happened ? trace::ProgressState::working : trace::ProgressState::polling);
    if (happened) rest_ns = kShortestRestNs;
    switch (polling.polled(happened, now_ns_)) {
      case Polling::Next::poll: break;
      case Polling::Next::yield: offer_core(polling); break;
      case Polling::Next::sleep:
        sleep_as_thread(polling);
        poll_set_.wake_parked();  // callers that wait acquire the poll set; this thread makes no progress while they do
        break;
    }
  }
}

/// Steps the engine and calls callbacks. True when something happened.
bool Progress::step_and_dispatch(std::int64_t now_ns) {
  bool happened, armed;
  {
    const std::lock_guard guard(lock_);
    happened = engine_.step(now_ns) <= now_ns;
    armed = armed_;
  }
  dispatch_events();
  if (armed) arm_again();
  if (happened) wake_others();
  return happened;
}

void Progress::offer_core(Polling& polling) {
  sched_yield();
  polling.yielded(now_ns_());
}

/// Sleeps at the poll set. False: another thread owns it.
bool Progress::sleep_as_owner(Polling& polling, std::int64_t until_ns, bool (*done)(void*), void* context) {
  if (!poll_set_.try_acquire()) return false;
  const bool found = sleep_at_poll_set(until_ns, done, context);
  poll_set_.release();
  polling.slept(now_ns_(), found);
  return true;
}

/// Returns memory that a burst has left unused.
void Progress::trim() noexcept {
  RequestCore::free_orphans();
  {
    const std::lock_guard guard(lock_);
    if (engine_.spare_bytes() == 0) return;
    engine_.trim_tables();
  }
  Engine::trim_requests();
}

/// Like `await_event`. Users may drop their requests long after this thread fell asleep, without an event. So the
/// thread looks for unused memory after periods that double.
bool Progress::rest(std::int64_t wait_ns) {
  for (std::int64_t period_ns = kRestBeforeTrimNs;; period_ns = std::min(2 * period_ns, kLongestTrimNs)) {
    if (wait_ns >= 0 && wait_ns <= period_ns) return await_event(wait_ns);
    if (await_event(period_ns)) return true;
    if (wait_ns >= 0) wait_ns -= period_ns;
    trim();
  }
}

/// Sleeps until a descriptor of the poll set is ready, for `wait_ns` at most (negative: for ever). True when one was.
bool Progress::await_event(std::int64_t wait_ns) {
  epoll_event events[8];
  if (wait_events(epoll_.get(), events, wait_ns) <= 0) return false;
  events_may_be_left_.store(true);
  return true;
}

/// Arms all transports: from now on no thread polls. Not while there is something to do.
Progress::LastLook Progress::arm() {
  LastLook look;
  const auto transports = engine_.transports();
  for (const auto& transport : transports) look.all_ring &= transport->rings();
  if (!armed_) {
    std::size_t armed = 0;
    while (armed < transports.size() && transports[armed]->arm()) ++armed;
    armed_ = armed == transports.size();
    // The transport that refused is not armed.
    if (!armed_) std::for_each_n(transports.begin(), armed, [](const auto& transport) { transport->disarm(); });
  }
  look.due_ns = armed_until_ns_ = engine_.due_ns();
  look.work = !armed_ || engine_.busy() || !engine_.events().empty() || stopping_.load();
  const bool left = !look.work && events_may_be_left_.load(std::memory_order_relaxed) && something_ready();
  if (armed_ && (look.work || left)) disarm();
  look.work |= left;
  return look;
}

void Progress::disarm() {
  if (std::exchange(armed_, false))
    for (const auto& transport : engine_.transports()) transport->disarm();
  engine_.poll_all_next();
}

/// Called by a thread that has stepped while another one slept at the armed transports: see the type.
void Progress::arm_again() {
  {
    const std::lock_guard guard(lock_);
    if (!armed_) return;  // the sleeper is awake
    const std::int64_t known_ns = armed_until_ns_;
    disarm();
    const LastLook look = arm();
    if (!look.work && look.due_ns >= known_ns) return;
  }
  signal();
}

/// Whether a transport is still readable after a sleeper took an event. The epoll set reports the next event in any
/// case.
bool Progress::something_ready() {
  events_may_be_left_.store(false, std::memory_order_relaxed);
  for (const auto& transport : engine_.transports()) {
    pollfd descriptor{.fd = transport->wait_descriptor(), .events = POLLIN, .revents = 0};
    if (descriptor.fd < 0 || ::poll(&descriptor, 1, 0) <= 0) continue;
    events_may_be_left_.store(true, std::memory_order_relaxed);
    return true;
  }
  return false;
}

/// The longest sleep that the engine and `until_ns` allow; negative: for ever.
std::int64_t Progress::longest_sleep_ns(const LastLook& look, std::int64_t until_ns) {
  until_ns = std::min(until_ns, look.due_ns);
  const std::int64_t wait_ns = until_ns == base::kNever ? -1 : std::max<std::int64_t>(0, until_ns - now_ns_());
  if (look.all_ring) return wait_ns;
  const std::int64_t back_off_ns = engine_.quiet() ? kQuietBackOffNs : kBackOffNs;
  return wait_ns < 0 ? back_off_ns : std::min(wait_ns, back_off_ns);
}

/// Called by the owner of the poll set. True when there is, or may be, something to do.
bool Progress::sleep_at_poll_set(std::int64_t until_ns, bool (*done)(void*), void* context) {
  owner_sleeps_.store(true);  // before the last check; pairs with `kick`, see the type
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
  } else if (dispatching_.load(std::memory_order_relaxed)) {
    sched_yield();  // the thread that calls callbacks takes the remaining events; it may wait for this core
  }
  owner_sleeps_.store(false);
  return work;
}

/// Sleeps as the progress thread. An attendant that is awake polls, and arms the transports when it leaves.
void Progress::sleep_as_thread(Polling& polling) {
  enter_sleep();
  thread_sleeps_.store(true);
  LastLook look;
  std::int64_t wait_ns = -1;
  {
    const std::lock_guard guard(lock_);
    if (attended_.load() && !owner_sleeps_.load()) {
      look.work = stopping_.load();
    } else {
      look = arm();
      wait_ns = longest_sleep_ns(look, base::kNever);
    }
  }
  const bool found = look.work || rest(wait_ns);
  bool owner_sleeps;
  {
    // The owner that sleeps relies on the armed transports.
    const std::lock_guard guard(lock_);
    thread_sleeps_.store(false);
    owner_sleeps = owner_sleeps_.load();
    if (!owner_sleeps) disarm();
  }
  if (owner_sleeps) {
    if (found) signal();
    parker_.park(kShortestRestNs);
  }
  polling.slept(now_ns_(), found);
}

/// Called under the lock by a thread that stops polling. True: the progress thread must be woken. False: it is awake,
/// or it sleeps and the transports will wake it.
bool Progress::hand_over() {
  if (attended_.load() || waiters_.load() > 0) return false;
  if (!thread_sleeps_.load()) return !engine_.nothing_left();  // it may be about to rest
  const LastLook look = arm();
  return look.work || !look.all_ring || look.due_ns != base::kNever;
}

void Progress::kick() noexcept {
  if (loop_ != nullptr) {
    if (waker_ != nullptr) waker_->wake();
    return;
  }
  if (owner_sleeps_.load() || (thread_sleeps_.load() && !attended_.load())) signal();
}

void Progress::signal() noexcept {
  const std::uint64_t one =
      1;  // never read: epoll reports each write once, and the counter cannot overflow in 500 years
  if (!wake_event_ || write(wake_event_.get(), &one, sizeof one) < 0) return;
}

void Progress::wake_for_work() {
  if (left_to_this_thread()) return;
  if (owner_sleeps_.load()) return signal();
  if (waiters_.load(std::memory_order_relaxed) > 0) return;  // a waiter is awake, and checks once more before it sleeps
  if (attended_.load()) return;                              // the attendant checks once more when it leaves
  wake_thread();
}

void Progress::wake_thread() noexcept {
  if (thread_sleeps_.load()) signal();
  else parker_.unpark();
}

void Progress::dispatch_events() {
  while (true) {
    if (dispatching_.exchange(true, std::memory_order_seq_cst)) return;  // the dispatching thread checks again
    std::vector<Event> events;
    while (true) {
      {
        const std::lock_guard guard(lock_);
        events = engine_.events().take(std::move(events));
      }
      if (events.empty()) break;
      for (Event& event : events) {
        try {
          dispatch(event);
        } catch (...) {
          note_failure();
        }
      }
      events.clear();
    }
    dispatching_.store(false, std::memory_order_seq_cst);
    const std::lock_guard guard(lock_);
    if (engine_.events().empty()) return;
  }
}

/// Called in a handler when a callback threw. Waiting threads check for it.
void Progress::note_failure() noexcept {
  try {
    throw;
  } catch (const std::exception& thrown) {
    engine_.log_callback_failure(thrown.what());
  } catch (...) {
    engine_.log_callback_failure("something that is no std::exception");
  }
  failures_.keep(std::current_exception());  // from now on another thread may throw it, and end it
  wake_others();
}

namespace {

/// Ends an event of a request, also when its callback throws.
struct EventEnd {
  RequestCore& core;
  bool last;
  ~EventEnd() {
    // Callbacks may hold references to the request itself, which would keep it for ever.
    if (last) core.extra->callbacks = {};
    core.drop();
  }
};

}  // namespace

void Progress::dispatch(Event& event) {
  if (event.call) return event.call();
  RequestCore& core = *event.core;
  const EventEnd end{core, event.what != CompletionQueue::Event::arrived};
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
}

/// One step for the user's threads. It may take the event that would have woken a sleeper.
bool Progress::once() {
  if (loop_ != nullptr) return loop_->step_one();
  const bool happened = once(now_ns_());
  if (happened) wake_others();
  return happened;
}

bool Progress::once(std::int64_t now) {
  return look_once(now, true);
}

/// Wakes sleepers after a step of this thread found something. A sleeper may wait for just that: it may have fallen
/// asleep while this thread, about to step, was not running.
void Progress::wake_sleepers() {
  if (owner_sleeps_.load()) kick();
  poll_set_.wake_parked();
}

bool Progress::wait_for(bool (*done)(void*), void* context, std::int64_t deadline_ns) {
  if (loop_ != nullptr) return loop_->run_until(done, context, deadline_ns) == base::RunEnd::done;
  waiters_.fetch_add(1);
  if (!owner_sleeps_.load()) kick();  // the progress thread yields to this caller
  Polling polling(patience_, now_ns_());
  bool is_done;
  while (!(is_done = done(context)) && polling.now_ns() < deadline_ns) {
    const bool happened = once(polling.now_ns());
    if (happened) wake_others();
    switch (polling.polled(happened, now_ns_)) {
      case Polling::Next::poll: break;
      case Polling::Next::yield: offer_core(polling); break;
      case Polling::Next::sleep:
        if (!done(context) && !sleep_as_owner(polling, deadline_ns, done, context)) {
          poll_set_.park([&] { return done(context); }, kLongestRestNs);
        }
        break;
    }
  }
  if (waiters_.fetch_sub(1) == 1) {
    if (rests_.load() == Rests::until_they_leave) parker_.unpark();
    if (thread_sleeps_.load()) leave_to_thread();
  }
  wake_others();  // one of them acquires the poll set; else the progress thread does, when no other thread makes
                  // progress
  return is_done;  // asking again may get another answer: see `await`
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
    if (armed_ && !owner_sleeps_.load()) disarm();
  }
  if (rests_.load() != Rests::no) parker_.unpark();  // so that it sleeps at the poll set when the attendant leaves
  attendant_polling_.emplace(patience_, now_ns_());
}

base::IdleWork::Found Progress::look() {
  Polling& polling = *attendant_polling_;
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
  if (!sleep_as_owner(*attendant_polling_, until_ns, done, context))
    poll_set_.park([&] { return done(context); }, kLongestRestNs);
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
  poll_set_.wake_parked();
}

void Progress::wake() noexcept {
  if (owner_sleeps_.load()) signal();
  poll_set_.wake_parked();
}

void Progress::tend() {
  step_and_dispatch(now_ns_());
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
  progress.dispatch_events();
  const std::lock_guard guard(progress.lock_);
  return progress.engine_.busy() || !progress.engine_.events().empty() ? now_ns : next;
}

}  // namespace tandem::comm::internal
