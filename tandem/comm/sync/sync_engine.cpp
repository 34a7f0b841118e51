// tandem/comm/sync/sync_engine.cpp: the synchronisation thread, the answers to messages, and the barrier's wait.
#include "tandem/comm/sync/sync_engine.hpp"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <utility>

#include <fmt/core.h>

#include "tandem/base/driver.hpp"
#include "tandem/clock/tsc_clock.hpp"

namespace tandem::comm::internal::sync {
namespace {

/// How long a waiter makes progress itself before it sleeps, and its longest sleep after that.
constexpr std::int64_t kSpinNs = 50'000;
constexpr std::int64_t kNapNs = 500'000;
/// Within this much of the barrier's end the waiter polls its clock: a wake-up takes some 30 to 60 us.
constexpr std::int64_t kWakeNs = 80'000;
/// Without a pong for this long, the synchronisation thread polls for it.
constexpr std::int64_t kPatienceNs = 200'000;
/// How long to poll for the next record of a measurement: as long as the peer may take to wake up or to change
/// processors.
constexpr std::int64_t kNextRecordNs = 300'000;
constexpr int kTriesBeforeYield = 64;

std::uint64_t own_processor() noexcept {
  const int number = sched_getcpu();
  return number >= 0 ? static_cast<std::uint64_t>(number) : Pong::no_processor;
}

/// Linux on virtual machines often wakes a thread on the processor of the thread that wakes it, even if another one is
/// idle; while both run they stay there. To leave, this thread excludes the processor from its mask for a moment, which
/// takes about 100 us.
bool leave_processor(std::uint64_t processor) {
  if (own_processor() != processor || processor >= CPU_SETSIZE) return false;
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return false;
  cpu_set_t others = allowed;
  CPU_CLR(processor, &others);
  if (CPU_COUNT(&others) == 0 || sched_setaffinity(0, sizeof others, &others) != 0) return false;
  sched_setaffinity(0, sizeof allowed, &allowed);
  return true;
}

void sleep_ns(std::int64_t duration_ns) {
  const timespec duration{duration_ns / 1'000'000'000, duration_ns % 1'000'000'000};
  nanosleep(&duration, nullptr);
}

/// Returns when the clock shows `until_ns`, as exactly as the machine can.
void wait_until(const clock::Clock& clock, std::int64_t until_ns) {
  const std::int64_t left_ns = until_ns - clock.now_ns();
  if (left_ns > kWakeNs) sleep_ns(left_ns - kWakeNs);
  while (clock.now_ns() < until_ns) base::pause_cpu();
}

}  // namespace

SyncEngine::SyncEngine(Environment environment, const ClockNode::Options& options, Messenger& messenger)
    : environment_(std::move(environment)),
      messenger_(messenger),
      node_(
          {environment_.rank, environment_.counter, environment_.same_host, &clock::TscClock::ticks, &leave_processor},
          options),
      barrier_(environment_.rank, environment_.size) {
  publish();
}

SyncEngine::~SyncEngine() { close(); }

void SyncEngine::start() {
  thread_ = base::Thread({.name = "tandem-clock"}, [this] { run(); });
}

void SyncEngine::close() {
  stopping_.store(true, std::memory_order_relaxed);
  parker_.unpark();
  if (thread_.joinable()) thread_.join();
  Outbox outbox;
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(closed_, true)) return;
    barrier_.leave(outbox);
    changed_.notify_all();
  }
  flush(outbox);
}

void SyncEngine::run() {
  while (!stopping_.load(std::memory_order_relaxed)) {
    Outbox outbox;
    std::unique_lock lock(mutex_);
    const std::int64_t now_ns = environment_.clock->now_ns();
    const std::int64_t next_ns = std::min(node_.step(now_ns, outbox), barrier_.step(now_ns, outbox));
    planned_ns_.store(next_ns, std::memory_order_relaxed);
    publish();
    const bool measuring = node_.measuring();
    lock.unlock();
    flush(outbox);
    if (measuring) watch_measurement();
    else if (next_ns == base::kNever) parker_.park();
    else if (next_ns > now_ns) parker_.park(next_ns - now_ns);
  }
}

/// A progress thread takes pongs as soon as any other could, and a second polling thread would only disturb it. When no
/// pong comes, no thread makes progress (an endpoint without a thread, whose user computes), so this thread does.
void SyncEngine::watch_measurement() {
  const auto samples = [this] {
    const std::lock_guard lock(mutex_);
    return node_.measuring() ? node_.sample_count() : SIZE_MAX;
  };
  const std::size_t before = samples();
  parker_.park(kPatienceNs);
  const std::int64_t start_ns = environment_.clock->now_ns();
  for (int tries = 0; samples() == before && environment_.clock->now_ns() - start_ns < kSpinNs; ++tries) {
    while (messenger_.progress()) tries = 0;
    if (tries >= kTriesBeforeYield) sched_yield();
  }
}

void SyncEngine::arrived(Rank from, std::span<const std::byte> bytes) {
  const std::int64_t now_ns = environment_.clock->now_ns();
  const std::optional<Record> record = read_record(bytes);
  if (!record) return;
  if (const auto* ping = std::get_if<Ping>(&*record)) {
    post(from, Pong{ping->attempt, ping->send_ns, now_ns, own_processor()}, false);
    messenger_.expect(kNextRecordNs);
    return;
  }
  Outbox outbox;
  bool wake = false, expected = false, was_expected = false;
  {
    const std::lock_guard lock(mutex_);
    if (closed_) {
      if (std::holds_alternative<Ask>(*record)) outbox.push_back({from, Broken{environment_.rank.value(), 1}, false});
    } else {
      node_.take(from, *record, now_ns, outbox);
      publish();
      barrier_.take(from, *record, now_ns, node_.to_reference(), outbox);
      const auto* broken = std::get_if<Broken>(&*record);
      if (broken != nullptr && broken->rank == from.value()) node_.gone(from, outbox);
      if (!std::holds_alternative<Pong>(*record)) changed_.notify_all();
      expected = node_.busy();
      was_expected = std::exchange(expecting_, expected);
      wake = node_.next_due_ns() < planned_ns_.load(std::memory_order_relaxed);
    }
  }
  flush(outbox);
  if (expected) messenger_.expect(kNextRecordNs);
  else if (was_expected) messenger_.expect(0);
  if (wake) parker_.unpark();
}

void SyncEngine::gone(Rank rank, bool left) {
  Outbox outbox;
  {
    const std::lock_guard lock(mutex_);
    if (closed_) return;
    node_.gone(rank, outbox);
    barrier_.gone(rank, left, outbox);
    changed_.notify_all();
  }
  flush(outbox);
  parker_.unpark();
}

void SyncEngine::publish() {
  if (node_.version() == published_version_) return;
  published_version_ = node_.version();
  published_.set(node_.to_reference());
  changed_.notify_all();
}

void SyncEngine::flush(Outbox& outbox) {
  for (const Outgoing& outgoing : outbox) post(outgoing.to, outgoing.record, outgoing.watched);
  outbox.clear();
}

void SyncEngine::post(Rank to, const Record& record, bool watched) {
  Record stamped = record;
  if (auto* ping = std::get_if<Ping>(&stamped)) ping->send_ns = environment_.clock->now_ns();
  messenger_.send(to, PackedRecord(stamped).bytes(), watched);
}

/// Makes progress for a short time, then alternates progress and sleep: without a progress thread no other thread makes
/// progress.
template <class Done>
bool SyncEngine::await(std::unique_lock<std::mutex>& lock, std::int64_t timeout_ns, Done&& done) {
  const std::int64_t start_ns = environment_.clock->now_ns();
  std::int64_t busy_ns = start_ns;
  for (int tries = 0; !done(); ++tries) {
    const std::int64_t now_ns = environment_.clock->now_ns();
    if (now_ns - start_ns >= timeout_ns) return false;
    lock.unlock();
    const bool moved = messenger_.progress();
    if (moved) busy_ns = now_ns, tries = 0;
    else if (tries >= kTriesBeforeYield) sched_yield();
    lock.lock();
    if (now_ns - busy_ns > kSpinNs && !done()) changed_.wait_for(lock, std::chrono::nanoseconds(kNapNs));
  }
  return true;
}

bool SyncEngine::wait_known(std::int64_t timeout_ns) {
  std::unique_lock lock(mutex_);
  return await(lock, timeout_ns, [&] { return node_.known(); });
}

base::Error SyncEngine::barrier_error(const BarrierBreak& why) const {
  return {base::ErrorCode::io, fmt::format("a barrier of {} ranks cannot complete: rank {} {}", environment_.size,
                                           why.rank.value(), why.left ? "has left" : "died")};
}

base::Result<BarrierAgreement> SyncEngine::barrier() {
  const std::lock_guard turn(barrier_turn_);
  std::unique_lock lock(mutex_);
  if (barrier_.broken()) return barrier_error(*barrier_.broken());
  Outbox outbox;
  barrier_.enter(environment_.clock->now_ns(), node_.to_reference(), outbox);
  lock.unlock();
  flush(outbox);
  parker_.unpark();  // so that the thread plans the barrier's repetitions
  lock.lock();
  await(lock, INT64_MAX, [&] { return !barrier_.inside(); });
  if (!barrier_.agreement()) return barrier_error(*barrier_.broken());
  const BarrierAgreement agreement = *barrier_.agreement();
  lock.unlock();
  wait_until(*environment_.clock, agreement.local_ns);
  return agreement;
}

std::optional<Rank> SyncEngine::parent() const {
  const std::lock_guard lock(mutex_);
  return node_.parent();
}

std::uint64_t SyncEngine::measurements() const {
  const std::lock_guard lock(mutex_);
  return node_.version();
}

}  // namespace tandem::comm::internal::sync
