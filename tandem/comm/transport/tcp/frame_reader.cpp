// tandem/comm/transport/tcp/frame_reader.cpp: packets out of one stream socket, payloads straight to their landings.
#include "tandem/comm/transport/tcp/frame_reader.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include "tandem/base/assert.hpp"
#include "tandem/comm/transport/tcp/frame.hpp"
#include "tandem/comm/transport/tcp/socket.hpp"

namespace tandem::comm::internal {

namespace {

constexpr std::align_val_t area_alignment{64};

}  // namespace

std::span<std::byte> ReadArea::get() {
  if (!memory_) memory_.reset(static_cast<std::byte*>(::operator new(bytes, area_alignment)));
  return {memory_.get(), bytes};
}

void ReadArea::Free::operator()(std::byte* memory) const noexcept { ::operator delete(memory, area_alignment); }

FrameReader::Outcome FrameReader::read(int fd, ReadArea& area, Link& link, PacketSink& sink, unsigned& events) {
  Report report{fd, link, sink, events};
  const std::span<std::byte> memory = area.get();
  std::size_t total = 0;
  if (std::exchange(paused_, false)) {
    std::byte* const end = std::copy(carry_.begin(), carry_.end(), memory.data());
    carry_.clear();
    if (!parse(memory.data(), end, report)) return refusal();
  }
  while (total < enough_bytes) {
    if (paused_) return Outcome::more;
    std::array<iovec, most_pieces_per_call> pieces;
    std::size_t count = 0;
    const std::size_t asked = awaited(memory, pieces, count);
    ssize_t got = 0;
    do {
      got = count == 1 ? recv(fd, pieces[0].iov_base, pieces[0].iov_len, MSG_DONTWAIT)
                       : readv(fd, pieces.data(), static_cast<int>(count));
    } while (got < 0 && errno == EINTR);
    if (got == 0) return Outcome::ended;
    if (got < 0) {
      if (errno == EAGAIN || errno == EWOULDBLOCK) return Outcome::drained;
      error_ = errno;
      return Outcome::broken;
    }
    if (!take(memory, static_cast<std::size_t>(got), report)) return refusal();
    if (static_cast<std::size_t>(got) < asked && !paused_) return Outcome::drained;
    total += static_cast<std::size_t>(got);
  }
  return Outcome::more;
}

// Lists the pieces that the next system call should fill: the rest of the landing, then the area (behind the carried
// bytes).
std::size_t FrameReader::awaited(std::span<std::byte> area, std::span<iovec> pieces, std::size_t& count) const {
  if (payload_left_ == 0) {
    std::copy(carry_.begin(), carry_.end(), area.begin());
    const std::size_t wished = std::max<std::size_t>(read_bytes_, 2 * carry_.size());
    const std::size_t bytes = std::min(wished, area.size() - carry_.size());
    pieces[count++] = {area.data() + carry_.size(), bytes};
    return bytes;
  }
  std::size_t asked = 0;
  std::size_t offset = landing_offset_;
  for (const iovec& piece : landing_) {
    if (count == pieces.size()) return asked;
    const std::size_t bytes = std::min(piece.iov_len - offset, payload_left_ - asked);
    if (bytes > 0) pieces[count++] = {static_cast<char*>(piece.iov_base) + offset, bytes};
    asked += bytes;
    offset = 0;
    if (asked == payload_left_) break;
  }
  if (count == pieces.size()) return asked;
  const std::size_t dropped = payload_left_ - asked;
  const std::size_t bytes = dropped == 0 ? read_bytes_ : area.size();
  pieces[count++] = {area.data(), bytes};
  return asked + bytes;
}

// Accounts for `bytes` that the system call has put into the pieces of `awaited`.
bool FrameReader::take(std::span<std::byte> area, std::size_t bytes, Report& report) {
  if (payload_left_ == 0) {
    const std::size_t all = carry_.size() + bytes;
    carry_.clear();
    if (bytes == read_bytes_) read_bytes_ = std::min<std::uint32_t>(2 * read_bytes_, ReadArea::bytes);
    return parse(area.data(), area.data() + all, report);
  }
  std::size_t room = 0;  // of the landing
  for (std::size_t i = 0; i < landing_.size() && room < bytes + landing_offset_; ++i) room += landing_[i].iov_len;
  room = std::min(room - std::min(room, landing_offset_), payload_left_);
  const std::size_t landed = std::min(bytes, room);
  skip_into_landing(landed);
  const std::size_t dropped = std::min(bytes - landed, payload_left_);
  payload_left_ -= dropped;
  return finish_payload_if_whole(report) && parse(area.data() + dropped, area.data() + (bytes - landed), report);
}

bool FrameReader::parse(std::byte* begin, std::byte* end, Report& report) {
  while (static_cast<std::size_t>(end - begin) >= sizeof(FrameHeader)) {
    const FrameHeader header = FrameHeader::read(begin);
    if (!header.intact()) return refuse("a packet's header is damaged");
    if (header.payload_bytes > limits_.payload_bytes) return refuse("a packet's payload has an impossible size");
    const bool alone = header.control_bytes == 0 && header.payload_bytes == 0;  // an acknowledgement without a packet
    if ((header.control_bytes == 0 && !alone) || header.control_bytes > limits_.control_bytes) {
      return refuse("a packet's control block has an impossible size");
    }
    if (header.spliced > (header.payload_bytes > 0 ? 1 : 0))
      return refuse("a packet without payload says that it was spliced");
    const bool splice_acknowledged = std::exchange(peer_splices_read_, header.splices_read) != header.splices_read;
    if (splice_acknowledged && !alone) {
      paused_ = true;
      break;
    }
    if (alone) {
      begin += sizeof header;
      continue;
    }
    if (static_cast<std::size_t>(end - begin) < sizeof header + header.control_bytes) break;
    std::byte* control = begin + sizeof header;
    begin = control + header.control_bytes;
    // The sink needs it at a multiple of 8, and the header before it has been read and may be overwritten.
    if (const auto misplaced = reinterpret_cast<std::uintptr_t>(control) % 8; misplaced != 0) {
      control = static_cast<std::byte*>(std::memmove(control - misplaced, control, header.control_bytes));
    }
    if (!begin_packet(control, header, report)) return false;
    if (payload_left_ > 0) {
      begin += copy_into_landing(begin, end) - begin;
      if (!finish_payload_if_whole(report)) return false;
      if (payload_left_ > 0) return true;  // nothing is left to parse
    }
  }
  carry_.assign(begin, end);
  return true;
}

bool FrameReader::begin_packet(const std::byte* control, const FrameHeader& header, Report& report) {
  if (barred_) [[unlikely]] return refuse("packets of one rail on two connections");
  const Landing landing = report.sink.arrived(report.link, {control, header.control_bytes}, header.payload_bytes);
  ++report.events;
  begun_ = true;
  if (landing.malformed != nullptr) return refuse(landing.malformed);
  landing_ = landing.pieces;
  landing_offset_ = 0;
  payload_left_ = header.payload_bytes;
  spliced_ = header.spliced != 0;
  token_ = landing.token;
  if (payload_left_ > shortest_read_bytes) read_bytes_ = shortest_read_bytes;
  return true;
}

const std::byte* FrameReader::copy_into_landing(const std::byte* begin, const std::byte* end) {
  const std::byte* stop = begin + std::min<std::size_t>(payload_left_, static_cast<std::size_t>(end - begin));
  while (begin != stop && !landing_.empty()) {
    const iovec& piece = landing_.front();
    const std::size_t bytes = std::min(piece.iov_len - landing_offset_, static_cast<std::size_t>(stop - begin));
    if (bytes > 0) std::memcpy(static_cast<char*>(piece.iov_base) + landing_offset_, begin, bytes);
    skip_into_landing(bytes);
    begin += bytes;
  }
  payload_left_ -= static_cast<std::size_t>(stop - begin);  // the rest is dropped
  return stop;
}

// Notes that `bytes` more of the payload are in the landing.
void FrameReader::skip_into_landing(std::size_t bytes) {
  payload_left_ -= bytes;
  landing_offset_ += bytes;
  while (!landing_.empty() && landing_offset_ >= landing_.front().iov_len) {
    landing_offset_ -= landing_.front().iov_len;
    landing_ = landing_.subspan(1);
  }
}

bool FrameReader::finish_payload_if_whole(Report& report) {
  if (payload_left_ > 0) return true;
  landing_ = {};
  if (std::exchange(spliced_, false)) {
    // A peer that gives up this rank resets the connection before its program gets the memory back. Without a reset
    // until now, the bytes are what was sent.
    error_ = pending_error(report.fd);
    if (error_ != 0) return false;
    ++splices_read_;
  }
  report.sink.landed(report.link, token_);
  ++report.events;
  return true;
}

bool FrameReader::refuse(const char* reason) noexcept {
  reason_ = reason;
  return false;
}

}  // namespace tandem::comm::internal
