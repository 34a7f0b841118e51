// tandem/comm/transport/loop/loop.hpp: ranks of one process, connected by a simulated network with chosen delays and
// failures.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/base/event_loop.hpp"
#include "tandem/base/result.hpp"
#include "tandem/comm/transport/transport.hpp"

namespace tandem::comm {

/// How fast hosts can send now, where something else than the network limits it.
class LoopRates {
 public:
  virtual ~LoopRates() = default;
  virtual double bytes_per_ns(Rank from, Rank to) = 0;
  /// Notes a packet that is under way until then.
  virtual void note_packet(Rank from, Rank to, std::int64_t until_ns) = 0;
};

/// Hears of packets that a rank's processor sends or receives.
class LoopLabour {
 public:
  virtual ~LoopLabour() = default;
  /// `is_near`: between ranks of one host.
  virtual void note_packet(Rank rank, std::size_t bytes, bool is_near) = 0;
};

/// Carries what the rank of this process sends to ranks of other processes.
class LoopWire {
 public:
  virtual ~LoopWire() = default;
  /// `message` arrives at `when_ns`: the process of `to` calls `LoopNetwork::arrive` with it at that time.
  virtual void carry(Rank to, std::int64_t when_ns, std::string message) = 0;
};

struct LoopOptions {
  std::uint32_t ranks = 2;
  std::uint32_t ranks_per_host = UINT32_MAX;  ///< as published, so that broadcasts see hosts
  unsigned rails = 1;
  std::size_t eager_bytes = 4096;
  std::size_t segment_bytes = 16384;
  std::size_t payload_bytes = 0;              ///< of a packet at most; 0: a segment
  std::size_t packets_in_flight = 16;         ///< per link, then `retry`
  bool remote_copy = false;                   ///< as on one host: `read_remote` and `write_remote` work
  bool cuda_memory = false;  ///< it says that it reads the memory of CUDA devices, which must be plain memory here
  unsigned remote_copies_allowed = UINT_MAX;  ///< per link; later ones are refused
  bool copies = false;  ///< packets are copied when sent (`done`); else read when delivered (`posted`)
  /// With `copies` and an event loop: a packet is in flight until it has left its rank, as in the buffer of a socket.
  /// False: until its receiver has taken it.
  bool in_flight_until_left = false;
  /// False: nothing of a message that is longer than `eager_bytes` arrives, and the memory of its receiver stays as it
  /// is. For simulations, whose data means nothing.
  bool bulk_travels = true;
  bool deaths_are_seen_by_all = true;         ///< else only by ranks with a link to the dead one, as with TCP
  // Only with an event loop:
  /// Each packet is delayed by a time drawn from [min, max], later ones of a link never.
  std::int64_t latency_min_ns = 0;
  std::int64_t latency_max_ns = 0;            ///<   overtaking; packets of different links do
  double bytes_per_ns = 0;                    ///< each rank sends one packet at a time at this rate; 0: without limit
  bool receives_one_by_one = false;           ///< each rank receives one packet at a time, too, at that rate
  /// Between ranks of one host; `host_bytes_per_ns` 0: as between others. A rank sends in both ways at once, and ranks
  /// of one host that are here, not behind `wire`, share what they send to others, and what they receive.
  std::int64_t host_latency_ns = 0;
  double host_bytes_per_ns = 0;
  LoopRates* rates = nullptr;                 ///< where the rate changes, below `bytes_per_ns`. Outlives the network
  LoopLabour* labour = nullptr;  ///< hears of all packets. Outlives the network
  /// One rank attaches here, and reaches the others by this wire, which outlives the network; with `copies`, without
  /// `remote_copy`.
  LoopWire* wire = nullptr;

  /// Longer messages arrive without their bytes.
  std::size_t carried_bytes() const noexcept { return bulk_travels ? SIZE_MAX : eager_bytes; }
};

class LoopTransport;

/// The medium between the loop transports of one process. Outlives them. Thread-safe, so that each rank may have its
/// thread; with an event loop everything is delivered in manual time, drawn from the loop's seed.
class LoopNetwork {
 public:
  explicit LoopNetwork(const LoopOptions& options, base::EventLoop* loop = nullptr);
  ~LoopNetwork();

  const LoopOptions& options() const noexcept { return options_; }
  std::unique_ptr<Transport> attach(Rank rank, PacketSink& sink, std::function<void()> wake);

  /// Kills a rank: each of its rails loses its packets in flight from some packet on, and the others learn of it after
  /// a delay.
  void kill(Rank rank);
  /// Stops the packets of a rank (SIGSTOP), or lets them flow again.
  void stop(Rank rank, bool stopped);
  /// Delivers what another process has given to its wire for `to`, now. Errors: the bytes are no such message.
  base::Result<void> arrive(Rank to, std::string_view message);
  /// The answer of a rank that has left to such a message; nothing where none is due.
  static std::optional<std::string> refusal(Rank left, std::string_view message);

 private:
  friend class LoopTransport;
  friend class LoopLink;
  enum class Kind : std::uint8_t { packet, taken, failed, closed, refused };
  struct Message;
  class Messages;
  class Payload;
  class Queue;
  struct Box;
  struct Port;
  struct Timing;
  struct TakeBack {
    void operator()(Message* message) const noexcept;
  };
  using Owned = std::unique_ptr<Message, TakeBack>;

  Box& box(Rank rank) noexcept;
  Owned make(Kind kind, Rank from, Rank to, unsigned rail = 0);
  Owned answer_to(const Message& packet);
  void send(Owned message, std::int64_t* last_ns = nullptr);
  void carry(std::int64_t when_ns, const Message& message);
  void receive(Owned message);
  void at(std::int64_t when_ns, Owned message, void (*go_on)(LoopNetwork&, Owned));
  void deliver_at(std::int64_t when_ns, Owned message);
  void deliver(Owned message);
  bool is_dead(Rank rank);
  bool is_lost(const Message& message);
  std::atomic<std::uint64_t>& word(Rank from, Rank to);
  void report_death(Rank dead, Rank to);
  void note_labour(Rank rank, Rank other, const Message& message);
  bool is_near(Rank from, Rank to) const noexcept {
    return options_.host_bytes_per_ns > 0 &&
           from.value() / options_.ranks_per_host == to.value() / options_.ranks_per_host;
  }
  double rate(bool is_near) const noexcept { return is_near ? options_.host_bytes_per_ns : options_.bytes_per_ns; }
  std::size_t unsent_bytes(Rank from);
  std::int64_t moving_ns(Rank from, Rank to, std::size_t bytes);
  Port& port(Rank rank, bool is_near);
  std::int64_t& last_ns(Rank from, Rank to, unsigned rail);
  std::int64_t left_ns(Rank from, Rank to);
  std::int64_t arrival_ns(Rank from, Rank to, std::size_t bytes, std::int64_t& last_ns);

  LoopOptions options_;
  base::EventLoop* loop_;
  const std::unique_ptr<Messages> messages_;
  std::vector<Box> boxes_;                                             ///< by rank
  std::atomic<bool> is_troubled_ = false;                              ///< some rank was killed or stopped
  std::vector<Timing> timing_;                                         ///< by rank, with an event loop: of its thread
  std::mutex mutex_;                                                   ///< guards words_ (the map)
  std::map<std::pair<Rank, Rank>, std::atomic<std::uint64_t>> words_;  ///< by sender and receiver
};

}  // namespace tandem::comm
