// tandem/comm/transport/shm/sender.cpp: packets into a ring.
#include "tandem/base/narrow.hpp"
#include "tandem/comm/transport/shm/sender.hpp"

#include <algorithm>
#include <chrono>

namespace tandem::comm::internal {
namespace {

/// Bytes that one call copies into the data ring, so that calls are short and the other direction has its turn.
constexpr std::size_t kBytesGivenPerCall = 128 * 1024;

/// Pieces are small enough that the peer starts soon and large enough that their records cost nothing.
constexpr std::size_t kSmallestPiece = 8 * 1024;
constexpr std::size_t kLargestPiece = 32 * 1024;

/// Stores count as slow after this many samples in a row, of pieces of at least this size, that took longer than this.
constexpr unsigned kSlowSamples = 4;
constexpr std::size_t kSampleBytes = 2048;
constexpr double kSlowNsPerByte = 0.25;
constexpr unsigned kPiecesPerSample = 8;  ///< while stores are not slow
constexpr unsigned kPiecesPerProbe = 128;  ///< while stores are slow

}  // namespace

Sender::Sender(Attachment& attachment, const SendLimits& limits, BellRound& round) noexcept
    : producer_(attachment.segment.cells(attachment.outgoing)),
      peer_(&attachment.peer),
      round_(&round),
      limits_(limits),
      open_(true),
      control_(attachment.segment.control[attachment.outgoing]),
      data_(attachment.segment.data[attachment.outgoing]),
      data_bytes_(attachment.segment.sizes.data_bytes) {}

SendStatus Sender::try_send_slowly(const Packet& packet) {
  const RecordHead head{RecordKind::announced, base::narrow<std::uint32_t>(packet.control.size()), 0};
  const std::uint64_t cells = head.cells();
  if (!open_ || !producer_.room(cells)) return starve(cells);
  std::byte* record = producer_.memory().at(producer_.begin(cells));
  const std::uint64_t payload_bytes = packet.payload_bytes;
  std::memcpy(record + 8, &payload_bytes, sizeof payload_bytes);
  std::memcpy(record + head.control_offset(), packet.control.data(), packet.control.size());
  publish(head, cells);

  pieces_.assign(packet.payload.begin(), packet.payload.end());
  cursor_ = PieceCursor(pieces_);
  left_bytes_ = packet.payload_bytes;
  piece_bytes_ =
      std::min(std::clamp(left_bytes_ / 8 / 4096 * 4096, kSmallestPiece, kLargestPiece), limits_.window_bytes);
  cookie_ = packet.cookie;
  posted_ = true;
  open_ = false;
  if (advance() == Progress::sent) return SendStatus::done;
  if (round_->nobody_polls()) [[unlikely]] wait_asleep();
  return SendStatus::posted;
}

SendStatus Sender::starve(std::uint64_t cells) noexcept {
  refused_ = true;
  wanted_cells_ = cells;
  if (open_ && !producer_.sane()) broken_ = true;
  if (round_ != nullptr && round_->nobody_polls()) [[unlikely]] wait_asleep();
  return SendStatus::retry;
}

/// Something waits for the peer, and no thread of this side polls: the peer must ring. If it has made room meanwhile it
/// may have missed the request; then, and when no room is needed, a thread of this side wakes and goes on.
void Sender::wait_asleep() noexcept {
  control_->room_request.ask();
  if (broken_ || can_advance()) round_->ring_own();
}

std::size_t Sender::room_for_piece() noexcept {
  const std::size_t wanted = std::min(piece_bytes_, left_bytes_);
  if (data_sent_ + in_cells(wanted) > data_consumed_ + limits_.window_bytes) {
    // Pairs with the release of Receiver::return_credit.
    data_consumed_ = control_->consumed_data.load(std::memory_order_acquire);
    if (data_sent_ - data_consumed_ > limits_.window_bytes) broken_ = true;
    if (broken_ || data_sent_ + in_cells(wanted) > data_consumed_ + limits_.window_bytes) return 0;
  }
  if (!producer_.room(1)) return 0;
  return std::min(wanted, data_bytes_ - static_cast<std::size_t>(data_sent_ % data_bytes_));
}

/// Copies through the cache, and measures from time to time how long that takes: a store has to fetch the line from the
/// consumer's core, which read it one round of the ring ago. Usually this costs nothing, since the line has left that
/// core's cache meanwhile. Where it costs tens of nanoseconds a line (on virtual machines, for seconds at a time),
/// streaming stores are many times faster. Then one piece of several still goes through the cache, to notice when that
/// is faster again.
void Sender::copy_in(std::byte* to, std::size_t bytes) {
  const bool far = slow_row_ >= kSlowSamples;
  const bool sampled = ++pieces_sent_ % (far ? kPiecesPerProbe : kPiecesPerSample) == 0;
  if (far && !sampled) {
    cursor_.gather_streaming(to, bytes);
    return streamed();
  }
  // The first round of the ring allocates its pages, which is slow, too.
  if (!sampled || bytes < kSampleBytes || data_sent_ < data_bytes_) return cursor_.gather(to, bytes);
  const auto begin = std::chrono::steady_clock::now();
  cursor_.gather(to, bytes);
  const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
  const bool slow = took.count() > kSlowNsPerByte * static_cast<double>(bytes);
  slow_row_ = slow ? std::min(slow_row_ + 1, kSlowSamples) : 0;
}

bool Sender::push_piece() {
  const std::size_t bytes = room_for_piece();
  if (bytes == 0) return false;
  copy_in(data_ + data_sent_ % data_bytes_, bytes);
  data_sent_ += in_cells(bytes);
  left_bytes_ -= bytes;
  (void)producer_.begin(1);
  publish({RecordKind::piece, 0, base::narrow<std::uint32_t>(bytes)}, 1);
  return true;
}

bool Sender::can_advance() noexcept {
  if (posted_) return room_for_piece() > 0;
  return refused_ && open_ && producer_.room(wanted_cells_);
}

Sender::Progress Sender::advance() {
  if (!posted_) {
    if (!has_room_again()) {
      if (refused_ && open_ && !producer_.sane()) broken_ = true;
      return Progress::none;
    }
    return Progress::writable;
  }
  Progress progress = Progress::none;
  for (std::size_t before = left_bytes_; left_bytes_ > 0 && before - left_bytes_ < kBytesGivenPerCall;
       progress = Progress::some)
    if (!push_piece()) return progress;
  if (left_bytes_ > 0) return progress;
  posted_ = false;
  open_ = true;
  return Progress::sent;
}

void Sender::before_sleep() noexcept {
  if (control_ == nullptr) return;
  if (waits()) control_->room_request.ask_before_sleep();
  else control_->room_request.withdraw();
}

void Sender::after_sleep() noexcept {
  if (control_ != nullptr) control_->room_request.withdraw();
}

}  // namespace tandem::comm::internal
