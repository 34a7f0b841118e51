// tandem/comm/bootstrap/rendezvous_server.hpp: where ranks publish their addresses and look up others.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tandem/base/file_descriptor.hpp"
#include "tandem/base/log.hpp"
#include "tandem/base/result.hpp"
#include "tandem/comm/bootstrap/bytes.hpp"
#include "tandem/comm/bootstrap/card_directory.hpp"
#include "tandem/comm/bootstrap/job.hpp"
#include "tandem/comm/bootstrap/job_roll.hpp"
#include "tandem/comm/bootstrap/rendezvous_wire.hpp"
#include "tandem/comm/bootstrap/socket.hpp"

namespace tandem::comm {

struct RendezvousOptions {
  std::uint32_t size = 1;
  JobSecret secret{};
  std::string job_id;
  std::string host = {};          ///< listens there, as `listen_at` does
  std::uint16_t port = 0;         ///< 0: any
  std::string port_origin = {};   ///< what chose the port, for messages: "MASTER_PORT"
  std::int64_t proof_timeout_ns = 30'000'000'000;  ///< a connection that has not proved the secret by then is dropped
};

/// The rendezvous of one job. Its owner waits until `descriptor()` is readable or the time that `serve` returned has
/// come, and then calls `serve`. Never blocks, except in `hand_over`.
///
/// A rank may leave, and another program of the same rank may come later (a script that starts two programs one after
/// the other). The second program belongs to the next *generation*, and sees only addresses of that one.
///
/// Not thread-safe. The bytes of a connection can end that connection and nothing else. A connection that cannot prove
/// the secret is dropped and logged. At most `size` + 64 unproved connections are kept at a time. A process without a
/// descriptor for one more connection refuses it, and says why; silent strangers go first. Invariants: each rank has at
/// most one connection; a look-up is answered once. A call of `serve` costs what has happened, not the number of ranks.
class RendezvousServer {
 public:
  /// Errors: io.
  static base::Result<std::unique_ptr<RendezvousServer>> listen(RendezvousOptions options, base::Log& log);
  ~RendezvousServer();

  std::uint16_t port() const noexcept { return listener_.port; }
  /// Where processes of this machine reach the server.
  internal::HostPort place_on_this_host() const { return internal::place_on_this_host(listener_); }
  /// Readable when `serve` has something to do.
  int descriptor() const noexcept { return epoll_.get(); }
  /// Does what can be done now. `now_ns` is monotonic. Returns the latest time of the next call.
  std::int64_t serve(std::int64_t now_ns);

  /// Notes that this rank's process is gone, and answers all ranks that wait for its address or will ask for it.
  void rank_ended(Rank rank, const std::string& reason);

  /// A rank whose process has ended without joining, or without publishing, while others of its job have done so and
  /// may wait for it for ever. Empty: there is none.
  std::optional<Rank> never_came() const;

  /// Before the server leaves while ranks continue: sends each rank all addresses of its generation, so that it need
  /// not ask any more. Waits until they are sent, at most 2 s.
  void hand_over();

 private:
  enum class State { greeting, proving, member };
  using Key = std::pair<std::uint32_t, internal::Entry>;  ///< what that rank published
  struct Connection {
    explicit Connection(base::FileDescriptor taken)
        : socket(std::move(taken)), input(internal::rendezvous::most_unproved_bytes) {}
    base::FileDescriptor socket;
    std::string name;
    State state = State::greeting;
    internal::FrameBuffer input;
    std::string output;
    bool waits_to_write = false;
    bool closing = false;          ///< to be closed once the output is sent
    std::int64_t prove_until_ns = 0;
    std::string hello, challenge;  ///< bodies, for the proofs
    std::uint32_t rank = 0;
    std::uint32_t generation = 0;
    std::set<Key> sent;            ///< entries that were sent
    std::set<Key> asked;           ///< entries that it waits for, or waited for
  };
  struct Generation {
    std::map<Key, std::string> entries;
    std::map<Key, std::set<int>> waiting;  ///< sockets that asked, per entry that is missing
  };
  using Kind = internal::rendezvous::Kind;

  RendezvousServer(RendezvousOptions options, base::Log& log)
      : options_(std::move(options)), log_(log), roll_(options_.size) {}
  base::Result<void> open();
  void accept_all(std::int64_t now_ns);
  void refuse_for_want_of_descriptors(int reason, std::int64_t now_ns);
  bool make_room(std::int64_t silent_since_ns);
  void drop_late(std::int64_t now_ns);
  void read_from(int socket);
  std::string handle(Connection& connection, const internal::Frame& frame);
  std::string greet(Connection& connection, const std::string& body);
  std::string welcome(Connection& connection, const std::string& proof);
  std::string publish(Connection& connection, const std::string& body);
  std::string look_up(Connection& connection, const std::string& body);
  std::string list_missing(Connection& connection);
  bool is_taken(std::uint32_t rank);
  void refuse(Connection& connection, const std::string& reason);
  void send(Connection& connection, Kind kind, std::string_view body);
  static std::string published(const Key& key, const std::string& bytes);
  void send_entry(Connection& connection, const Key& key, const std::string& bytes);
  void write_to(Connection& connection);
  void drop(int socket);
  void stop_waiting(const Connection& connection);
  void complain(const Connection& connection, std::string_view reason);
  void forget_old_generations();

  const RendezvousOptions options_;
  base::Log& log_;
  base::FileDescriptor epoll_;
  internal::Listener listener_;
  std::map<int, std::unique_ptr<Connection>> connections_;  ///< by socket
  std::map<std::uint32_t, int> members_;                    ///< sockets by rank
  std::map<std::uint32_t, Generation> generations_;
  std::set<std::pair<std::int64_t, int>> unproved_;  ///< until when each must have proved the secret, and its socket
  internal::JobRoll roll_;
  unsigned complaints_ = 0;
};

}  // namespace tandem::comm
