// tandem/runtime/sched/message_load.hpp: which messages of data are under way, as far as idle workers are concerned.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace tandem::runtime {

/// Messages of data that are under way here, by what limits them.
struct MessageCounts {
  unsigned short_awaited = 0;  ///< receives that are posted, for which tasks wait
  unsigned long_awaited = 0;
  unsigned long_leaving = 0;   ///< sends under way; short ones have left when their posting ends

  /// Tasks wait for messages, of which none is limited by bandwidth, nor is one that leaves. Then the next task comes with a message, and each look
  /// of an idle worker at what the thread writes that serves the network (queues of tasks, locks) delays it (thesis, section 5.4.3).
  bool are_latency_bound() const noexcept { return short_awaited > 0 && long_awaited == 0 && long_leaving == 0; }
  /// Somebody should poll the network.
  bool are_awaited() const noexcept { return short_awaited > 0 || long_awaited > 0; }
};

/// Counts them. `dist` adds and removes each message by one number of bytes.
///
/// Threads: any. The counts are hints for idle workers, and order nothing: all accesses are relaxed. A worker that reads an old value polls once
/// more, or announces itself once more.
class alignas(64) MessageLoad {
 public:
  /// From so many bytes on a message is limited by bandwidth.
  static constexpr std::size_t kLongBytes = 64 << 10;

  void begin_receive(std::size_t bytes) noexcept { awaited(bytes).fetch_add(1, std::memory_order_relaxed); }
  void end_receive(std::size_t bytes) noexcept { awaited(bytes).fetch_sub(1, std::memory_order_relaxed); }
  /// One value, to any number of recipients.
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
  std::atomic<unsigned>& awaited(std::size_t bytes) noexcept { return bytes >= kLongBytes ? long_awaited_ : short_awaited_; }

  std::atomic<unsigned> short_awaited_{0};
  std::atomic<unsigned> long_awaited_{0};
  std::atomic<unsigned> long_leaving_{0};
};

}  // namespace tandem::runtime
