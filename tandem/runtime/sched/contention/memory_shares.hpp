// tandem/runtime/sched/contention/memory_shares.hpp: tables of the rates of kernels and copies that share a memory.
// Pure.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace tandem::runtime {

/// Tables from a model of memory contention for one memory of the machine, asked once for each number of cores.
///
/// A core is *whole* if its kernel moves as much as a core can. A kernel that moves a part d of that, its *demand*,
/// counts as d cores, so the number of cores is real: between two entries of a table lies a line. Of n whole cores each
/// has the share s(n) of what it would have alone; a kernel that asks for d gets min(d, s(n)) of it, so it takes d /
/// s(n) times as long as alone where that is more than 1.
struct MemoryShares {
  double core_bytes_per_ns = 0;              ///< rate of a core alone; 0: not known
  double stream_bytes_per_ns = 0;            ///< rate of messages, or copies of a device, beside no core
  std::vector<double> of_cores = {};         ///< s(n), by n from 0
  std::vector<double> beside_messages = {};  ///< s(n) while messages use the memory, too
  std::vector<double> of_streams = {};  ///< share of `stream_bytes_per_ns` of messages, or copies of a device, by n

  bool is_known() const noexcept { return core_bytes_per_ns > 0; }

  /// The share s(n) of each core.
  double share_of(double cores, bool messages) const noexcept {
    return at(messages ? beside_messages : of_cores, cores);
  }
  /// Slowdown of a kernel that asks for `demand`, when n whole cores use the memory, itself included.
  double slowdown(double demand, double cores, bool messages) const noexcept {
    return std::max(1.0, demand / share_of(cores, messages));
  }
  /// Rate of a copy over a link that moves `bytes_per_ns` alone. A slower link asks for less, so it slows down later.
  double copy_bytes_per_ns(double bytes_per_ns, double cores) const noexcept {
    const double left = at(of_streams, cores) * stream_bytes_per_ns / std::min(bytes_per_ns, stream_bytes_per_ns);
    return bytes_per_ns * std::clamp(left, of_streams.back(), 1.0);
  }

 private:
  static double at(const std::vector<double>& table, double cores) noexcept {
    const double last = static_cast<double>(table.size() - 1);
    if (!(cores < last)) return table.back();
    const auto below = static_cast<std::size_t>(cores);
    return table[below] + (cores - static_cast<double>(below)) * (table[below + 1] - table[below]);
  }
};

}  // namespace tandem::runtime
