// tandem/comm/bootstrap/job.hpp: a process's rank in a job, and how to reach the other ranks.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tandem/base/ids.hpp"
#include "tandem/base/result.hpp"

namespace tandem::comm {

using base::Rank;

/// The secret of a job, which its ranks alone know. It is never sent and never in argv; connections prove it by
/// challenge.
using JobSecret = std::array<std::byte, 32>;

/// How a rank can be reached. Each rank publishes its address once.
struct PeerCard {
  std::uint32_t wire_version = 0;  ///< of `wire.hpp`; different ones refuse each other
  std::string version;             ///< text of base::HostIdentity: equal for ranks of one host, unlike `host_name`
  std::string host;  ///< text of base::HostIdentity: equal for ranks of one host; messages show `host_name`
  std::string host_name;           ///< as people call the host
  std::vector<std::pair<std::string, std::string>> transports;  ///< name and address of each
  // What the rank keeps of one peer's unasked messages; 0 messages: not said.
  std::uint64_t credit_bytes = 0;          ///< `comm.credit_bytes`
  std::uint32_t credit_messages = 0;       ///< `comm.credit_messages`
  std::uint32_t credit_announcements = 0;  ///< `comm.credit_announcements`
};

/// Where addresses are exchanged. Thread-safe. `publish` and `lookup` may block for as long as start-up takes (bounded
/// by the bootstrap's timeout): no thread calls them that others wait for.
class Directory {
 public:
  virtual ~Directory() = default;
  /// Makes this rank's address known. Once. Errors: as for `lookup`.
  virtual base::Result<void> publish(const PeerCard& card) = 0;
  /// Waits until the peer has published. Errors: exhausted (time), io (the launcher is gone).
  virtual base::Result<PeerCard> lookup(Rank peer) = 0;
  /// What `lookup` would return at once; empty when it would wait.
  virtual std::optional<base::Result<PeerCard>> lookup_now(Rank peer) { return lookup(peer); }
  /// Like `lookup`, but waits for `slice_ns` at most in this call. Empty: the peer has not published yet, and may be
  /// asked for again. The time of `lookup` counts from the first call for that peer.
  virtual std::optional<base::Result<PeerCard>> lookup_for(Rank peer, std::int64_t slice_ns) {
    return (void)slice_ns, lookup(peer);
  }
  /// Makes known which cores this rank's process may use. Once, before `publish`. Errors: as for `lookup`.
  virtual base::Result<void> publish_place(const std::string& bytes) { return (void)bytes, no_places(); }
  /// Waits for `timeout_ns` at most until the peer has published its place. Errors: as for `lookup`.
  virtual base::Result<std::string> lookup_place(Rank peer, std::int64_t timeout_ns) {
    return (void)peer, (void)timeout_ns, no_places();
  }
  /// Ranks that have not published their address yet, as far as is known within a second or two; at most 64. For
  /// messages.
  virtual std::vector<Rank> missing() { return {}; }
  /// This rank leaves: look-ups under way, and later ones, end soon, with an error unless the answer is known.
  virtual void give_up() {}

 private:
  static base::Error no_places() { return {base::ErrorCode::unsupported, "this job's directory has no places"}; }
};

/// One rank's membership of a job. `directory` is null only when `size` is 1.
struct Job {
  Rank rank{0};              ///< of this process
  std::uint32_t size = 1;    ///< number of ranks
  JobSecret secret{};        ///< of the job
  std::string id = "alone";  ///< names files and segments of this job on a host; no secret
  std::string source;        ///< "tandem run", "pmix", "environment", "alone", "threads": for messages
  std::shared_ptr<Directory> directory;  ///< where ranks look each other up
  std::uint32_t ranks_here = 1;  ///< of the job on this machine, as far as the launcher says
  std::vector<Rank> here = {};   ///< these ranks, ascending, with this one; empty when the launcher does not say
};

}  // namespace tandem::comm
