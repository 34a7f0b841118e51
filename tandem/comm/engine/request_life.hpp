// tandem/comm/engine/request_life.hpp: how long an operation is remembered, and which thread frees it.
#pragma once

#include <atomic>
#include <cstdint>

namespace tandem::comm::internal {

/// References to one operation, and how far it is.
///
/// Protocol. A *counted* operation is freed by the thread that drops the last reference; users hold one each, and so do the engine,
/// while it goes on, and events that are due. Of an *uncounted* one users hold all references: the engine has it until `end`, and
/// does not touch it any more after that store. The thread that drops the last reference frees it when it has ended; if it has not,
/// only the engine has it, and that thread puts it in a list, from which others free it once it has (`ended`). So what
/// is waited for, as most receives are, is ended without a read-modify-write.
///
/// The stage releases what was written before, and a thread that reads it acquires that.
template <template <class> class Atomic>
class RequestLife {
 public:
  static constexpr std::uint8_t kArrived = 1;
  static constexpr std::uint8_t kReleased = 2;

  /// What still has it after a drop.
  enum class Left : std::uint8_t {
    others,
    nobody,  ///< the caller is to free it
    engine,  ///< it is uncounted and has not ended
  };

  // By the engine, before others see it. It begins as counted, with one reference.
  void keep() noexcept { references_.store(2, std::memory_order_relaxed); }  ///< the engine's, beside the caller's
  void leave_to_users() noexcept { counted_ = false; }                       ///< from now on it is uncounted

  bool counted() const noexcept { return counted_; }
  void retain() noexcept { references_.fetch_add(1, std::memory_order_relaxed); }  ///< the caller holds one already
  Left drop() noexcept {
    // Releases what this holder wrote; the last one acquires it. The only holder stays the only one, since only a
    // holder makes others.
    if (references_.load(std::memory_order_acquire) != 1 && references_.fetch_sub(1, std::memory_order_acq_rel) != 1)
      return Left::others;
    return counted_ || ended() ? Left::nobody : Left::engine;
  }

  std::uint8_t stage_now() const noexcept { return stage_.load(std::memory_order_acquire); }
  bool ended() const noexcept { return (stage_now() & kReleased) != 0; }
  void mark_arrived() noexcept { stage_.store(kArrived, std::memory_order_release); }
  /// Of an uncounted one the engine's last touch.
  void end() noexcept { stage_.store(kArrived | kReleased, std::memory_order_release); }

 private:
  Atomic<std::uint32_t> references_{1};
  Atomic<std::uint8_t> stage_{0};
  bool counted_ = true;
};

}  // namespace tandem::comm::internal
