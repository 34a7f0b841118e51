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

#include "tandem/base/result.hpp"
#include "tandem/comm/buffer.hpp"
#include "tandem/comm/mcast/tree_kind.hpp"
#include "tandem/comm/request.hpp"

namespace tandem::base {
class Config;     // config.hpp
class EventLoop;  // event_loop.hpp
class IdleWork;   // attendance.hpp
class Log;        // log.hpp
class Registry;   // option.hpp
}
namespace tandem::trace {
class Session;  // trace/session.hpp
}

namespace tandem::comm {

class BroadcastPlan;  // broadcast_plan.hpp
struct Job;           // bootstrap/job.hpp
class LoopNetwork;    // transport/loop/loop.hpp: ranks of one process

/// Options of a send.
struct SendOptions {
  Channel channel{0};                      ///< a receive must name the same
  int priority = 0;                        ///< higher first
  /// At most `Endpoint::max_header_bytes`; travels with the first packet; copied.
  std::span<const std::byte> header = {};
  Callbacks callbacks = {};                ///< called when the send ends
  CompletionQueue* queue = nullptr;  ///< gets an entry for each event as well; outlives the request
  std::uint64_t user = 0;            ///< returned in these entries

  static const SendOptions& none();  ///< the defaults, made once, since making them takes long beside a small message
};

/// Options of a receive.
struct ReceiveOptions {
  Channel channel{0};                ///< of the messages that it takes
  /// Where the buffer lies. Other memory than the host's requires a message that `probe` calls `Peeked::placed`.
  BufferMemory memory = BufferMemory::host;
  Callbacks callbacks = {};          ///< called when data arrives, and when the receive ends
  CompletionQueue* queue = nullptr;  ///< gets an entry for each event as well
  std::uint64_t user = 0;            ///< returned in these entries

  static const ReceiveOptions& none();  ///< the defaults, as for sends
};

namespace internal {
inline const SendOptions default_send_options;
inline const ReceiveOptions default_receive_options;
}  // namespace internal
inline const SendOptions& SendOptions::none() { return internal::default_send_options; }
inline const ReceiveOptions& ReceiveOptions::none() { return internal::default_receive_options; }

/// A rank that gets a broadcast.
struct Recipient {
  Rank rank{0};  ///< that receives
  /// Recipients of higher priority have the data earlier; saturates at 16 bits. With two_tree, which `automatic` may
  /// choose, this holds only for the later half of a message; `TreeKind::ordered` does not choose it where they differ.
  int priority = 0;
};

/// Options of a broadcast.
struct McastOptions {
  Channel channel{0};                   ///< receives must name the same
  TreeOptions tree = {};           ///< which rank forwards to which: a `TreeKind`, or more
  std::int64_t hold_ns = 0;        ///< how long `append` may add recipients before the first packet
  std::span<const std::byte> header = {};  ///< at most `Endpoint::max_header_bytes`; copied
  Callbacks callbacks = {};                ///< called when the broadcast ends at this rank
  CompletionQueue* queue = nullptr;        ///< gets an entry for each event as well
  std::uint64_t user = 0;                  ///< returned in these entries
  std::shared_ptr<BroadcastPlan> plan = {};  ///< shared by like broadcasts; null: the tree is chosen for this one
};

/// A message that was announced or has arrived, and that no receive has matched.
struct Peeked {
  Rank source{0};                 ///< the sender
  Tag tag{0};                     ///< of the message
  std::uint64_t bytes = 0;        ///< of the message
  std::vector<std::byte> header;  ///< its small header
  bool announced = false;         ///< it is a plain message of which no byte is here: they come once a receive takes it
  bool placed = false;            ///< announced, and its bytes may go into `BufferMemory::cuda`
};

/// The header of an active message, as its handler gets it.
struct RpcArrival {
  Rank source{0};                     ///< the sender
  Tag tag{0};                         ///< of the message
  std::uint64_t bytes = 0;            ///< of the payload
  std::span<const std::byte> header;  ///< valid during the call
};

/// A handler's answer: where the payload of an active message goes.
struct RpcAnswer {
  bool wanted = true;          ///< false: the payload is dropped, and `done` is not called
  /// Empty: the library allocates memory of the message's size, `Status::owned` during `done`.
  ReceiveBuffer buffer = {};
};

/// `arrived` is called with the header and chooses where the payload goes; `done` is called when the payload is there.
/// Both run as `Callbacks` do; with an executor, `done` runs there.
struct RpcHandler {
  std::function<RpcAnswer(const RpcArrival&)> arrived = {};  ///< empty: wanted, in memory of the library
  std::function<void(const Status&)> done = {};              ///< the payload is there
  std::function<void(std::function<void()>)> executor = {};  ///< empty: on the thread that makes progress
};

/// What was measured of a transport on this machine: the first estimate for peers that it reaches, in place of the
/// transport's own.
struct KnownNetwork {
  std::string transport;        ///< "shm", "tcp" and so on
  std::int64_t latency_ns = 0;  ///< of a small message
  double bytes_per_ns = 0;      ///< of a large one, above 0
  /// Time of a message of any size, from the post to the arrival; empty: by latency and rate. Any thread.
  std::function<double(std::uint64_t bytes)> message_ns = {};
};

/// How an endpoint works. All fields but the pointers and `networks` are options `comm.NAME` of the registry too
/// (`add_comm_options`).
struct EndpointOptions {
  std::vector<std::string> transports = {};   ///< in order of preference; empty: shm, ucx with InfiniBand or RoCE, tcp
  std::string strategy = "split";             ///< fifo, aggregate, priority, split
  std::string progress = "thread";            ///< thread, inline
  int progress_core = -1;                     ///< the core that the progress thread is bound to; -1: none
  std::int64_t spin_ns = 20'000;              ///< longest time of polling without traffic before a thread sleeps
  std::size_t eager_bytes = 0;  ///< larger messages are announced first; 0: as transport and network allow
  /// Unexpected data of one peer that this rank keeps; messages of up to 16 bytes cost nothing.
  std::size_t credit_bytes = 1 << 20;
  /// Unexpected eager messages of one peer that this rank keeps; each takes about 150 bytes besides its data.
  std::uint32_t credit_messages = 1 << 18;
  std::uint32_t credit_announcements = 1024;  ///< messages announced to one peer at once for which no receive waits
  /// Memory for broadcasts that this rank forwards before it has posted the receive.
  std::size_t forward_bytes = 64 << 20;
  std::string interface = {};                      ///< network interface or address of tcp; empty: automatic
  std::string ports = {};                          ///< "first-last" of tcp; empty: any
  unsigned rails = 1;                         ///< tcp connections per peer
  bool port_priorities = true;  ///< on networks large messages wait for more urgent ones to other peers (`PortPacer`)
  bool cross_memory = true;  ///< peers may read this process's memory: directly over shm, by zero-copy pages over tcp
  std::string modules = {};  ///< folder of the modules of ucx and mpi; empty: where the dynamic loader looks
  const void* mpi_communicator = nullptr;  ///< the program's `MPI_Comm*`, for the transport mpi; null: MPI_COMM_WORLD
  std::vector<KnownNetwork> networks = {};    ///< what is known before the first message
  trace::Session* trace = nullptr;  ///< records from the beginning (`Endpoint::trace_to`); outlives the endpoint
};

/// Registers the options `comm.*`.
void add_comm_options(base::Registry& registry);
/// Option `comm.progress_core`: a number from -1 on, or empty when it says "model" and the layer above must choose
/// before it opens an endpoint. Throws StartError for any other value.
std::optional<int> progress_core(const base::Config& config);
/// The values of the options; `progress_core` is -1 unless the option is a number. Throws as `progress_core` does.
EndpointOptions comm_options(const base::Config& config);

/// Counters since the start; a snapshot.
struct EndpointStatistics {
  std::uint64_t packets_sent = 0;         ///< by all transports
  std::uint64_t packets_received = 0;     ///< by all transports
  std::uint64_t messages_sent = 0;        ///< as they are posted, without broadcasts
  std::uint64_t messages_received = 0;    ///< whose data has arrived
  std::uint64_t unexpected_messages = 0;  ///< held now
  std::uint64_t unexpected_bytes = 0;     ///< of their data; messages of up to 16 bytes count 0
  std::uint64_t announcements = 0;        ///< by `Endpoint::announce`, that had an effect
  /// Sends of this rank that wait now, since their receivers keep `credit_announcements` already.
  std::uint64_t deferred_messages = 0;
  std::uint64_t spare_bytes = 0;          ///< that a burst has left unused; freed when the endpoint is idle
  std::uint64_t mcasts_started = 0;    ///< by this rank
  std::uint64_t mcasts_forwarded = 0;  ///< of other ranks
  std::uint64_t mcasts_declined = 0;   ///< not forwarded, for lack of memory
  std::uint64_t mcasts_adopted = 0;    ///< subtrees of ranks that died
  std::uint64_t plans_reused = 0;   ///< broadcasts that used the tree of their `BroadcastPlan`
  std::uint64_t segments = 0;  ///< of large messages and broadcasts: sent, or read from the memory of their senders
  std::uint64_t remote_copies = 0;  ///< messages, and strands of broadcasts, read from the memory of their senders
  std::uint64_t shared_copies = 0;  ///< of these, messages that the sender has copied in part
  std::uint64_t peers = 0;          ///< ranks that this one is connected to
};

/// One rank's place in a job: posts messages, receives, broadcasts and active messages.
///
/// Threads: all members are thread-safe except the constructor, `close` and the destructor. A post never blocks.
/// Callbacks run on the thread that makes progress (see `Callbacks`).
///
/// Order: messages of one source with the same channel and tag are matched in the order in which they were posted
/// there, sends and broadcasts alike.
///
/// Errors: a request ends as `Status::ending` says. Wrong arguments (a rank that the job does not have, a header longer
/// than `max_header_bytes`, a second handler) throw UsageError, and the call has no effect. Calls that wait, and
/// `progress`, throw what a callback threw (see `Callbacks`). Nothing else throws. Units: bytes, and nanoseconds (names
/// end in `_ns`).
class Endpoint {
 public:
  static constexpr std::size_t max_header_bytes = 1024;  ///< of a message's small header

  /// An endpoint over the transports that reach the job's ranks, with a progress thread unless the options say inline.
  /// `log` outlives the endpoint. Errors: invalid_argument (an unknown transport or strategy), unsupported (a module
  /// that cannot be loaded, a transport that this machine does not have), exhausted (no descriptors left), io (the
  /// job's directory).
  static base::Result<std::unique_ptr<Endpoint>> open(Job job, const EndpointOptions& options, base::Log& log);

  /// Ranks of one process over a loop network (transport/loop): stepped by `loop` in the test world, or with a progress
  /// thread each when `loop` is null.
  static std::unique_ptr<Endpoint> open_loop(LoopNetwork& network, Rank rank, const EndpointOptions& options,
                                             base::Log& log, base::EventLoop* loop);

  ~Endpoint();  ///< calls `close`, unless it was called
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  Rank rank() const noexcept;           ///< of this process, from 0
  std::uint32_t size() const noexcept;  ///< number of ranks

  /// The channel of that name, equal on all ranks. Throws UsageError when the hashes of two names of this process
  /// collide.
  Channel channel(std::string_view name);

  /// Sends. The buffer must stay, and not change, until the request is *released*. A send to this rank itself is
  /// copied.
  Request isend(Rank to, Tag tag, SendBuffer buffer, const SendOptions& options = SendOptions::none());
  /// Sends `bytes` bytes that are not there yet. The message is announced, whatever its size, and `Callbacks::leaving`
  /// is called once a receive has taken it; `supply` follows, from any thread. So a sender need not keep the bytes in
  /// place while it waits for its receiver. Not to this rank itself.
  Request isend_later(Rank to, Tag tag, std::size_t bytes, const SendOptions& options = SendOptions::none());
  /// Gives all bytes of such a send, once. They stay until the request is released. False, without effect: the send has
  /// ended meanwhile, or its link does not read such memory.
  bool supply(const Request& send, SendBuffer buffer, BufferMemory memory = BufferMemory::host);
  /// Whether the link to that rank reads such memory (for receives: `Peeked::placed`); false while the link is not
  /// chosen. Connects if needed.
  bool reads(Rank to, BufferMemory memory);
  /// Receives. The buffer is complete when the request has *arrived*, and may be written when it is *released*. A
  /// message longer than the buffer ends as `truncated`. Throws UsageError for memory beyond the host's, if the message
  /// is not one that `probe` calls `placed`.
  Request irecv(Source from, TagPattern tag, ReceiveBuffer buffer,
                const ReceiveOptions& options = ReceiveOptions::none());
  /// Receives into memory of the message's size that the library allocates: `Status::owned`. `truncated` when there is
  /// none left.
  Request irecv_owned(Source from, TagPattern tag, const ReceiveOptions& options = ReceiveOptions::none());

  /// Sends one buffer to several ranks, each of which receives it by an ordinary receive from this rank. Not
  /// collective. A recipient that is named twice counts once, with its highest priority; this rank is left out. Without
  /// recipients the request ends at once. `peer_dead`: a recipient died; the others have the data, or will have it.
  Request mcast(std::span<const Recipient> recipients, Tag tag, SendBuffer buffer, const McastOptions& options = {});
  /// Adds a recipient to a broadcast (`McastOptions::hold_ns`). False: the broadcast has started, or has this
  /// recipient.
  bool append(const Request& mcast, Recipient recipient);

  /// From now on `handler` takes every message on `channel`, including those that wait there. A second handler for a
  /// channel throws UsageError.
  void register_rpc(Channel channel, RpcHandler handler);
  /// Sends an active message: a send on a channel for which the receiver has registered a handler.
  Request rpc(Rank to, Channel channel, Tag tag, std::span<const std::byte> header, SendBuffer buffer,
              int priority = 0);

  /// The message that a receive posted now would match, if any. It stays.
  std::optional<Peeked> probe(Source from, TagPattern tag, Channel channel = Channel{0});
  /// A request that ends (`released`; `Status` has the size) once there is a message that a receive posted then would
  /// match. The message stays, so its receive can be posted when it is known how it comes (`probe`). It waits for one
  /// rank and one tag. A receive that is posted already takes the message first, and the request waits for the next
  /// one. It ends as receives do when the rank dies or leaves.
  Request iprobe(Rank from, Tag tag, const ReceiveOptions& options = ReceiveOptions::none());
  /// Cancels a receive that has not matched, a probe, a send that waits in its queue, or a broadcast that has not
  /// started. True: the request ends as `cancelled`. False: it is too late.
  bool cancel(const Request& request);

  /// Makes progress, and sleeps when there is none, until the request is released (`wait_arrived`: has arrived).
  /// Returns its status. Not from callbacks.
  Status wait(const Request& request);
  /// Like `wait`, but until the data of a receive can be read.
  Status wait_arrived(const Request& request);
  /// Like `wait`, but until all requests are released.
  void wait_all(std::span<const Request> requests);
  /// Makes progress once, without sleeping, and runs the callbacks that are due. True when something happened.
  bool progress();
  /// Like `progress`, for threads without a caller: an exception of a callback stays for a call that waits.
  bool step();
  /// Announces that messages will come within that time: waiting threads poll until then, even beyond `spin_ns`, unless
  /// other threads need the core. The last call counts; 0 withdraws it.
  void expect(std::int64_t within_ns);

  /// Announces that a message of `bytes` to that rank will be posted in about `in_ns`. On a network, a large message of
  /// lower priority then waits if the port would not finish it before, so that the port is free for the announced one.
  /// Returns a number for `withdraw`, to be called when the message was posted or will not be. 0: the call has no
  /// effect.
  std::uint64_t announce(Rank to, std::uint64_t bytes, std::int64_t in_ns, int priority);
  /// Ends an announcement: its message was posted, or will not be.
  void withdraw(Rank to, std::uint64_t announced);
  /// Whether `announce` has an effect for that rank.
  bool uses_announcements(Rank to);

  /// The polling that idle threads may do instead of the progress thread of this endpoint; null with an event loop.
  /// Valid until `close`.
  base::IdleWork* idle_work() noexcept;

  /// Called at each death of a peer to which this rank is connected. Runs as `Callbacks` do.
  void on_peer_death(std::function<void(Rank, std::string_view reason)> call);
  /// Called when a large message is announced, or begins to come by a broadcast: source, channel, tag, bytes, and in
  /// how many ns it is expected to be complete, by the rate of the network so far. It may have arrived when this is
  /// called. Runs as `Callbacks` do.
  void on_incoming(std::function<void(Rank, Channel, Tag, std::uint64_t bytes, std::int64_t in_ns)> call);

  /// From now on `session`, which outlives the endpoint, records messages, packets, broadcasts, and the states of the
  /// progress thread. At most once, and not when `EndpointOptions::trace` is set.
  void trace_to(trace::Session& session);

  /// Whether two ranks run on one host. May ask the job's directory.
  bool same_host(Rank a, Rank b);
  /// The ranks with which this one has a connection, or makes one, except those known to be gone and itself.
  std::vector<Rank> connected_ranks() const;
  EndpointStatistics statistics() const;  ///< counters since the start
  /// Describes the operations under way, one line each, to find out why a program waits.
  std::string describe() const;
  /// Ranks that have not joined the job yet, as far as its directory knows; at most 64. Asks the directory: up to 2 s.
  /// For messages.
  std::vector<Rank> missing_ranks() const;
  /// The transport to a peer: "shm", "tcp", and so on; "self"; "none". Connects if needed. Valid while the endpoint
  /// lives.
  std::string_view transport_to(Rank peer);

  /// Abandons the job: closes all links, so that peers consider this rank dead. All operations under way end as
  /// `cancelled`, with their callbacks; then buffers may be reused. Later ones, to whatever rank, end as `peer_dead`.
  /// Any thread, also from callbacks.
  void abandon();

  /// Leaves the job: completes what peers need (sends, forwards of broadcasts), says goodbye to each peer and waits for
  /// its answer, for 2 s at most. Receives that are still posted end as `cancelled`. Nothing may be posted afterwards.
  void close();

 private:
  struct Parts;
  Status await_status(const internal::RequestCore& core, std::uint8_t stage);
  void await(const internal::RequestCore& core, std::uint8_t stage);
  explicit Endpoint(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace tandem::comm
