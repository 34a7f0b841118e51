// tandem/runtime/machine/machine_network.hpp: durations of messages to other ranks, by their size, alone and under
// load.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tandem::runtime {

/// Source of a machine's figures.
enum class LinkSource : std::uint8_t {
  assumed,   ///< neither given nor measured
  given,     ///< by the program, a test or a device
  measured,  ///< on this machine
};

/// Duration of a message of some bytes from the post to the arrival.
struct MessageTimes {
  std::size_t bytes = 0;
  double alone_ns = 0;                     ///< while nothing else is under way
  std::optional<double> both_ways_ns = {};  ///< while a message of as many bytes goes the other way
  std::optional<double> loaded_ns = {};    ///< while all links between memories of both ranks copy
  std::optional<double> all_pairs_ns = {};  ///< while all other ranks, in pairs, send each other large messages
};

/// Messages over one transport, to another rank of this host or to one of another host.
struct MachineNetwork {
  std::string transport;            ///< "shm", "tcp" and so on
  LinkSource source = LinkSource::given;
  std::vector<MessageTimes> times;  ///< durations by bytes, ascending; not empty

  /// Duration of a message of `bytes` alone: interpolated between two sizes, the smallest size's time below it, by the
  /// largest size's rate above it.
  double message_ns(std::size_t bytes) const noexcept;
  /// Duration of the smallest message.
  std::int64_t latency_ns() const noexcept;
  /// Rate of the largest message.
  double bytes_per_ns() const noexcept { return static_cast<double>(times.back().bytes) / times.back().alone_ns; }
  /// Rate of further bytes of a large message: without what a message takes beside its bytes, and without what a
  /// network lets pass at once after a rest. That of the largest message, where the sizes do not show it.
  double marginal_bytes_per_ns() const noexcept;
};

}  // namespace tandem::runtime
