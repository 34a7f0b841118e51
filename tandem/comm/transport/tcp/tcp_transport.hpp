// tandem/comm/transport/tcp/tcp_transport.hpp: connections to peers, read and written as the kernel allows.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "tandem/base/file_descriptor.hpp"
#include "tandem/base/shortage.hpp"
#include "tandem/comm/transport/tcp/tcp.hpp"
#include "tandem/comm/transport/tcp/tcp_link.hpp"

namespace tandem::comm::internal {

/// The TCP transport. Not thread-safe: its owner serialises all calls (see `Transport`), and `poll` alone calls the
/// sink.
///
/// Every socket is in one epoll set, level-triggered: the set's descriptor is readable exactly while there is something
/// to do. While the engine polls, `poll` reads the few sockets that had something lately (`hot_`), writes to those that
/// could not take everything (`blocked_`), and asks the set only from time to time. After a while of polling, the hot
/// sockets leave the set, since the kernel's work for the set delays each arriving packet (4 % of a small ping-pong).
/// When the engine stops polling (`arm`), they return, the set watches for writing too, and a timer in it stands for
/// the next deadline.
///
/// Invariants: a connection is in `hot_`, `blocked_`, `watched_` exactly if its flag says so; an ended one is in none
/// of them, and no link points at it; a peer that is gone has no connection; at most `most_unproved` accepted
/// connections are unproved.
class TcpTransport final : public Transport {
 public:
  TcpTransport(const TcpOptions& options, PacketSink& sink);
  ~TcpTransport() override;
  TcpTransport(const TcpTransport&) = delete;
  TcpTransport& operator=(const TcpTransport&) = delete;
  /// Opens the transport; called once, first. Errors: as for `make_tcp_transport`.
  base::Result<void> open();

  std::string_view name() const noexcept override { return "tcp"; }
  const Capabilities& capabilities() const noexcept override { return capabilities_; }
  std::string card() const override { return card_.text(); }
  bool reaches(Rank peer, std::string_view card) override;
  Link& connect(Rank peer, std::string_view card, unsigned rail) override;
  bool accepts_now() const noexcept override { return unproved_ > 0; }
  unsigned poll(std::int64_t now_ns) override;
  std::size_t unsent_bytes() const override;
  double carried_bytes_per_ns() const override { return bytes_per_ns_; }
  int wait_descriptor() const noexcept override { return epoll_.get(); }
  bool arm() override;
  void disarm() override { armed_ = false; }
  void peer_left(Rank peer) override;
  void disconnect(Rank peer) override;

  /// For links: something was written, whose acknowledgement must be checked.
  void watch(Connection& connection);
  /// For links: `connection` waits until the kernel takes more.
  void block(Connection& connection);

  /// For links, before they write on `connection` that was not judged fast: judges it again.
  void look_for_speed(Connection& connection);

  /// For links: chooses the connection to send on, before their first packet.
  void choose_way(TcpLink& link) const;

  /// For links: whether to splice `packet`'s payload now.
  bool can_splice(const TcpLink& link, const Packet& packet);
  SplicePipe& pipe() noexcept { return pipe_; }

  /// How many system calls `unsent_bytes` makes now, for tests.
  std::size_t asked_for_unsent() const noexcept { return watched_.size() + blocked_.size(); }
  /// How many connections are open, how many of these carried packets, and how many were judged fast, for tests.
  std::size_t open_connections() const noexcept;
  std::size_t used_connections() const noexcept;
  std::size_t fast_connections() const noexcept;
  std::vector<std::string> congestion_controls() const;  ///< of open connections

  static constexpr std::size_t most_control_bytes = std::size_t{16} << 10;
  static constexpr std::size_t most_payload_bytes = std::size_t{64} << 20;
  static constexpr std::size_t most_unproved = 64;
  /// Idle seconds after which one of `connections` connections probes its peer's host: all of them together probe some
  /// ten times a second at most, but each once a minute.
  static constexpr unsigned probe_pause_s(std::size_t connections) noexcept {
    return static_cast<unsigned>(std::clamp<std::size_t>(connections / 8, 1, 60));
  }

 private:
  using Stage = Connection::Stage;
  static constexpr std::size_t most_hot = 4;
  static constexpr std::size_t most_directly_blocked = 2;
  static constexpr unsigned polls_after_sleep = 2;     // that ask the epoll set alone
  static constexpr unsigned polls_until_direct = 256;  // until hot sockets leave the epoll set

  // tcp_transport.cpp: the hot path, and sleeping.
  void poll_awakening();
  void poll_hot();
  void poll_blocked();
  void poll_epoll();
  void dispatch(Connection& connection, std::uint32_t events);
  bool receive(Connection& connection);
  void read_paused();
  void resume(Connection& connection);
  void heat(Connection& connection);
  void cool(Connection& connection);
  void set_low_water(Connection& connection, std::size_t bytes);
  void unblock(Connection& connection);
  void update_events(Connection& connection);
  void watch_events(Connection& connection, std::uint32_t events);
  void set_timer();
  void note_deadline(std::int64_t deadline_ns);

  // tcp_speed.cpp: how fast a connection and the network are.
  void judge_speed(Connection& connection);
  void judged(Connection& connection, bool fast);
  void note_carriage(Connection& connection);
  static void set_buffer(Connection& connection, std::size_t bytes);

  // tcp_splicing.cpp: acknowledgements of spliced payloads.
  bool note_splices(Connection& connection, std::uint32_t read_before, std::uint32_t peer_read_before);
  void acknowledge_splices(bool before_sleep);
  bool acknowledge_splices(TcpLink& link);

  // tcp_connecting.cpp: making connections.
  TcpPeer& peer_of(Rank rank);
  TcpLink& link_of(TcpPeer& peer, unsigned rail);
  Connection& new_connection();
  void try_candidate(TcpLink& link);
  void attempt_failed(Connection& connection, std::string reason, bool may_succeed_later);
  void connecting_failed(Connection& connection, int error);
  void connect_later(Connection& connection, int error);
  void continue_connecting(Connection& connection);
  void accept_some();
  void no_room_to_accept(int error);
  void stop_listening();
  void listen_again();
  void continue_proof(Connection& connection);
  bool move_proof_bytes(Connection& connection);
  void proved(Connection& connection);
  void trust(Connection& connection);
  void cut_off(Connection& connection);
  void refused(Connection& connection);
  void drop_unproved(Connection& connection, std::string_view why);

  // tcp_ending.cpp: ends of connections and peers, and deadlines.
  void end(Connection& connection);
  void close_socket(Connection& connection);
  static void cancel_splice(TcpLink& link);
  void lost(Connection& connection, std::string reason);
  void fail(TcpPeer& peer, std::string_view reason);
  void close_all(TcpPeer& peer);
  bool has_connection(const TcpPeer& peer) const;
  std::size_t count_open(bool (*counts)(const Connection&)) const noexcept;
  void settle_losses();
  void check_deadlines();
  void check_deadline(Connection& connection);
  void check_watched();

  TcpOptions options_;
  PacketSink& sink_;
  base::Log& log_;
  Capabilities capabilities_;
  TcpCard card_;
  std::vector<LocalAddress> own_addresses_;
  base::FileDescriptor epoll_;
  base::FileDescriptor listener_;          ///< its connections begin without pacing
  std::string congestion_control_;         ///< of connections to other hosts: the system's
  base::FileDescriptor timer_;
  ReadArea area_;
  SplicePipe pipe_;

  std::unordered_map<std::uint32_t, std::unique_ptr<TcpPeer>> peers_;
  std::vector<std::unique_ptr<Connection>> connections_;
  std::vector<std::unique_ptr<Connection>> ended_;  ///< freed at the beginning of the next poll
  std::vector<TcpPeer*> losing_;
  std::vector<Connection*> blocked_;
  std::vector<Connection*> watched_;
  std::vector<TcpLink*> to_acknowledge_;  ///< peers that do not know yet which splices were read
  std::vector<Connection*> paused_;    ///< `FrameReader::paused`
  std::array<Connection*, most_hot> hot_{};
  std::size_t hot_count_ = 0;
  std::size_t unproved_ = 0;                  ///< accepted connections among those that prove themselves
  std::unordered_set<std::string> logged_hosts_;  ///< hosts of which a dropped connection was logged

  double bytes_per_ns_ = 0;             ///< as `carried_bytes_per_ns`
  std::int64_t now_ns_ = 0;             ///< of the last poll
  std::int64_t next_deadline_ns_ = never;
  static constexpr std::int64_t watch_interval_ns = 1'000'000'000;
  std::int64_t next_watch_ns_ = never;
  base::Shortage connecting_shortage_{options_.descriptor_patience_ns};
  base::Shortage accepting_shortage_{options_.descriptor_patience_ns};
  std::int64_t next_refusal_log_ns_ = INT64_MIN;  ///< time from which turned-away peers are logged again
  std::int64_t next_busy_log_ns_ = INT64_MIN;  ///< time from which missing room for connections is logged again
  std::int64_t timer_set_for_ns_ = never;
  std::uint64_t poll_number_ = 0;
  unsigned events_ = 0;                 ///< reported by this poll
  unsigned polls_per_epoll_ = 1;
  unsigned polls_until_epoll_ = 1;
  unsigned polls_awake_ = 0;            ///< since `arm`, or `polls_until_direct`
  bool armed_ = false;
  bool listening_ = true;               ///< the epoll set watches the listener
};

}  // namespace tandem::comm::internal
