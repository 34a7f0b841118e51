// tandem/model/contention/load.hpp: the input and the output of models of memory contention.
#pragma once

#include <cstdint>

namespace tandem::model::contention {

/// The NUMA nodes on which data lies, numbered from 0; those of the computing cores' own socket come first.
struct Placement {
  unsigned computation = 0;    ///< of the data that the cores use
  unsigned communication = 0;  ///< of the data that the network uses

  friend bool operator==(const Placement&, const Placement&) = default;
};

/// The users of memory at one time: cores of one socket, and the network.
///
/// Only `cores` and `placement` matter to `ThresholdModel`, whose parameters hold for the kernel and the message that
/// were measured.
struct Load {
  unsigned cores = 0;              ///< that compute; 0: none
  Placement placement = {};        ///< of the data
  double flop_per_byte = 0;        ///< arithmetic intensity of the kernel; 0: it only moves data
  double cached_share = 0;         ///< of the kernel's accesses, those that caches serve, from 0 to 1
  std::uint64_t message_bytes = 0; ///< of one message; 0: as long as the measured ones
  double device_mb_s = 0;          ///< bandwidth alone of copies between memory and a device
};

/// Bandwidths in MB/s (10^6 bytes per second), of all computing cores together and of the network.
struct Bandwidths {
  double computation_alone_mb_s = 0;    ///< no communication
  double communication_alone_mb_s = 0;  ///< no computation
  double computation_mb_s = 0;          ///< both at once
  double communication_mb_s = 0;        ///< both at once
  double device_mb_s = 0;               ///< of the copies of `Load::device_mb_s`, all at once
};

}  // namespace tandem::model::contention
