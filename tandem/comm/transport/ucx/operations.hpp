// tandem/comm/transport/ucx/operations.hpp: sends and receives that UCX has not finished, and what all links share.
#pragma once

#include <ucp/api/ucp.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tandem/base/log.hpp"
#include "tandem/comm/transport/transport.hpp"

namespace tandem::comm::internal::ucx {

class UcxLink;

/// An active message in flight. Owns what UCX reads until it is done: the header and the list of pieces (not their
/// bytes).
struct SendOperation {
  UcxLink* link = nullptr;
  std::uint64_t sequence = 0;
  std::uint64_t cookie = 0;
  std::size_t payload_bytes = 0;
  bool posted = false;  ///< the engine waits for `sent`
  ucs_status_t status = UCS_OK;
  std::vector<std::byte> header;
  std::vector<std::byte> control;  ///< of a block that did not fit the header
  std::vector<ucp_dt_iov_t> pieces;
};

/// A payload that is being received into its landing.
struct ReceiveOperation {
  UcxLink* link = nullptr;
  std::uint64_t token = 0;
  ucs_status_t status = UCS_OK;
  std::vector<ucp_dt_iov_t> pieces;
  std::vector<std::byte> excess;  ///< receives the bytes that are dropped
};

/// Reused objects, so that the steady state allocates nothing.
template <class T>
class Pool {
 public:
  T* take() {
    ++in_use_;
    if (free_.empty()) return all_.emplace_back(std::make_unique<T>()).get();
    T* object = free_.back();
    free_.pop_back();
    return object;
  }
  void give(T* object) {
    --in_use_;
    free_.push_back(object);
  }
  std::size_t in_use() const noexcept { return in_use_; }

 private:
  std::vector<std::unique_ptr<T>> all_;
  std::vector<T*> free_;
  std::size_t in_use_ = 0;
};

/// What the transport and its links share. Protocol: UCX calls back while the worker progresses. A callback only
/// records what happened in the lists here (or, for a small packet in order, reports it to the sink);
/// `UcxTransport::settle` processes the lists. What is listed outside `poll`, by a send or by a link that is made or
/// closed while the engine sleeps, wakes the engine (`wake_sleeper`). All under the lock of the transport's caller.
struct Shared {
  Shared(PacketSink& to, base::Log& messages) : sink(&to), log(&messages) {}

  PacketSink* sink;
  base::Log* log;
  Rank self{0};
  ucp_worker_h worker = nullptr;
  std::size_t max_header_bytes = 0;  ///< of an active message, ours included
  bool rendezvous_only = false;
  bool reporting = false;  ///< inside `poll`: the sink may be called
  bool armed = false;      ///< nobody polls: a sleeper relies on the worker's descriptor
  void wake_sleeper() const noexcept {
    if (armed) (void)ucp_worker_signal(worker);
  }
  unsigned events = 0;   ///< reported since `poll` began

  Pool<SendOperation> sends;
  Pool<ReceiveOperation> receives;
  std::vector<SendOperation*> finished_sends;
  std::vector<ReceiveOperation*> finished_receives;
  std::vector<UcxLink*> ready;                           ///< have something to deliver, or a `writable` to report
  std::vector<std::pair<UcxLink*, std::string>> broken;  ///< and why
};

constexpr std::size_t max_control_bytes = 4096;
constexpr std::size_t max_payload_bytes = 8 << 20;  ///< also the most that a dropped payload makes us allocate
constexpr std::size_t segment_bytes = 256 << 10;
/// Most payload per link in flight, except for one larger packet.
constexpr std::size_t flight_bytes = 2 * segment_bytes;
constexpr std::size_t flight_packets = 16;               ///< unfinished sends per link
/// Most packets that a sender is ahead of one that it has not finished: this bounds what waits at the receiver.
constexpr std::uint64_t sender_window = 1024;
/// Twice `sender_window`: UCX may report a small message as sent while it is still in flight.
constexpr std::uint64_t receiver_window = 2 * sender_window;

constexpr unsigned hello_id = 0;  ///< active messages
constexpr unsigned packet_id = 1;

}  // namespace tandem::comm::internal::ucx
