// tandem/comm/sync/sync_engine.hpp: the state machines of one rank with their lock, their thread, and what they
// publish.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include "tandem/base/ids.hpp"
#include "tandem/base/parking.hpp"
#include "tandem/base/result.hpp"
#include "tandem/base/thread.hpp"
#include "tandem/clock/clock.hpp"
#include "tandem/comm/sync/barrier_node.hpp"
#include "tandem/comm/sync/clock_node.hpp"
#include "tandem/comm/sync/published_clock.hpp"

namespace tandem::comm::internal::sync {

/// Moves records between the engines of a job. Thread-safe.
class Messenger {
 public:
  virtual ~Messenger() = default;
  /// Sends as soon as possible, in order per peer. `watched`: calls `SyncEngine::gone` when the peer cannot be reached
  /// any more.
  virtual void send(Rank to, std::span<const std::byte> bytes, bool watched) = 0;
  /// Makes progress; true when something had arrived. May call `SyncEngine::arrived`.
  virtual bool progress() = 0;
  /// Announces the next record within that time, for which a thread should poll; 0: none is expected any more.
  virtual void expect(std::int64_t within_ns) = 0;
};

/// One rank's clock synchronisation over a messenger.
///
/// Threads. The thread that makes progress calls `arrived` and `gone`. Any thread may read; one thread at a time calls
/// `barrier`. The synchronisation thread steps the nodes, and makes progress during a measurement when no other thread
/// does. `mutex_` guards the nodes. Records are sent after its release, so that a messenger may call back from inside
/// `send`. `published_` is written under `mutex_`.
class SyncEngine {
 public:
  struct Environment {
    Rank rank{0};
    std::uint32_t size = 1;
    const clock::Clock* clock = nullptr;      ///< outlives the engine
    SharedCounter counter = {};
    std::function<bool(Rank)> same_host = {};
  };

  SyncEngine(Environment environment, const ClockNode::Options& options, Messenger& messenger);
  ~SyncEngine();
  SyncEngine(const SyncEngine&) = delete;
  SyncEngine& operator=(const SyncEngine&) = delete;

  void start();
  /// Notifies the neighbours that this rank leaves, and ends the thread. `arrived` may still be called, and does
  /// nothing.
  void close();

  /// Takes a message; call it first of all on arrival, since it reads the time.
  void arrived(Rank from, std::span<const std::byte> bytes);
  void gone(Rank rank, bool left);

  /// Waits until this rank knows the reference's time; false when `timeout_ns` has passed.
  bool wait_known(std::int64_t timeout_ns);
  base::Result<BarrierAgreement> barrier();

  clock::GlobalClock to_reference() const noexcept { return published_.get(); }
  const clock::Clock& clock() const noexcept { return *environment_.clock; }
  std::optional<Rank> parent() const;
  std::uint64_t measurements() const;

 private:
  void run();
  void watch_measurement();
  template <class Done>
  bool await(std::unique_lock<std::mutex>& lock, std::int64_t timeout_ns, Done&& done);
  void publish();
  void flush(Outbox& outbox);
  void post(Rank to, const Record& record, bool watched);
  base::Error barrier_error(const BarrierBreak& why) const;

  const Environment environment_;
  Messenger& messenger_;

  mutable std::mutex mutex_;          ///< guards the nodes and what follows
  ClockNode node_;
  BarrierNode barrier_;
  std::uint64_t published_version_ = 0;
  bool closed_ = false;
  bool expecting_ = false;            ///< the messenger knows it
  std::condition_variable changed_;   ///< notified of anything that `await` waits for

  PublishedClock published_;
  std::mutex barrier_turn_;           ///< one barrier at a time

  base::Parker parker_;               ///< of the synchronisation thread
  std::atomic<bool> stopping_{false};  ///< set before an unpark, which releases it; read after a park, which acquires
  /// When the synchronisation thread wakes up; a relaxed hint: a wrong one costs one wake-up.
  std::atomic<std::int64_t> planned_ns_{0};
  base::Thread thread_;
};

}  // namespace tandem::comm::internal::sync
