// tandem/comm/transport/shm/sender.hpp: packets into a ring.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "tandem/comm/transport/shm/attachment.hpp"
#include "tandem/comm/transport/shm/pieces.hpp"
#include "tandem/comm/transport/shm/ring.hpp"
#include "tandem/comm/transport/transport.hpp"

namespace tandem::comm::internal {

/// How a sender uses its rings; equal for all peers of a transport.
struct SendLimits {
  std::size_t inline_bytes = 0;  ///< payloads up to this size lie in the record
  std::size_t window_bytes = 0;  ///< most bytes of the data ring in flight
};

/// The producing side of one direction. A packet with a small payload is one record. One with a larger payload is
/// announced, and its payload goes through the data ring in pieces, each with a record of its own, while the peer
/// copies out the earlier ones. What does not fit at once is copied later (`posted`); until then the sender takes no
/// other packet. Calls are serialised by the transport's caller. `attachment` and `round` outlive it.
///
/// A thread may send while its endpoint sleeps. What then waits (a caller that got `retry`, the rest of a payload) goes
/// on when the peer makes room, since the sender asks it to ring (`RoomRequest`).
class Sender {
 public:
  Sender() = default;
  Sender(Attachment& attachment, const SendLimits& limits, BellRound& round) noexcept;

  /// `heard`, here and below: position up to which this side has read what the peer writes.
  SendStatus try_send(const Packet& packet, std::uint64_t heard) {
    if (packet.payload_bytes > limits_.inline_bytes || !open_) [[unlikely]] return try_send_slowly(packet);
    RecordHead head{RecordKind::whole, static_cast<std::uint32_t>(packet.control.size()),
                    static_cast<std::uint32_t>(packet.payload_bytes)};
    set_apart(head, heard);
    const std::uint64_t cells = head.cells();
    if (!producer_.room(cells)) [[unlikely]] return starve(cells);
    std::byte* record = producer_.memory().at(producer_.begin(cells));
    // The first line is written last: the peer polls it.
    if (packet.payload_bytes > 0)
      PieceCursor(packet.payload).gather(record + head.payload_offset(), packet.payload_bytes);
    std::memcpy(record + head.control_offset(), packet.control.data(), packet.control.size());
    publish(head, cells);
    claim_lines(head.lines());
    return SendStatus::done;
  }

  /// As `Link::reserve`: room in the ring. Empty: none now.
  std::span<std::byte> reserve(std::size_t bytes, std::uint64_t heard) {
    RecordHead head = reserved_head(bytes);
    if (bytes > Link::kFirstBytes) [[unlikely]] {
      set_apart(head, heard);
      reserved_apart_ = head.apart;
    }
    const std::uint64_t cells = bytes <= Link::kFirstBytes ? 1 : head.cells();
    if (!open_ || !producer_.room(cells)) [[unlikely]] return starve(cells), std::span<std::byte>();
    return {producer_.memory().at(producer_.begin(cells)) + head.control_offset(), bytes};
  }
  /// As `Link::line`.
  std::byte* line() const noexcept {
    return open_ && producer_.has_begun_cell() ? producer_.memory().at(producer_.position()) + sizeof(std::uint64_t)
                                               : nullptr;
  }
  void send_reserved(std::size_t bytes) {
    RecordHead head = reserved_head(bytes);
    if (bytes <= Link::kFirstBytes) [[likely]] return publish(head, 1);
    head.apart = reserved_apart_;
    publish(head, head.cells());
    claim_lines(head.lines());
  }

  /// Notes that `retry` was answered before the link was attached.
  void expect_caller() noexcept { refused_ = true; }
  /// Whether something waits for room, or for its turn.
  bool waits() const noexcept { return posted_ || refused_; }
  /// Whether `advance` would make progress.
  bool can_advance() noexcept;
  /// As `Link::has_room_again`.
  bool has_room_again() noexcept {
    if (posted_ || !can_advance()) return false;
    refused_ = false;
    return true;
  }
  enum class Progress { none, some, sent, writable };
  /// Copies more of the posted payload, or finds that there is room for a refused caller (returned once).
  Progress advance();
  std::uint64_t cookie() const noexcept { return cookie_; }

  /// Called when this side is about to sleep, and when it has woken: see `RoomRequest`.
  void before_sleep() noexcept;
  void after_sleep() noexcept;

  /// Whether the peer's counts are impossible.
  bool broken() const noexcept { return broken_; }

 private:
  /// Puts a gap behind a long record when the peer has written something since the last one, and probably waits for
  /// this one. A series of records has no gap: there the prefetches of the peer's core help.
  void set_apart(RecordHead& head, std::uint64_t heard) noexcept {
    if (head.lines() < kLinesApart || std::exchange(heard_, heard) == heard) return;
    head.apart = open_ && producer_.room(head.lines() + RecordHead::kApartCells + producer_.memory().cells() / 4);
  }
  static constexpr RecordHead reserved_head(std::size_t bytes) noexcept {
    return {RecordKind::whole, static_cast<std::uint32_t>(bytes), 0};
  }
  static_assert(RecordHead{RecordKind::whole}.control_offset() + Link::kFirstBytes == kCellBytes);
  SendStatus try_send_slowly(const Packet& packet);
  SendStatus starve(std::uint64_t cells) noexcept;
  void publish(const RecordHead& head, std::uint64_t cells) {
    producer_.publish(head.word(), cells);
    round_->add(*peer_, true);
  }
  /// Prefetches lines for the next record, which is probably as long, except its first line, which the peer polls.
  void claim_lines(std::uint64_t lines) const noexcept {
    if (lines == 1) return;
    const std::byte* const next = producer_.memory().at(producer_.position());
    for (std::size_t line = 1; line < lines; ++line) claim_line(next + line * kCellBytes);
  }
  bool push_piece();
  void copy_in(std::byte* to, std::size_t bytes);
  std::size_t room_for_piece() noexcept;
  void wait_asleep() noexcept;

  static constexpr std::uint64_t kLinesApart = 8;  ///< least lines of a long record; below, the gap does not pay

  RingProducer<CellMemory> producer_;
  bool reserved_apart_ = false;  ///< of the record that was reserved last, if it is longer than a line
  std::uint64_t heard_ = 0;  ///< at the time of the last long record
  Doorbell* peer_ = nullptr;
  BellRound* round_ = nullptr;
  SendLimits limits_;
  bool open_ = false;     ///< attached, sane, and nothing is posted: packets can be taken
  bool posted_ = false;   ///< the ring does not have all of a packet's payload yet
  bool refused_ = false;  ///< a caller got `retry`
  bool broken_ = false;
  std::uint64_t wanted_cells_ = 1;  ///< that the refused caller needs
  std::uint64_t cookie_ = 0;

  DirectionControl* control_ = nullptr;
  std::byte* data_ = nullptr;
  std::size_t data_bytes_ = 0;
  std::uint64_t data_sent_ = 0;
  std::uint64_t data_consumed_ = 0;  ///< as last read
  std::vector<iovec> pieces_;        ///< of the posted packet
  PieceCursor cursor_;
  std::size_t piece_bytes_ = 0;
  std::size_t left_bytes_ = 0;
  unsigned pieces_sent_ = 0;         ///< for sampling
  unsigned slow_row_ = 0;            ///< samples in a row that were slow to store
};

}  // namespace tandem::comm::internal
