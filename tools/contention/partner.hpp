// tools/contention/partner.hpp: messages between the measured rank 0 and rank 1, which sends what is requested.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>

#include "tandem/base/result.hpp"
#include "tandem/comm/endpoint.hpp"
#include "tools/contention/team.hpp"

namespace tandem::tools::contention {

/// The network's rate; one of both.
struct NetworkRate {
  std::optional<double> mb_s;        ///< received
  std::optional<double> latency_us;  ///< half a round trip
};

/// Messages of at most this many bytes are measured by round trips, larger ones by receiving.
inline constexpr std::uint64_t latency_bytes = 64;

struct Question;

/// Rank 0's side.
class Partner {
 public:
  explicit Partner(comm::Endpoint& endpoint) : endpoint_(endpoint) {}

  /// Makes memory of `bytes` bytes.
  using MakeMemory = std::function<base::Result<NodeMemory>(std::size_t bytes)>;

  /// Requests message after message of `bytes` into `memory`, for `seconds` and at least four. The first and the last
  /// do not count. With `make`, each message is in memory that none was in before, on both ranks: for large ones, new
  /// memory is made between two messages, which does not count; of small ones, each is on a page of its own. Errors:
  /// io, when rank 1 is gone; those of `make`.
  base::Result<NetworkRate> receive(NodeMemory& memory, const MakeMemory& make, std::uint64_t bytes, double seconds);
  /// Ends `serve` on rank 1, and tells it whether applications follow.
  void dismiss(bool applications_follow);

 private:
  base::Result<NetworkRate> receive_large(NodeMemory& memory, const MakeMemory& make, std::uint64_t bytes,
                                          double seconds);
  base::Result<NetworkRate> round_trips(NodeMemory& memory, const MakeMemory& make, std::uint64_t bytes,
                                        double seconds);
  base::Result<void> renew(NodeMemory& memory, const MakeMemory& make, const Question& question);
  comm::Endpoint& endpoint_;
};

/// Rank 1: answers until rank 0 dismisses it, and returns whether applications follow. Errors: io, when rank 0 is gone;
/// exhausted.
base::Result<bool> serve(comm::Endpoint& endpoint, const base::Topology& topology);

}  // namespace tandem::tools::contention
