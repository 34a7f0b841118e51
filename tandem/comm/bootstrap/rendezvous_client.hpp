// tandem/comm/bootstrap/rendezvous_client.hpp: a rank's side of the rendezvous.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tandem/comm/bootstrap/bytes.hpp"
#include "tandem/comm/bootstrap/card_directory.hpp"
#include "tandem/comm/bootstrap/rendezvous_wire.hpp"
#include "tandem/comm/bootstrap/socket.hpp"

namespace tandem::comm::internal {

struct RendezvousAccess {
  std::vector<HostPort> servers;  ///< where the one server may be reached
  JobSecret secret{};
  std::uint32_t rank = 0;
  std::uint32_t size = 1;
  std::int64_t timeout_ns = 0;  ///< of joining, and of publishing
  std::int64_t lookup_timeout_ns = 0;  ///< of each look-up; 0: as of joining
};

/// A connection to a rendezvous server after both sides have proved the secret. It stays open for the life of the
/// object: its end shows the server that this rank's program has left.
///
/// Thread-safe. `mutex_` guards the fields below it. One of the threads that wait for addresses reads the socket
/// without the mutex (then `reading_` is set). It stores what it reads for all threads and wakes them. When it leaves,
/// it wakes another one, which takes over; a thread that leaves while nobody reads wakes another one, too, since the
/// wake-up may have been meant for both.
class RendezvousClient final : public CardStore {
 public:
  /// Connects, and tries again while there is no listener yet. Errors: exhausted (time), unsupported (the versions
  /// differ; both are named), invalid_argument (refused), malformed (something else answers there), io (the connection
  /// broke off).
  static base::Result<std::unique_ptr<RendezvousClient>> join(const RendezvousAccess& access);

  const rendezvous::Membership& membership() const noexcept { return membership_; }

  base::Result<void> put(Entry entry, const std::string& bytes) override;
  base::Result<std::string> get(Entry entry, Rank peer, std::int64_t timeout_ns = 0) override;
  std::vector<Rank> missing() override;
  std::int64_t patience_ns() const override {
    return access_.lookup_timeout_ns > 0 ? access_.lookup_timeout_ns : access_.timeout_ns;
  }
  void give_up() override;

 private:
  using Kind = rendezvous::Kind;

  RendezvousClient(const RendezvousAccess& access, TimedSocket socket)
      : access_(access), socket_(std::move(socket)), input_(rendezvous::most_proved_bytes) {}
  base::Result<void> prove_each_other(Deadline deadline);
  base::Result<Frame> expect(Kind kind, Deadline deadline);
  base::Result<bool> read_more(Deadline deadline);
  void store_frames();
  void ask(Entry entry, Rank peer, Deadline deadline);
  void read_some(std::unique_lock<std::mutex>& lock, Deadline until);
  Deadline deadline() const;

  const RendezvousAccess access_;
  TimedSocket socket_;
  rendezvous::Membership membership_;

  std::mutex mutex_;
  std::condition_variable answered_;
  bool reading_ = false;
  bool over_ = false;                          ///< the server is gone, and nothing more can be read
  bool gave_up_ = false;
  FrameBuffer input_;                          ///< the reading thread's while `reading_`; changes under the mutex
  std::map<std::pair<std::uint32_t, Entry>, std::string> entries_;
  std::map<std::uint32_t, std::string> absent_;  ///< why a rank will never have an address
  std::set<std::pair<std::uint32_t, Entry>> asked_;
  std::optional<std::vector<Rank>> missing_;     ///< the last answer to `who`
};

}  // namespace tandem::comm::internal
