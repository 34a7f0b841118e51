// tandem/comm/transport/mpi/traffic.hpp: messages that MPI has not finished, and their formats.
#pragma once

#include <mpi.h>
#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tandem/base/log.hpp"
#include "tandem/comm/transport/mpi/communicator.hpp"
#include "tandem/comm/transport/transport.hpp"

namespace tandem::comm::internal::mpi {

class MpiLink;

/// Each packet is an envelope (tag 0): this header, the control block, and the payload if all fits. A larger payload is
/// a second message, tagged by its number, for which the receiver posts a receive into its landing.
struct EnvelopeHeader {
  std::uint32_t control_bytes = 0;
  std::uint32_t flags = 0;
  std::uint64_t payload_bytes = 0;
};
static_assert(sizeof(EnvelopeHeader) == 16, "a wire format; and the control block after it keeps the alignment");

constexpr std::uint32_t payload_inside = 1;
constexpr std::uint32_t link_ends = 2;  ///< no control block: the sender sends and receives nothing more

constexpr std::size_t envelope_bytes = 8192;
constexpr std::size_t max_control_bytes = 4096;
constexpr std::size_t max_payload_bytes = 8 << 20;  ///< also the most that a dropped payload makes us allocate
constexpr std::size_t segment_bytes = 256 << 10;
/// Most payload per link in flight, except for one larger packet.
constexpr std::size_t flight_bytes = 2 * segment_bytes;
constexpr std::size_t most_envelopes = 64;               ///< unfinished ones, to all peers together
/// Most packets that a sender is ahead of a payload whose receive has not begun: this bounds what waits at the
/// receiver.
constexpr std::uint64_t sender_window = 256;

constexpr int envelope_tag = 0;

/// Bytes that MPI reads or writes, at 8-byte alignment.
using EnvelopeBuffer = std::array<std::uint64_t, envelope_bytes / 8>;

/// Pieces of memory as MPI takes them: plain bytes when there is one, else a derived type over absolute addresses.
/// Move-only.
class Layout {
 public:
  Layout() = default;
  explicit Layout(std::span<const iovec> pieces);
  ~Layout() { free(); }
  Layout(Layout&& other) noexcept { *this = std::move(other); }
  Layout& operator=(Layout&& other) noexcept;

  void* base = nullptr;
  int count = 0;
  MPI_Datatype type = MPI_BYTE;

 private:
  void free();
};

struct EnvelopeSend {
  MPI_Request request = MPI_REQUEST_NULL;
  MpiLink* link = nullptr;
  EnvelopeBuffer buffer;
};

struct PayloadSend {
  MPI_Request request = MPI_REQUEST_NULL;
  MpiLink* link = nullptr;
  std::uint64_t packet = 0;
  std::uint64_t cookie = 0;
  std::size_t bytes = 0;
  Layout layout;
};

struct PayloadReceive {
  MPI_Request request = MPI_REQUEST_NULL;
  int code = MPI_SUCCESS;
  std::uint64_t token = 0;
  Layout layout;
  std::vector<std::byte> excess;  ///< receives the bytes that are dropped
};

/// State that the transport and its links share, under the lock of the transport's caller.
struct Shared {
  Shared(PacketSink& to, base::Log& messages) : sink(&to), log(&messages) {}

  PacketSink* sink;
  base::Log* log;
  std::unique_ptr<Communicator> communicator;
  unsigned payload_limit = 10;
  unsigned events = 0;  ///< events reported since `poll` began
  bool freed = false;   ///< something ended that a starved link may have waited for

  std::vector<std::unique_ptr<EnvelopeSend>> envelopes, free_envelopes;
  std::vector<PayloadSend> payloads;
  std::vector<MpiLink*> starved;                         ///< answered retry, in that order
  std::vector<MpiLink*> receiving;                       ///< a payload is being received
  std::vector<std::pair<MpiLink*, std::string>> broken;  ///< and why
};

}  // namespace tandem::comm::internal::mpi
