// tandem/comm/endpoint.hpp: the communication library as its users see it: one rank's place in a job.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/base/event_loop.hpp"
#include "tandem/base/log.hpp"
#include "tandem/base/option.hpp"
#include "tandem/base/config.hpp"
#include "tandem/base/result.hpp"
#include "tandem/comm/bootstrap/job.hpp"
#include "tandem/comm/buffer.hpp"
#include "tandem/comm/mcast/tree.hpp"
#include "tandem/comm/request.hpp"

namespace tandem::base {
class IdleWork;  // attendance.hpp
}
namespace tandem::trace {
class Session;  // trace/session.hpp
}

namespace tandem::comm {

class BroadcastPlan;  // broadcast_plan.hpp
class LoopNetwork;    // transport/loop/loop.hpp: ranks of one process

struct SendOptions {
  Channel channel{0};
  int priority = 0;                        ///< higher first
  std::span<const std::byte> header = {};  ///< at most `Endpoint::max_header_bytes`; travels with the first packet; copied
  Callbacks callbacks = {};
  CompletionQueue* queue = nullptr;  ///< told of each event as well
  std::uint64_t user = 0;            ///< given back by the queue

  static const SendOptions& none();  ///< the defaults, made once: setting them up takes a good part of a small message's time
};

struct ReceiveOptions {
  Channel channel{0};
  Callbacks callbacks = {};
  CompletionQueue* queue = nullptr;
  std::uint64_t user = 0;

  static const ReceiveOptions& none();  ///< the defaults, as for sends
};

namespace internal {
inline const SendOptions default_send_options;
inline const ReceiveOptions default_receive_options;
}  // namespace internal
inline const SendOptions& SendOptions::none() { return internal::default_send_options; }
inline const ReceiveOptions& ReceiveOptions::none() { return internal::default_receive_options; }

struct Recipient {
  Rank rank{0};
  int priority = 0;  ///< higher ones have the data earlier; saturates at 16 bits
};

struct McastOptions {
  Channel channel{0};
  TreeKind tree = TreeKind::automatic;
  unsigned arity = 0;              ///< of k-ary and k-nomial trees; 0: the tree's default
  std::size_t segment_bytes = 0;   ///< 0: chosen
  std::int64_t hold_ns = 0;        ///< how long to wait for late recipients before the first packet
  std::span<const std::byte> header = {};
  Callbacks callbacks = {};
  CompletionQueue* queue = nullptr;
  std::uint64_t user = 0;
  std::shared_ptr<BroadcastPlan> plan = {};  ///< shared with broadcasts that are alike; null: the tree is chosen for this one
};

/// A message that was announced or has arrived, and that no receive has taken.
struct Peeked {
  Rank source{0};
  Tag tag{0};
  std::uint64_t bytes = 0;
  std::vector<std::byte> header;
};

/// What a handler of active messages sees first.
struct RpcArrival {
  Rank source{0};
  Tag tag{0};
  std::uint64_t bytes = 0;
  std::span<const std::byte> header;  ///< valid during the call
};

/// Where the payload of an active message goes.
struct RpcAnswer {
  bool wanted = true;          ///< false: the payload is dropped, and `done` is not called
  ReceiveBuffer buffer = {};   ///< left empty with `wanted`: the library's own memory, in `Status::owned` during `done`
};

/// Called with the header, then again when the payload is there. Both run as callbacks do; with an executor, `done` runs there.
struct RpcHandler {
  std::function<RpcAnswer(const RpcArrival&)> arrived = {};
  std::function<void(const Status&)> done = {};
  std::function<void(std::function<void()>)> executor = {};  ///< empty: on the progress thread
};

/// How an endpoint works. Fields but pointers are options `comm.NAME` of the registry too (see `add_comm_options`).
struct EndpointOptions {
  std::vector<std::string> transports = {};   ///< in order of preference; empty: shm, then tcp
  std::string strategy = "split";             ///< fifo, aggregate, priority, split
  std::string progress = "thread";            ///< thread, inline
  int progress_core = -1;                     ///< the core that the progress thread is bound to; -1: none
  std::int64_t spin_ns = 20'000;              ///< polling without traffic before sleeping
  std::size_t eager_bytes = 0;                ///< messages up to this size go unasked; 0: as transport and network allow
  std::size_t credit_bytes =
      1 << 20;  ///< of unexpected messages that one peer may leave with us; those of up to 16 bytes are free
  std::uint32_t credit_messages = 1 << 18;    ///< unexpected eager messages of one peer, about 150 bytes each besides
  std::uint32_t credit_announcements = 1024;  ///< messages announced to one peer at once, beyond those that it wants
  std::size_t forward_bytes = 64 << 20;       ///< memory for broadcasts that are forwarded before their receive is posted
  std::string interface = {};                      ///< network interface or address of tcp; empty: automatic
  std::string ports = {};                          ///< "first-last" of tcp; empty: any
  unsigned rails = 1;                         ///< tcp connections per peer
  bool port_priorities = true;                ///< on networks bulk waits while other peers have more urgent bulk (`PortPacer`)
  bool cross_memory = true;                   ///< peers may read ours: directly over shm, as lent pages over tcp
  std::string modules = {};                   ///< folder of the modules of ucx and mpi; empty: where the dynamic loader looks
  const void* mpi_communicator = nullptr;     ///< the program's `MPI_Comm*`, for the transport mpi; null: MPI_COMM_WORLD
  trace::Session* trace = nullptr;            ///< is told from the beginning (`Endpoint::trace_to`); outlives the endpoint
};

/// Registers the options `comm.*`, and reads them back.
void add_comm_options(base::Registry& registry);
EndpointOptions comm_options(const base::Config& config);

/// Counters since the start; a snapshot.
struct EndpointStatistics {
  std::uint64_t packets_sent = 0, packets_received = 0;
  std::uint64_t messages_sent = 0, messages_received = 0;
  std::uint64_t unexpected_messages = 0;  ///< held now
  std::uint64_t unexpected_bytes = 0;     ///< of their data, where it does not lie with the envelope (up to 16 bytes do)
  std::uint64_t announcements = 0;        ///< by `Endpoint::announce`, of use
  std::uint64_t deferred_messages = 0;    ///< ours, held back now: their receivers keep as many announcements as they are to
  std::uint64_t spare_bytes = 0;          ///< that a burst has left behind; given back when the endpoint rests
  std::uint64_t mcasts_started = 0, mcasts_forwarded = 0, mcasts_declined = 0, mcasts_adopted = 0;
  std::uint64_t plans_reused = 0;   ///< broadcasts by the tree that their `BroadcastPlan` had
  std::uint64_t segments = 0;       ///< of large messages and broadcasts: sent, or read from the memory of their senders
  std::uint64_t remote_copies = 0;  ///< messages, and strands of broadcasts, read from the memory of their senders
  std::uint64_t shared_copies = 0;  ///< of these, messages of which the sender has written a part
  std::uint64_t peers = 0;
};

/// One rank's place in a job: posts messages, receives, broadcasts and active messages. All members are thread-safe but the
/// constructor, `close` and the destructor. Posting never blocks, except that the first contact with a peer may ask the
/// directory.
///
/// Order: messages of one source with the same channel and tag are matched in the order in which they were posted there, be they
/// sends or broadcasts.
class Endpoint {
 public:
  static constexpr std::size_t max_header_bytes = 1024;

  /// The real world: transports that reach the job's ranks, and a progress thread unless options say inline. `log` outlives it.
  static base::Result<std::unique_ptr<Endpoint>> open(Job job, const EndpointOptions& options, base::Log& log);

  /// Ranks of one process over a loop network (transport/loop): stepped by `loop` in the test world, or with a progress thread
  /// each when `loop` is null.
  static std::unique_ptr<Endpoint> open_loop(LoopNetwork& network, Rank rank, const EndpointOptions& options, base::Log& log,
                                             base::EventLoop* loop);

  ~Endpoint();  ///< closes when nobody did
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  Rank rank() const noexcept;
  std::uint32_t size() const noexcept;

  /// The channel of that name: equal on all ranks. Two names of one process that collide are an assertion.
  Channel channel(std::string_view name);

  /// Sends. The buffer must not change until *released*.
  Request isend(Rank to, Tag tag, SendBuffer buffer, const SendOptions& options = SendOptions::none());
  /// Receives. The buffer is complete when *arrived*, and the user's alone when *released*.
  Request irecv(Source from, TagPattern tag, ReceiveBuffer buffer, const ReceiveOptions& options = ReceiveOptions::none());
  /// Receives into memory of the library, of the message's size: `Status::owned`.
  Request irecv_owned(Source from, TagPattern tag, const ReceiveOptions& options = ReceiveOptions::none());

  /// Sends one buffer to several ranks, each of which receives it by an ordinary receive from this rank. Duplicate recipients
  /// count once, with their highest priority; this rank among them is left out; no recipient at all is done at once.
  Request mcast(std::span<const Recipient> recipients, Tag tag, SendBuffer buffer, const McastOptions& options = {});
  /// Adds a recipient to a broadcast of which nothing was sent yet. False: too late, or there already; nothing was changed.
  bool append(const Request& mcast, Recipient recipient);

  /// Makes `handler` take every message on `channel` from now on; they need no receive. At most one per channel.
  void register_rpc(Channel channel, RpcHandler handler);
  /// An active message is a send on a channel where the receiver has a handler.
  Request rpc(Rank to, Channel channel, Tag tag, std::span<const std::byte> header, SendBuffer buffer, int priority = 0);

  /// Looks for a message that a receive posted now would take, and leaves it there.
  std::optional<Peeked> probe(Source from, TagPattern tag, Channel channel = Channel{0});
  /// Takes an operation back: true when it ends as `cancelled`; false when it is too late.
  bool cancel(const Request& request);

  /// Makes progress, and sleeps when there is none, until the request is released (arrived is not enough); its status.
  Status wait(const Request& request);
  Status wait_arrived(const Request& request);
  void wait_all(std::span<const Request> requests);
  /// Makes progress once, without sleeping. True when something happened.
  bool progress();
  /// Messages will come within that time: who polls for them goes on until then, though `spin_ns` be shorter, unless others want
  /// the core. The last call counts; 0 takes it back.
  void expect(std::int64_t within_ns);

  /// A message of so many bytes, to that rank, will be posted in about so many ns. On a network that ranks share, large
  /// messages of lower priority wait from when the port would not be done with them before, so that nothing is in the way when
  /// it comes. The number is for `withdraw`, which is due when the message was posted, or will not be. 0: that would be of no
  /// use.
  std::uint64_t announce(Rank to, std::uint64_t bytes, std::int64_t in_ns, int priority);
  void withdraw(Rank to, std::uint64_t announced);
  /// Whether it is of any use to announce messages to that rank.
  bool uses_announcements(Rank to);

  /// What idle threads may do for this endpoint, instead of its progress thread; null with an event loop. Until it is closed.
  base::IdleWork* idle_work() noexcept;

  /// Told of each death of a peer that we have spoken to, as callbacks are.
  void on_peer_death(std::function<void(Rank, std::string_view reason)> tell);
  /// Told when a large message is announced, or begins to come by a broadcast: source, channel, tag, bytes, and in how many ns it
  /// is expected to be complete, by the rate at which the network has brought messages so far. It may have arrived by then.
  void on_incoming(std::function<void(Rank, Channel, Tag, std::uint64_t bytes, std::int64_t in_ns)> tell);

  /// From now on `session`, which outlives the endpoint, is told of messages, packets, broadcasts, and of what the progress
  /// thread does. Once, unless options have named one.
  void trace_to(trace::Session& session);

  /// Whether two ranks run on one host, as their cards say.
  bool same_host(Rank a, Rank b);
  EndpointStatistics statistics() const;
  /// What is under way, one line each: for a person who wonders why nothing ends.
  std::string describe() const;
  /// The transport that speaks with a peer: "shm", "tcp", and so on; connects if needed.
  std::string_view transport_to(Rank peer);

  /// Gives the job up: links are closed, so that peers take this rank for dead, and all that is under way ends as cancelled, with
  /// its callbacks. Buffers are the user's again. Any thread, also from callbacks.
  void abandon();

  /// Leaves the job: finishes what is owed (sends, forwards), says goodbye to each peer and waits for its answer. Receives that
  /// are still posted end as cancelled. Then nothing may be posted any more.
  void close();

 private:
  struct Parts;
  Status await_status(const internal::RequestCore& core, std::uint8_t stage);
  void await(const internal::RequestCore& core, std::uint8_t stage);
  explicit Endpoint(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace tandem::comm
