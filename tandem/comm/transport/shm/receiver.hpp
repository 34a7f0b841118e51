// tandem/comm/transport/shm/receiver.hpp: packets out of a ring.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tandem/comm/transport/shm/attachment.hpp"
#include "tandem/comm/transport/shm/pieces.hpp"
#include "tandem/comm/transport/shm/ring.hpp"
#include "tandem/comm/transport/transport.hpp"

namespace tandem::comm::internal {

/// The consuming side of one direction. Control blocks are told where they lie; payloads are copied to where the sink wants them.
/// What the peer wrote is trusted in no length: nothing outside the rings is read, and a record that breaks the format ends it
/// (`malformed`). Calls are serialised by the transport's caller. `attachment` and `round` outlive it.
class Receiver {
 public:
  Receiver() = default;
  Receiver(Attachment& attachment, BellRound& round) noexcept;

  /// Something can be read. By far the most frequent call.
  bool has_work() const noexcept { return consumer_.peek() != 0; }

  /// Tells the sink what has arrived, until there is nothing more or a bounded number of events and bytes was handled; returns
  /// the number of events told. After `malformed` it must not be called any more.
  unsigned receive(Link& link, PacketSink& sink);
  /// Grows with each record that was taken.
  std::uint64_t position() const noexcept { return consumer_.position(); }
  const char* malformed() const noexcept { return malformed_; }

  /// Tells the producer of all that was consumed.
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
  /// Of a record: half of the ring, so that it is contiguous in the double mapping and cannot pass its own tail.
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
  bool ahead_ = false;               ///< it is copied by copy_ahead
  std::uint64_t token_ = 0;
  const char* malformed_ = nullptr;
};

}  // namespace tandem::comm::internal
