// tandem/comm/schedule/strategy.hpp: decides what the next packet of a rail carries.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/base/result.hpp"
#include "tandem/comm/schedule/send_queue.hpp"

namespace tandem::comm {

/// What is known of a rail to the peer.
struct RailState {
  double bytes_per_ns = 0;            ///< measured bandwidth; 0: unknown
  std::int64_t latency_ns = 0;        ///< measured time of a small packet
  std::uint64_t in_flight_bytes = 0;  ///< posted on it and not yet sent
};

/// The rail that can take a packet now, and its limits.
struct RailView {
  unsigned rail = 0;                     ///< index into `rails`; rail 0 carries all messages
  std::span<const RailState> rails;      ///< all rails to this peer, at least one
  std::size_t max_control_bytes = 0;     ///< room for records
  std::size_t max_payload_bytes = 0;     ///< largest payload of a packet
  std::size_t segment_bytes = 0;         ///< payload of a stream in one packet at most
  bool streams_wait = false;             ///< plan no stream: others of the port go first (`PortPacer`)
};

/// What goes into a packet: `records`, in this order, then the record of `bulk` with `bulk_bytes` of its payload.
/// Reused from packet to packet, so that it allocates nothing in the steady state.
struct PacketPlan {
  std::vector<SendItem*> records;  ///< kind `record`
  SendItem* bulk = nullptr;        ///< kind `whole` or `stream`, or null
  std::uint64_t bulk_bytes = 0;    ///< whole: all of it; stream: its next segment
  std::size_t control_bytes = 0;   ///< of all records, that of `bulk` included

  bool empty() const noexcept { return records.empty() && bulk == nullptr; }
  void clear() noexcept;
};

/// A way to form packets. Pure: the answer depends on the arguments alone, nothing is changed, and there are no clocks,
/// threads or input and output. So one object may serve any number of queues and threads.
///
/// Every strategy promises: a plan holds items of the queue, each once; ordered items of a key are planned in their
/// order (an item is planned only with or after all older ones of its key); `control_bytes` is at most
/// `max_control_bytes`, `bulk_bytes` at most `max_payload_bytes`, and a stream's at most `segment_bytes`; messages go
/// on rail 0 alone; and while the queue is not idle some rail's plan is not empty, unless it holds streams alone and
/// they wait. An item needs a record that fits into an empty packet: the engine sees to it.
class Strategy {
 public:
  virtual ~Strategy() = default;
  virtual std::string_view name() const noexcept = 0;
  /// The order that its queues must have.
  virtual SendOrder order() const noexcept = 0;
  /// Plans the next packet of `view.rail` into `out` (cleared first); empty: nothing for this rail now. Call it again
  /// after a `push`, an `update`, a `commit` of another rail's plan, or when a packet of any rail was sent. O(items
  /// planned).
  virtual void plan(const SendQueue& queue, const RailView& view, PacketPlan& out) const = 0;
};

/// Strategies by name. A value of its owner, no global. Not thread-safe.
class StrategyRegistry {
 public:
  using Factory = std::function<std::unique_ptr<Strategy>()>;

  /// Knows `fifo`, `aggregate`, `priority` and `split`.
  StrategyRegistry();

  /// Adds a strategy of the user's. Error: the name is empty or taken.
  base::Result<void> add(std::string name, Factory factory);
  std::vector<std::string> names() const;
  /// Error: no such name; the message lists the names and suggests the nearest.
  base::Result<std::unique_ptr<Strategy>> make(std::string_view name) const;

 private:
  std::map<std::string, Factory, std::less<>> factories_;
};

/// One of the four built-in strategies; errors as for `StrategyRegistry::make`.
base::Result<std::unique_ptr<Strategy>> make_strategy(std::string_view name);

}  // namespace tandem::comm
