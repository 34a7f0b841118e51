// tandem/comm/transport/shm/attachment.hpp: what a rank holds of a peer once they share memory.
#pragma once

#include <sys/types.h>

#include <memory>

#include "tandem/base/file_descriptor.hpp"
#include "tandem/comm/transport/shm/doorbell.hpp"
#include "tandem/comm/transport/shm/handshake.hpp"
#include "tandem/comm/transport/shm/segment.hpp"
#include "tandem/comm/transport/shm/unix_socket.hpp"

namespace tandem::comm::internal {

struct Attachment {
  Segment segment;
  unsigned outgoing = 0;         ///< the direction that this side produces
  Doorbell peer;
  base::FileDescriptor socket;   ///< carries no more messages; closes when the peer dies
  base::FileDescriptor process;  ///< pidfd of the peer, if it is another process and the kernel supports pidfds
  pid_t pid = 0;                 ///< for remote copies; 0: not permitted
  std::unique_ptr<Nonce> nonce;  ///< what the peer's probe reads from this process
};

}  // namespace tandem::comm::internal
