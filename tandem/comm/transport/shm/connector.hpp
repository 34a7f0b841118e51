// tandem/comm/transport/shm/connector.hpp: how ranks of one host connect to each other, without blocking.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "tandem/base/file_descriptor.hpp"
#include "tandem/base/log.hpp"
#include "tandem/base/shortage.hpp"
#include "tandem/comm/transport/shm/attachment.hpp"
#include "tandem/comm/transport/shm/event_set.hpp"
#include "tandem/comm/transport/shm/handshake.hpp"
#include "tandem/comm/transport/shm/shm.hpp"

namespace tandem::comm::internal {

/// What the connector asks the transport, and reports to it.
class ConnectorOwner {
 public:
  virtual ~ConnectorOwner() = default;
  /// A rank with a valid proof calls: `none` accepts it, `known` refuses it. The connector itself finds crossed calls.
  virtual Refusal admit(Rank peer) = 0;
  virtual void attached(Rank peer, Attachment attachment) = 0;
  virtual void unreachable(Rank peer, std::string reason) = 0;
  /// The peer listens, but one side has no memory or descriptors for the connection, or has given it up for that reason
  /// before.
  virtual void unattachable(Rank peer, std::string reason) = 0;
};

/// Listens, calls, and does the handshake (handshake.hpp). Single-threaded: works inside EventSet::dispatch and the
/// calls below.
///
/// Two ranks may call each other at the same time: then the call of the lower rank counts. The lower rank answers
/// `crossed` to the other's call. The higher rank accepts the lower rank's call and drops its own. Until then it keeps
/// its own call open, which closes if the peer dies.
///
/// When a socket closes before the handshake has ended, the connector calls again: the peer may have dropped it for
/// being slow. For a dead peer the kernel refuses the call, since no socket listens under its name.
class Connector {
 public:
  static base::Result<std::unique_ptr<Connector>> make(const ShmOptions& options, EventSet& events, int doorbell,
                                                       ConnectorOwner& owner);
  ~Connector();
  Connector(const Connector&) = delete;
  Connector& operator=(const Connector&) = delete;

  const ShmCard& card() const noexcept { return card_; }
  Hub& hub() noexcept { return hub_of(hub_); }

  /// Begins to call a peer. The answer comes through the owner, from a later dispatch.
  void call(Rank peer, const ShmCard& card);
  /// Gives up a pending call, if there is one.
  void cancel_call(Rank peer);
  /// Whether handshakes are pending: then dispatch often.
  bool accepts_now() const noexcept { return caller_count_ > 0; }
  bool busy() const noexcept { return !calls_.empty() || caller_count_ > 0; }
  /// Sets the time, before each dispatch.
  void set_now(std::int64_t now_ns) noexcept { now_ns_ = now_ns; }

 private:
  /// A peer that called us.
  struct Caller {
    base::FileDescriptor socket;
    std::uint64_t watch = 0;
    std::int64_t deadline_ns = 0;
    std::unique_ptr<Nonce> nonce;
    bool crossed = false;  ///< the peer waits for our call
  };
  /// A peer that we call.
  struct Call {
    enum class Phase { to_connect, to_be_challenged, to_be_welcomed, crossed } phase = Phase::to_connect;
    Rank peer{0};
    std::string name;
    base::FileDescriptor socket;
    std::uint64_t watch = 0;
    std::unique_ptr<Nonce> nonce;
    Nonce challenge{};
    Segment segment;
    unsigned attempts = 0;
    base::Shortage shortage;  ///< of this process, or of the peer
  };
  using CallerId = std::uint64_t;

  Connector(const ShmOptions& options, EventSet& events, int doorbell, ConnectorOwner& owner);
  base::Result<void> open();

  void accept_callers();
  void challenge_caller(base::FileDescriptor socket);
  void read_from_caller(CallerId id);
  bool welcome(Caller& caller, const HandshakeMessage& hello, Received& received, Attachment& attachment);
  void drop_caller(CallerId id, std::string_view reason);
  void refuse(const Caller& caller, const HandshakeMessage& hello, Refusal refusal);

  void try_connect(Call& call);
  void read_from_called(Rank peer);
  void send_hello(Call& call, const HandshakeMessage& challenge);
  void take_welcome(Call& call, const HandshakeMessage& welcome, Received& received);
  void retry(Call& call);
  void give_up(Call& call, std::string reason);
  void give_up_for_want(Call& call, std::string reason);
  void note_busy();
  bool turn_away();
  void wait_for_descriptors(Call& call, std::string_view whose);

  static Doorbell doorbell_of(Received& received, std::size_t first);
  pid_t probe(const base::FileDescriptor& socket, const HandshakeMessage& message) const;
  HandshakeMessage message(MessageKind kind, Rank to) const;
  void tick();
  void set_timer();

  template <class... Args>
  void warn(fmt::format_string<Args...> format, Args&&... args) const {
    if (options_.log != nullptr) options_.log->warn(format, std::forward<Args>(args)...);
  }

  const ShmOptions options_;
  EventSet& events_;
  ConnectorOwner& owner_;
  const int doorbell_;
  ShmCard card_;
  base::FileDescriptor hub_file_;
  Mapping hub_;
  base::FileDescriptor listener_;
  std::uint64_t listener_watch_ = 0;
  base::FileDescriptor timer_;
  std::uint64_t timer_watch_ = 0;
  std::int64_t timer_period_ns_ = 0;
  std::int64_t now_ns_ = 0;
  base::Shortage accepting_shortage_{options_.descriptor_patience_ns};
  std::int64_t busy_logged_ns_ = INT64_MIN;  ///< time of the last log line that there are no descriptors

  CallerId last_caller_ = 0;
  std::size_t caller_count_ = 0;  ///< that are not `crossed`
  std::map<CallerId, Caller> callers_;
  std::unordered_map<Rank, std::unique_ptr<Call>> calls_;
};

/// A pidfd of the process behind a socket, when it is another process; otherwise, or where the kernel has none, empty.
base::FileDescriptor watch_process(const PeerIdentity& identity);

}  // namespace tandem::comm::internal
