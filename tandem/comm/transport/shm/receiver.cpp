// tandem/comm/transport/shm/receiver.cpp: packets out of a ring.
#include "tandem/comm/transport/shm/receiver.hpp"

#include <algorithm>
#include <cstring>

namespace tandem::comm::internal {
namespace {

/// Bytes that one call handles before other peers have their turn.
constexpr std::size_t kBytesTakenPerCall = 256 * 1024;
/// Events that one call reports. A caller that waits for the oldest of some tens of receives posts new ones after it.
/// If it got all messages at once, the later ones would find no receive posted, and that costs more than another call.
constexpr unsigned kMostEvents = 8;
/// The producer gets credit for the data ring after this many bytes.
constexpr std::uint64_t kCreditBytes = 64 * 1024;

/// Lines of a record that are prefetched at once.
constexpr std::uint64_t kMostAhead = 20;

/// Payloads from this size on, mostly segments of long messages, are copied without prefetches: smaller ones gain 5 %
/// by them, but where the target is not in a cache either they cost as much.
constexpr std::uint64_t kLongBytes = 512 * 1024;

constexpr const char* kTooLong = "a record is longer than the ring allows";

}  // namespace

Receiver::Receiver(Attachment& attachment, BellRound& round) noexcept
    : consumer_(attachment.segment.cells(1 - attachment.outgoing)),
      most_cells_(consumer_.memory().cells() / 2),
      peer_(&attachment.peer),
      round_(&round),
      control_(attachment.segment.control[1 - attachment.outgoing]),
      data_(attachment.segment.data[1 - attachment.outgoing]),
      data_bytes_(attachment.segment.sizes.data_bytes) {}

unsigned Receiver::receive(Link& link, PacketSink& sink) {
  unsigned events = 0;
  std::size_t handled = 0;
  while (events < kMostEvents && handled < kBytesTakenPerCall) {
    const std::uint64_t word = consumer_.peek();  // read once: the peer could change it
    if (word == 0) break;
    const RecordHead head = RecordHead::from(word);
    const bool is_short = RecordHead::is_short(word);  // then it is plain as well, and this test is cheaper
    if ((is_short || RecordHead::is_plain(word)) && awaited_bytes_ == 0) [[likely]] {
      std::uint64_t cells = 1;
      if (!is_short) {
        cells = head.cells();
        if (cells > most_cells_) [[unlikely]] return events + spoiled(kTooLong);
        ask_for(head.lines());
        handled += cells * kCellBytes;
      }
      const std::byte* const control = consumer_.memory().at(consumer_.position()) + sizeof word;
      const char* const malformed = sink.arrived_whole(link, {control, head.control_bytes});
      if (malformed != nullptr) [[unlikely]] return events + spoiled(malformed);
      consumer_.consume(cells);
      ++events;
    } else {
      events += take(link, sink, head);
      if (malformed_ != nullptr) return events;
      handled += head.cells() * kCellBytes + head.payload_bytes;
    }
    if (consumer_.credit_due()) [[unlikely]] return_credit();
  }
  if (data_position_ != data_returned_) return_credit();
  return events;
}

/// Prefetches the record's other lines, which arrive from the other core while the first one is processed.
inline void Receiver::ask_for(std::uint64_t filled) const noexcept {
  const std::byte* const record = consumer_.memory().at(consumer_.position());
  const std::uint64_t lines = std::min(filled, kMostAhead);
  for (std::uint64_t line = 1; line < lines; ++line) __builtin_prefetch(record + line * kCellBytes);
}

/// Takes a record of another kind, or a wrong one.
unsigned Receiver::take(Link& link, PacketSink& sink, const RecordHead& head) {
  if (head.cells() > most_cells_) return spoiled(kTooLong);
  switch (head.kind) {
    case RecordKind::whole: return take_whole(link, sink, head);
    case RecordKind::announced: return take_announced(link, sink, head);
    case RecordKind::piece: return take_piece(link, sink, head);
    case RecordKind::none: break;
  }
  return spoiled("a record is of no known kind");
}

unsigned Receiver::take_whole(Link& link, PacketSink& sink, const RecordHead& head) {
  if (awaited_bytes_ > 0) return spoiled("a packet begins within another one's payload");
  if (head.control_bytes == 0) return spoiled("a packet has no control block");
  const std::byte* record = consumer_.memory().at(consumer_.position());
  ask_for(head.lines());
  const Landing landing = sink.arrived(link, {record + head.control_offset(), head.control_bytes}, head.payload_bytes);
  if (landing.malformed != nullptr) return spoiled(landing.malformed);
  PieceCursor(landing.pieces).scatter(record + head.payload_offset(), head.payload_bytes);
  sink.landed(link, landing.token);
  consumer_.consume(head.cells());
  return 2;
}

unsigned Receiver::take_announced(Link& link, PacketSink& sink, const RecordHead& head) {
  if (awaited_bytes_ > 0) return spoiled("a packet begins within another one's payload");
  if (head.control_bytes == 0) return spoiled("a packet has no control block");
  const std::byte* record = consumer_.memory().at(consumer_.position());
  std::uint64_t payload_bytes = 0;
  std::memcpy(&payload_bytes, record + 8, sizeof payload_bytes);
  std::atomic_signal_fence(std::memory_order_seq_cst);  // read once: the peer could change it
  if (payload_bytes == 0 || payload_bytes > kMostPayloadBytes)
    return spoiled("an announced payload is empty or too large");
  const Landing landing = sink.arrived(link, {record + head.control_offset(), head.control_bytes}, payload_bytes);
  if (landing.malformed != nullptr) return spoiled(landing.malformed);
  awaited_bytes_ = payload_bytes;
  ahead_ = payload_bytes < kLongBytes;
  cursor_ = PieceCursor(landing.pieces);
  token_ = landing.token;
  consumer_.consume(head.cells());
  return 1;
}

unsigned Receiver::take_piece(Link& link, PacketSink& sink, const RecordHead& head) {
  const std::size_t offset = static_cast<std::size_t>(data_position_ % data_bytes_);
  if (head.payload_bytes == 0 || head.payload_bytes > awaited_bytes_ || head.payload_bytes > data_bytes_ - offset)
    return spoiled("a piece of a payload lies outside of it or of the ring");
  if (ahead_) cursor_.scatter_ahead(data_ + offset, head.payload_bytes);
  else cursor_.scatter(data_ + offset, head.payload_bytes);
  data_position_ += in_cells(head.payload_bytes);
  consumer_.consume(head.cells());
  if (data_position_ - data_returned_ >= kCreditBytes) return_credit();
  awaited_bytes_ -= head.payload_bytes;
  if (awaited_bytes_ > 0) return 0;
  sink.landed(link, token_);
  return 1;
}

unsigned Receiver::spoiled(const char* reason) noexcept {
  malformed_ = reason;
  return 0;
}

void Receiver::return_credit() {
  data_returned_ = data_position_;
  // pairs with the acquire of Sender::room_for_piece
  control_->consumed_data.store(data_position_, std::memory_order_release);
  consumer_.return_credit();
  round_->add(*peer_, false);
}

void Receiver::settle() {
  if (control_ != nullptr && (consumer_.credit_pending() || data_position_ != data_returned_)) return_credit();
}

}  // namespace tandem::comm::internal
