// tandem/runtime/sched/contention/message_load.hpp: messages of data under way, for idle workers.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace tandem::runtime {

/// Counts of messages of data under way, by what limits them.
struct MessageCounts {
  unsigned short_awaited = 0;  ///< posted receives for which tasks wait
  unsigned long_awaited = 0;
  unsigned long_leaving = 0;   ///< sends under way; a short one has left when its posting ends

  /// Whether tasks wait for messages, and bandwidth limits neither these nor any send. Then the next task comes with a
  /// message, and each read by an idle worker of what the polling thread writes (queues of tasks, locks) delays it
  /// (thesis, section 5.4.3).
  bool are_latency_bound() const noexcept { return short_awaited > 0 && long_awaited == 0 && long_leaving == 0; }
  /// Whether some thread should poll the network.
  bool are_awaited() const noexcept { return short_awaited > 0 || long_awaited > 0; }
};

/// The counts of messages. `dist` adds and removes each message with the same number of bytes.
///
/// Threads: any. The counts are hints for idle workers, and order nothing: all accesses are relaxed. A worker that
/// reads an old value polls or announces itself once more.
class alignas(64) MessageLoad {
 public:
  /// A message of at least so many bytes is limited by bandwidth.
  static constexpr std::size_t kLongBytes = 64 << 10;

  void begin_receive(std::size_t bytes) noexcept { awaited(bytes).fetch_add(1, std::memory_order_relaxed); }
  void end_receive(std::size_t bytes) noexcept { awaited(bytes).fetch_sub(1, std::memory_order_relaxed); }
  /// Counts a send of one value, to any number of recipients.
  void begin_send(std::size_t bytes) noexcept {
    if (bytes >= kLongBytes) long_leaving_.fetch_add(1, std::memory_order_relaxed);
  }
  void end_send(std::size_t bytes) noexcept {
    if (bytes >= kLongBytes) long_leaving_.fetch_sub(1, std::memory_order_relaxed);
  }

  MessageCounts counts() const noexcept {
    return {.short_awaited = short_awaited_.load(std::memory_order_relaxed),
            .long_awaited = long_awaited_.load(std::memory_order_relaxed),
            .long_leaving = long_leaving_.load(std::memory_order_relaxed)};
  }
  bool is_empty() const noexcept { return !counts().are_awaited() && counts().long_leaving == 0; }

 private:
  std::atomic<unsigned>& awaited(std::size_t bytes) noexcept {
    return bytes >= kLongBytes ? long_awaited_ : short_awaited_;
  }

  std::atomic<unsigned> short_awaited_{0};
  std::atomic<unsigned> long_awaited_{0};
  std::atomic<unsigned> long_leaving_{0};
};

}  // namespace tandem::runtime
