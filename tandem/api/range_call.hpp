// tandem/api/range_call.hpp: state shared by the chunks of one `parallel_for` or `map_reduce`, so that none outlives
// the call.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

namespace tandem::internal {

/// The chunks use objects of the caller's (`body`, partial results). A wait for them may throw while some have not
/// ended (`StuckError`), so the call closes this when it returns: no chunk begins from then on, and it waits for the
/// running ones.
///
/// Threads: any may use `Chunk`, the calling thread `Guard`. Both sides write, then read what the other writes,
/// sequentially consistent: so either the chunk sees that the call is over, or the call sees that the chunk runs.
class RangeCall {
 public:
  /// Lives while a chunk runs. `may_run` false: the call is over, and the chunk must not touch its objects.
  class Chunk {
   public:
    explicit Chunk(RangeCall& call) noexcept : call_(call) { call_.running_.fetch_add(1, std::memory_order_seq_cst); }
    ~Chunk() { call_.running_.fetch_sub(1, std::memory_order_release); }
    Chunk(const Chunk&) = delete;
    Chunk& operator=(const Chunk&) = delete;
    bool may_run() const noexcept { return !call_.over_.load(std::memory_order_seq_cst); }

   private:
    RangeCall& call_;
  };

  /// Closes the call at its end.
  class Guard {
   public:
    explicit Guard(RangeCall& call) noexcept : call_(call) {}
    ~Guard() {
      call_.over_.store(true, std::memory_order_seq_cst);
      while (call_.running_.load(std::memory_order_seq_cst) != 0)
        std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;

   private:
    RangeCall& call_;
  };

 private:
  std::atomic<std::uint32_t> running_{0};
  std::atomic<bool> over_{false};
};

}  // namespace tandem::internal
