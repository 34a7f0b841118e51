// tandem/comm/transport/shm/receiver.hpp: packets out of a ring.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tandem/comm/transport/shm/attachment.hpp"
#include "tandem/comm/transport/shm/pieces.hpp"
#include "tandem/comm/transport/shm/ring.hpp"
#include "tandem/comm/transport/transport.hpp"

namespace tandem::comm::internal {

/// The consuming side of one direction. It reports control blocks in place, and copies payloads to where the sink wants
/// them. It trusts no length that the peer wrote: it reads nothing outside the rings, and stops at a record that breaks
/// the format (`malformed`). Calls are serialised by the transport's caller. `attachment` and `round` outlive it.
class Receiver {
 public:
  Receiver() = default;
  Receiver(Attachment& attachment, BellRound& round) noexcept;

  /// Whether something can be read; by far the most frequent call.
  bool has_work() const noexcept { return consumer_.peek() != 0; }

  /// Reports to the sink what has arrived, up to a bounded number of events and bytes; returns the number of events.
  /// Not to be called after `malformed`.
  unsigned receive(Link& link, PacketSink& sink);
  /// The position in the ring, which grows with each record taken.
  std::uint64_t position() const noexcept { return consumer_.position(); }
  const char* malformed() const noexcept { return malformed_; }

  /// Returns the credit for all that was consumed.
  void settle();

 private:
  void ask_for(std::uint64_t filled) const noexcept;
  [[gnu::noinline]] unsigned take(Link& link, PacketSink& sink, const RecordHead& head);
  unsigned take_whole(Link& link, PacketSink& sink, const RecordHead& head);
  unsigned take_announced(Link& link, PacketSink& sink, const RecordHead& head);
  unsigned take_piece(Link& link, PacketSink& sink, const RecordHead& head);
  unsigned spoiled(const char* reason) noexcept;
  void return_credit();

  RingConsumer<CellMemory> consumer_;
  /// Longest record: half of the ring, so that it is contiguous in the double mapping and cannot pass its own tail.
  std::uint64_t most_cells_ = 0;
  Doorbell* peer_ = nullptr;
  BellRound* round_ = nullptr;
  DirectionControl* control_ = nullptr;
  const std::byte* data_ = nullptr;
  std::size_t data_bytes_ = 0;
  std::uint64_t data_position_ = 0;
  std::uint64_t data_returned_ = 0;
  std::uint64_t awaited_bytes_ = 0;  ///< of the announced packet's payload
  PieceCursor cursor_;
  bool ahead_ = false;               ///< its payload is copied by copy_ahead
  std::uint64_t token_ = 0;
  const char* malformed_ = nullptr;
};

}  // namespace tandem::comm::internal
