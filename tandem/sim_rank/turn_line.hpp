// tandem/sim_rank/turn_line.hpp: the connection between a rank that is a process and its simulation.
#pragma once

#include <string_view>

#include "tandem/base/file_descriptor.hpp"
#include "tandem/base/result.hpp"
#include "tandem/comm/bootstrap/bytes.hpp"
#include "tandem/sim_rank/turn_wire.hpp"

namespace tandem::sim {

/// Frames in both directions on a local socket. Threads: one at a time.
class TurnLine {
 public:
  explicit TurnLine(base::FileDescriptor socket) : socket_(std::move(socket)), frames_(most_turn_bytes) {}

  /// Connects to a name of the abstract namespace. Errors: io.
  static base::Result<TurnLine> connect(std::string_view name);
  /// Listens there, for connections of this user's processes, which `accept_from` returns. Errors: io.
  static base::Result<base::FileDescriptor> listen(std::string_view name);
  /// The next connection; none: there is none now, or it is another user's.
  static base::FileDescriptor accept_from(const base::FileDescriptor& listener);

  /// Waits until the system has taken all of it. False: the other end is gone.
  bool send(TurnKind kind, std::string_view body);
  /// The next frame that has come.
  bool next(comm::internal::Frame& frame) { return frames_.next(frame); }
  /// Reads what has come, and waits for something if `waits`. False: the other end is gone, or sends no frames.
  bool read(bool waits);
  /// Waits for a frame. False: as `read`.
  bool receive(comm::internal::Frame& frame);

  int descriptor() const noexcept { return socket_.get(); }
  base::FileDescriptor release() { return std::move(socket_); }

 private:
  base::FileDescriptor socket_;
  comm::internal::FrameBuffer frames_;
};

}  // namespace tandem::sim
