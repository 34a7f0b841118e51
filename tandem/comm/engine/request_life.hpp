// tandem/comm/engine/request_life.hpp: how long an operation is remembered, and which thread frees it.
#pragma once

#include <atomic>
#include <cstdint>

namespace tandem::comm::internal {

/// The references to one operation, and its stage.
///
/// Protocol. A *counted* operation is freed by the thread that drops the last reference; users hold one each, and so do
/// the engine, while the operation goes on, and events that are due. Users hold all references of an *uncounted*
/// operation: the engine uses it until `end`, and does not touch it after that store. The thread that drops the last
/// reference frees it if it has ended; else only the engine has it, and that thread puts it in a list, from which
/// others free it once it has ended (`ended`). So an operation that is waited for, as most receives are, ends without a
/// read-modify-write.
///
/// Storing the stage releases what was written before; a thread that reads it acquires that.
template <template <class> class Atomic>
class RequestLife {
 public:
  static constexpr std::uint8_t kArrived = 1;
  static constexpr std::uint8_t kReleased = 2;

  /// The remaining owner of the operation after a drop.
  enum class Left : std::uint8_t {
    others,
    nobody,  ///< the caller must free it
    engine,  ///< it is uncounted and has not ended
  };

  // Called by the engine before others see the operation, which begins as counted, with one reference.
  void keep() noexcept { references_.store(2, std::memory_order_relaxed); }  ///< adds the engine's reference
  void leave_to_users() noexcept { counted_ = false; }                       ///< makes it uncounted from now on

  bool counted() const noexcept { return counted_; }
  void retain() noexcept { references_.fetch_add(1, std::memory_order_relaxed); }  ///< the caller holds one already
  Left drop() noexcept {
    // The decrement releases what this holder wrote; the last one acquires it. A single holder stays the only one,
    // since only a holder makes others.
    if (references_.load(std::memory_order_acquire) != 1 && references_.fetch_sub(1, std::memory_order_acq_rel) != 1)
      return Left::others;
    return counted_ || ended() ? Left::nobody : Left::engine;
  }

  std::uint8_t stage_now() const noexcept { return stage_.load(std::memory_order_acquire); }
  bool ended() const noexcept { return (stage_now() & kReleased) != 0; }
  void mark_arrived() noexcept { stage_.store(kArrived, std::memory_order_release); }
  /// Ends an uncounted operation: the engine's last access.
  void end() noexcept { stage_.store(kArrived | kReleased, std::memory_order_release); }

 private:
  Atomic<std::uint32_t> references_{1};
  Atomic<std::uint8_t> stage_{0};
  bool counted_ = true;
};

}  // namespace tandem::comm::internal
