// tandem/comm/engine/copy_meeting.hpp: two processes copy one message from both its ends until they meet.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

namespace tandem::comm::internal {

/// One side of a copy in which both take part. The message is cut into parts; the receiver reads them from the first
/// one on, the sender writes them from the last one on. So a side with a core of its own does more, and one that sleeps
/// delays nothing.
///
/// Protocol. Both share a word, zero at first, in which the receiver begins: the stream's number (32 bits), the first
/// part that is left, and the end of those (16 bits each). Then it informs the sender (`wire::Share`). Each side takes
/// its next part by compare-and-exchange until none is left, so that no part is taken twice. Only the receiver begins,
/// and not again before the sender has said that it has finished what it took. The word orders nothing but itself
/// (relaxed); records say which bytes are there. The other side may write anything there: what a side takes is always
/// the next part in its own order, or nothing.
///
/// Not thread-safe: each side belongs to its engine. Tested under all orders of steps with up to four preemptions:
/// tests/interleave/copy_meeting_interleave_test.cpp.
template <class Word>
class CopyMeeting {
 public:
  static constexpr std::uint32_t kMostParts = 0xffff;

  /// The receiver's side, which begins. `parts` is at most `kMostParts`.
  static CopyMeeting begin(Word& word, std::uint32_t stream, std::uint32_t parts) noexcept {
    word.store(State{stream, 0, parts}.word(), std::memory_order_relaxed);
    return CopyMeeting(word, stream, parts, true);
  }
  /// The sender's side, after `wire::Share`.
  static CopyMeeting join(Word& word, std::uint32_t stream, std::uint32_t parts) noexcept {
    return CopyMeeting(word, stream, parts, false);
  }

  /// The next part for this side; nothing: none is left.
  std::optional<std::uint32_t> take() noexcept {
    std::uint64_t seen = word_->load(std::memory_order_relaxed);
    while (true) {
      State state = State::from(seen);
      const bool sane = state.stream == stream_ && state.first < state.end && state.end <= parts_;
      if (!sane || (receives_ ? state.first : parts_ - state.end) != taken_) return std::nullopt;
      const std::uint32_t part = receives_ ? state.first++ : --state.end;
      if (word_->compare_exchange_weak(seen, state.word(), std::memory_order_relaxed, std::memory_order_relaxed)) {
        ++taken_;
        return part;
      }
    }
  }

  /// Whether there is a part that neither side has taken. None once means none for ever.
  bool left() const noexcept {
    const State state = State::from(word_->load(std::memory_order_relaxed));
    return state.stream == stream_ && state.first < state.end;
  }

  std::uint32_t parts() const noexcept { return parts_; }
  std::uint32_t taken() const noexcept { return taken_; }

 private:
  struct State {
    std::uint32_t stream, first, end;
    static State from(std::uint64_t word) noexcept {
      return {static_cast<std::uint32_t>(word >> 32), static_cast<std::uint32_t>(word >> 16 & 0xffff),
              static_cast<std::uint32_t>(word & 0xffff)};
    }
    std::uint64_t word() const noexcept { return std::uint64_t{stream} << 32 | first << 16 | end; }
  };

  CopyMeeting(Word& word, std::uint32_t stream, std::uint32_t parts, bool receives) noexcept
      : word_(&word), stream_(stream), parts_(parts), receives_(receives) {}

  Word* word_;
  std::uint32_t stream_;
  std::uint32_t parts_;
  std::uint32_t taken_ = 0;
  bool receives_;
};

/// Number of parts of a message that both sides copy; the last part may be shorter.
inline std::uint64_t parts_of(std::uint64_t bytes, std::uint64_t part_bytes) noexcept {
  return (bytes + part_bytes - 1) / part_bytes;
}

}  // namespace tandem::comm::internal
