// tandem/comm/transport/shm/gate.hpp: how ranks of one host find and attach each other, without anybody waiting.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "tandem/base/file_descriptor.hpp"
#include "tandem/base/log.hpp"
#include "tandem/comm/transport/shm/attachment.hpp"
#include "tandem/comm/transport/shm/event_set.hpp"
#include "tandem/comm/transport/shm/handshake.hpp"
#include "tandem/comm/transport/shm/shm.hpp"

namespace tandem::comm::internal {

/// What the gate asks of, and tells, the transport.
class GateOwner {
 public:
  virtual ~GateOwner() = default;
  /// A rank with the right proof is at the door: `none` lets it in, `known` does not; the gate itself finds crossed calls.
  virtual Refusal admit(Rank peer) = 0;
  virtual void attached(Rank peer, Attachment attachment) = 0;
  virtual void unreachable(Rank peer, std::string reason) = 0;
};

/// Listens, calls, and speaks the handshake. Single-threaded: works inside EventSet::dispatch and the calls below.
///
/// Both may call each other at the same time: then the call of the lower rank counts. The lower one answers `crossed` to the
/// other's call; the higher one accepts the lower's call and drops its own, which until then it keeps open to learn of a death.
///
/// A socket that closes before the handshake is through is called again: the peer may have dropped us for being slow. Whoever is
/// dead is found by the kernel's refusal, since nobody listens any more under its name.
class Gate {
 public:
  static base::Result<std::unique_ptr<Gate>> make(const ShmOptions& options, EventSet& events, int doorbell, GateOwner& owner);
  ~Gate();
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;

  const ShmCard& card() const noexcept { return card_; }
  Hub& hub() noexcept { return hub_of(hub_); }

  /// Begins to call a peer. The answer comes through the owner, from a later dispatch.
  void call(Rank peer, const ShmCard& card);
  /// Gives up a call that is under way, if there is one.
  void hang_up(Rank peer);
  /// Handshakes are under way: dispatch often.
  bool busy() const noexcept { return !calls_.empty() || visitors_ > 0; }
  /// The time, told before each dispatch.
  void set_now(std::int64_t now_ns) noexcept { now_ns_ = now_ns; }

 private:
  /// One that called us.
  struct Visitor {
    base::FileDescriptor socket;
    std::uint64_t watch = 0;
    std::int64_t deadline_ns = 0;
    std::unique_ptr<Nonce> nonce;
    bool crossed = false;  ///< it waits for our call
  };
  /// One whom we call.
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
  };
  using VisitorId = std::uint64_t;

  Gate(const ShmOptions& options, EventSet& events, int doorbell, GateOwner& owner);
  base::Result<void> open();

  void answer_door();
  void let_in(base::FileDescriptor socket);
  void hear_visitor(VisitorId id);
  bool welcome(Visitor& visitor, const HandshakeMessage& hello, Received& received, Attachment& attachment);
  void dismiss(VisitorId id, std::string_view reason);
  void refuse(const Visitor& visitor, const HandshakeMessage& hello, Refusal refusal);

  void try_connect(Call& call);
  void hear_called(Rank peer);
  void introduce(Call& call, const HandshakeMessage& challenge);
  void conclude(Call& call, const HandshakeMessage& welcome, Received& received);
  void redial(Call& call);
  void give_up(Call& call, std::string reason);

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
  GateOwner& owner_;
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

  VisitorId last_visitor_ = 0;
  std::size_t visitors_ = 0;  ///< that are not `crossed`
  std::map<VisitorId, Visitor> visiting_;
  std::unordered_map<Rank, std::unique_ptr<Call>> calls_;
};

/// A pidfd of the process behind a socket, when it is another process; otherwise, or where the kernel has none, nothing.
base::FileDescriptor watch_process(const PeerIdentity& identity);

}  // namespace tandem::comm::internal
