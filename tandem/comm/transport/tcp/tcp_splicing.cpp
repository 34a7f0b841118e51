// tandem/comm/transport/tcp/tcp_splicing.cpp: which payloads are spliced, and how both ends learn that they were read.
#include <utility>

#include "tandem/comm/transport/tcp/tcp_transport.hpp"

namespace tandem::comm::internal {

// Processes the splices that a read has finished, and those that the peer acknowledges. False: the peer sent an
// impossible number and has failed.
bool TcpTransport::note_splices(Connection& connection, std::uint32_t read_before, std::uint32_t peer_read_before) {
  TcpLink& link = *connection.link;
  if (connection.reader.splices_read() != read_before) {
    link.splices_read += connection.reader.splices_read() - read_before;
    link.splice_read_at_poll = poll_number_;
    if (!std::exchange(link.must_acknowledge, true)) to_acknowledge_.push_back(&link);
  }
  if (connection.reader.peer_splices_read() == peer_read_before) return true;
  const std::uint32_t unfinished = link.out != nullptr && link.out->writer.splices() ? 1 : 0;
  const std::uint32_t read_now = connection.reader.peer_splices_read() - link.splices_known_read;
  if (link.out == nullptr || read_now > link.splices_unread() - unfinished) {
    fail(link.owner_peer, "it sent malformed bytes: it acknowledges a payload that was not spliced");
    return false;
  }
  // `sent` may give the link further splices.
  for (std::uint32_t i = 0; i < read_now; ++i) {
    const std::uint64_t cookie = link.splice_cookies[link.splices_known_read++ % TcpLink::most_splices];
    ++events_;
    sink_.sent(link, cookie);
  }
  return true;
}

bool TcpTransport::can_splice(const TcpLink& link, const Packet& packet) {
  return packet.payload_bytes >= options_.least_spliced_bytes && link.out->fast &&
         link.splices_unread() < TcpLink::most_splices && packet.payload.size() <= SplicePipe::most_pieces &&
         pipe_.open_to(&link.out->writer);
}

// Acknowledges splices to peers that have not got the number in a packet's header. A splice that this poll has read
// waits for the next poll, since the program may answer its message meanwhile; before a sleep it does not wait.
void TcpTransport::acknowledge_splices(bool before_sleep) {
  std::erase_if(to_acknowledge_, [&](TcpLink* link) {
    const bool waits = link->splice_read_at_poll == poll_number_ && !before_sleep;
    const bool settled =
        link->splices_acknowledged == link->splices_read || link->owner_peer.state == TcpPeer::State::gone;
    if (!settled && (waits || !acknowledge_splices(*link))) return false;
    link->must_acknowledge = false;
    return true;
  });
}

// Acknowledges splices on a link. False: not now; the event that the connection waits for causes another poll.
bool TcpTransport::acknowledge_splices(TcpLink& link) {
  if (link.out == nullptr || link.out->stage != Stage::open || link.out->writer.unfinished()) return false;
  if (link.out->writer.written_bytes() == 0) choose_way(link);
  Connection& out = *link.out;
  if (out.write_error != 0) return true;  // nothing reaches the peer any more
  switch (out.writer.write_header(out.socket.get(), link.splices_read)) {
    case FrameWriter::Progress::whole: watch(out); break;
    case FrameWriter::Progress::partial: block(out); break;
    case FrameWriter::Progress::blocked: block(out); return false;
    case FrameWriter::Progress::broken: out.write_error = out.writer.error(); break;  // the reader finds the end
  }
  link.splices_acknowledged = link.splices_read;
  return true;
}

}  // namespace tandem::comm::internal
