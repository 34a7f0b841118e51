// tandem/comm/transport/tcp/frame_writer.cpp: packets into one stream socket, whole or with the rest kept for later.
#include "tandem/comm/transport/tcp/frame_writer.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <span>

#include "tandem/base/assert.hpp"
#include "tandem/comm/transport/tcp/frame.hpp"

namespace tandem::comm::internal {

namespace {


/// The pieces of a packet that one system call gets.
struct Offer {
  explicit Offer(std::size_t burst) : most_bytes(burst) {}
  void add(const iovec& piece) {
    const std::size_t taken = std::min(piece.iov_len, most_bytes - bytes);
    pieces[count++] = {piece.iov_base, taken};
    bytes += taken;
  }
  bool full() const { return count == pieces.size() || bytes == most_bytes; }

  std::size_t most_bytes;
  std::array<iovec, most_pieces_per_call> pieces;
  std::size_t count = 0;
  std::size_t bytes = 0;
};

ssize_t send_offer(int fd, Offer& offer) {
  msghdr message{};
  message.msg_iov = offer.pieces.data();
  message.msg_iovlen = offer.count;
  // Marks the end of a record: the kernel joins no later bytes to these in one unit of transmission.
  const int flags = MSG_DONTWAIT | MSG_NOSIGNAL | (offer.most_bytes != SIZE_MAX ? MSG_EOR : 0);
  ssize_t sent = 0;
  do {
    sent = sendmsg(fd, &message, flags);
  } while (sent < 0 && errno == EINTR);
  return sent;
}

ssize_t send_bytes(int fd, const std::byte* bytes, std::size_t size) {
  ssize_t sent = 0;
  do {
    sent = send(fd, bytes, size, MSG_DONTWAIT | MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  return sent;
}

bool would_block(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == ENOBUFS || error == ENOMEM; }

iovec piece_of(const void* begin, std::size_t bytes) { return {const_cast<void*>(begin), bytes}; }

}  // namespace

FrameWriter::Progress FrameWriter::write(int fd, const Packet& packet, std::uint32_t splices_read) {
  TANDEM_DEBUG_ASSERT(!unfinished() && !packet.control.empty());
  spliced_ = false;
  const FrameHeader header = FrameHeader::of(packet.control.size(), packet.payload_bytes, splices_read);
  const std::size_t bytes = sizeof header + packet.control.size() + packet.payload_bytes;
  return bytes <= together_bytes ? write_together(fd, packet, header) : write_pieces(fd, packet, header);
}

FrameWriter::Progress FrameWriter::write_header(int fd, std::uint32_t splices_read) {
  TANDEM_DEBUG_ASSERT(!unfinished());
  spliced_ = false;
  return write_together(fd, Packet{.control = {}}, FrameHeader::of(0, 0, splices_read));
}

FrameWriter::Progress FrameWriter::write_together(int fd, const Packet& packet, const FrameHeader& header) {
  alignas(16) std::byte bytes[together_bytes];
  std::memcpy(bytes, &header, sizeof header);
  std::size_t size = sizeof header;
  if (!packet.control.empty()) std::memcpy(bytes + size, packet.control.data(), packet.control.size());
  size += packet.control.size();
  for (const iovec& piece : packet.payload) {
    if (piece.iov_len > 0) std::memcpy(bytes + size, piece.iov_base, piece.iov_len);
    size += piece.iov_len;
  }
  const ssize_t sent = send_bytes(fd, bytes, size);
  if (sent <= 0) return failure();
  written_bytes_ += static_cast<std::uint64_t>(sent);
  if (sent == static_cast<ssize_t>(size)) return Progress::whole;
  head_.assign(bytes + sent, bytes + size);
  head_begin_ = 0;
  pieces_.clear();
  next_piece_ = 0;
  unfinished_bytes_ = head_.size();
  refers_to_payload_ = false;
  return Progress::partial;
}

FrameWriter::Progress FrameWriter::write_pieces(int fd, const Packet& packet, const FrameHeader& header) {
  Offer offer(burst_bytes_);
  offer.add(piece_of(&header, sizeof header));
  offer.add(piece_of(packet.control.data(), packet.control.size()));
  for (std::size_t i = 0; i < packet.payload.size() && !offer.full(); ++i) offer.add(packet.payload[i]);
  const ssize_t sent = send_offer(fd, offer);
  if (sent <= 0) return failure();
  written_bytes_ += static_cast<std::uint64_t>(sent);
  const std::size_t all = sizeof header + packet.control.size() + packet.payload_bytes;
  if (static_cast<std::size_t>(sent) == all) return Progress::whole;
  keep_rest(packet, header, static_cast<std::size_t>(sent));
  // The kernel took the whole offer, so it may take more.
  if (static_cast<std::size_t>(sent) == offer.bytes && resume(fd) == Progress::broken) return Progress::broken;
  if (unfinished()) return Progress::partial;
  release_payload();  // the caller learns it from this call, and needs no `sent`
  return Progress::whole;
}

FrameWriter::Progress FrameWriter::write_spliced(int fd, const Packet& packet, std::uint32_t splices_read,
                                                 SplicePipe& pipe) {
  TANDEM_DEBUG_ASSERT(!unfinished() && !packet.control.empty() && packet.payload_bytes > 0);
  keep_rest(packet, FrameHeader::of(packet.control.size(), packet.payload_bytes, splices_read, true), 0);
  release_payload();
  spliced_ = true;
  const std::size_t all = unfinished_bytes_;
  pipe_ = &pipe;
  const Progress progress = resume(fd);
  if (progress == Progress::blocked && unfinished_bytes_ == all) abandon();
  return progress;
}

void FrameWriter::keep_rest(const Packet& packet, const FrameHeader& header, std::size_t written) {
  const auto header_bytes = std::as_bytes(std::span(&header, 1));
  unfinished_bytes_ = sizeof header + packet.control.size() + packet.payload_bytes - written;
  head_.clear();
  head_begin_ = 0;
  for (const std::span<const std::byte> part : {header_bytes, packet.control}) {
    const std::size_t done = std::min(written, part.size());
    head_.insert(head_.end(), part.begin() + static_cast<std::ptrdiff_t>(done), part.end());
    written -= done;
  }
  pieces_.assign(packet.payload.begin(), packet.payload.end());
  next_piece_ = 0;
  skip_pieces(written);
  refers_to_payload_ = packet.payload_bytes > 0;
  cookie_ = packet.cookie;
}

void FrameWriter::skip_pieces(std::size_t bytes) noexcept {
  while (next_piece_ < pieces_.size() && bytes >= pieces_[next_piece_].iov_len) bytes -= pieces_[next_piece_++].iov_len;
  if (bytes == 0) return;
  iovec& piece = pieces_[next_piece_];
  piece = {static_cast<char*>(piece.iov_base) + bytes, piece.iov_len - bytes};
}

/// Notes that the kernel has taken `bytes` more.
void FrameWriter::account(std::size_t bytes) noexcept {
  written_bytes_ += bytes;
  unfinished_bytes_ -= bytes;
}

FrameWriter::Progress FrameWriter::resume(int fd) {
  TANDEM_DEBUG_ASSERT(unfinished());
  const std::uint64_t before = written_bytes_;
  Progress progress = pipe_ != nullptr ? resume_splicing(fd) : Progress::whole;
  if (progress == Progress::whole && unfinished()) progress = resume_copying(fd);
  return progress == Progress::blocked && written_bytes_ != before ? Progress::partial : progress;
}

/// Writes until the socket is full, everything is written, or the kernel cannot reference the next memory.
FrameWriter::Progress FrameWriter::resume_splicing(int fd) {
  // The head goes alone. Together with pages that fill whole units, it would leave a few bytes over, which the kernel
  // sends only after an acknowledgement (64 KiB took twice as long).
  while (head_begin_ < head_.size()) {
    const ssize_t sent = send_bytes(fd, head_.data() + head_begin_, head_.size() - head_begin_);
    if (sent <= 0) return failure();
    account(static_cast<std::size_t>(sent));
    head_begin_ += static_cast<std::size_t>(sent);
  }
  PipeSignalHeld signal;
  while (unfinished_bytes_ > 0) {
    std::size_t held = pipe_->held_by(this);
    if (held == 0) {
      if (pipe_->open_to(this)) held = pipe_->fill(this, std::span(pieces_).subspan(next_piece_));
      if (held == 0) break;
      skip_pieces(held);
    }
    const ssize_t moved = pipe_->drain(fd, held < unfinished_bytes_);
    if (moved <= 0) {
      if (moved < 0 && errno == EPIPE) signal.raised();
      return failure();
    }
    account(static_cast<std::size_t>(moved));
  }
  pipe_ = nullptr;
  return Progress::whole;
}

/// Writes until the socket is full or everything is written.
FrameWriter::Progress FrameWriter::resume_copying(int fd) {
  while (unfinished_bytes_ > 0) {
    Offer offer(burst_bytes_);
    if (head_begin_ < head_.size()) offer.add({head_.data() + head_begin_, head_.size() - head_begin_});
    for (std::size_t i = next_piece_; i < pieces_.size() && !offer.full(); ++i) offer.add(pieces_[i]);
    const ssize_t sent = send_offer(fd, offer);
    if (sent <= 0) return failure();
    const auto done = static_cast<std::size_t>(sent);
    account(done);
    const std::size_t of_head = std::min(done, head_.size() - head_begin_);
    head_begin_ += of_head;
    skip_pieces(done - of_head);
    if (done < offer.bytes) return Progress::partial;  // the kernel is full
  }
  return Progress::whole;
}

FrameWriter::Progress FrameWriter::failure() noexcept {
  if (would_block(errno)) return Progress::blocked;
  error_ = errno;
  return Progress::broken;
}

void FrameWriter::abandon() noexcept {
  if (pipe_ != nullptr) pipe_->leave(this);
  pipe_ = nullptr;
  head_ = {};
  pieces_ = {};
  head_begin_ = next_piece_ = unfinished_bytes_ = 0;
  refers_to_payload_ = false;
}

}  // namespace tandem::comm::internal
