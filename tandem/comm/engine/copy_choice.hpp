// tandem/comm/engine/copy_choice.hpp: how a large message between two processes of a host is copied. Pure.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <span>

namespace tandem::comm::internal {

/// Ways in which a message between two processes of a host may come.
enum class CopyWay : std::uint8_t {
  both,      ///< the receiver reads from the beginning, the sender writes into the receiver's memory from the end
  pull,      ///< the receiver reads the sender's memory: one copy, by the kernel, on its core
  segments,  ///< through the transport: two copies, at once where both sides have a core
};

/// Learns the best way for each power of two of sizes, by trying all and timing them. None wins everywhere: it depends
/// on the caches, on the cost of a system call on this machine, and on whether senders are there to copy.
///
/// Messages that fit into a cache are copied by the kernel, unless segments are much faster: those drag the rings
/// through the caches, which slows the copies in the other direction, so that two ranks would each find segments no
/// worse. The other ways are tried at first, and then more rarely the slower they are, since the best way may change,
/// and trying costs. A try is a few messages in a row, of which the last counts: the first ones after a change find the
/// bytes in the other processor's cache. Not thread-safe.
class CopyChoice {
 public:
  /// `sharable`: both sides can copy this message.
  CopyWay choose(std::uint64_t bytes, bool sharable) noexcept {
    Size& size = size_of(bytes);
    if (size.left > 0 && (sharable || size.trying != CopyWay::both)) {
      --size.left;
      return size.trying;
    }
    const bool fits = bytes < kFitsCache;
    // The ways from the usual one on; for large messages the third is rarely good.
    const std::array<CopyWay, 3> order = fits ? std::array{CopyWay::both, CopyWay::pull, CopyWay::segments}
                                              : std::array{CopyWay::both, CopyWay::segments, CopyWay::pull};
    const auto ways = std::span(order).subspan(sharable ? 0 : 1);
    for (const CopyWay way : ways) {
      if (size.way(way).tries >= kFirstTries) continue;
      if (way == ways[0] || fits || size.due(way, kOftenTriesPeriod)) return size.try_out(way);
    }
    const auto known = [&](CopyWay way) { return size.way(way).tries >= kFirstTries; };
    const auto cost = [&](CopyWay way) {
      return size.way(way).ns_per_byte * (fits && way == CopyWay::segments ? kMuchFaster : 1);
    };
    CopyWay best = ways[0];
    for (const CopyWay way : ways) {
      if (known(way) && cost(way) < cost(best)) best = way;
    }
    for (const CopyWay way : ways) {
      if (way == best || !known(way)) continue;
      const unsigned period = cost(way) <= kLittleSlower * cost(best) ? kOftenTriesPeriod
                              : cost(way) <= kMuchSlower * cost(best) ? kTriesPeriod
                                                                      : kRareTriesPeriod;
      if (size.due(way, period)) return size.try_out(way);
    }
    return best;
  }

  /// Learns that a message took `ns`. Not called for messages that failed or were cancelled.
  void took(CopyWay way, std::uint64_t bytes, std::int64_t ns) noexcept {
    if (bytes == 0) return;
    Size& size = size_of(bytes);
    if (size.left > 0 && way == size.trying) return;
    Way& known = size.way(way);
    const double sample = static_cast<double>(std::max<std::int64_t>(ns, 0)) / static_cast<double>(bytes);
    // The first tries meet unmapped pages.
    const bool fresh = known.tries < kFirstTries;
    if (fresh) known.ns_per_byte = known.tries++ == 0 ? sample : std::min(known.ns_per_byte, sample);
    // An interrupted message counts as slow, not as the time of the interruption.
    else known.ns_per_byte += kWeight * (std::min(sample, kMostOutlying * known.ns_per_byte) - known.ns_per_byte);
  }

  static constexpr unsigned kRow = 4;                 ///< messages of a try
  static constexpr unsigned kFirstTries = 2;          ///< of each way
  static constexpr unsigned kOftenTriesPeriod = 64;   ///< messages per try of a way that is a little slower
  static constexpr unsigned kTriesPeriod = 1024;
  static constexpr unsigned kRareTriesPeriod = 4096;  ///< messages per try of a way that is much slower
  static constexpr std::uint64_t kFitsCache = 1 << 20;
  static constexpr double kMuchFaster = 1.5;
  static constexpr double kLittleSlower = 1.3;
  static constexpr double kMuchSlower = 3;

 private:
  struct Way {
    double ns_per_byte = 0;
    unsigned tries = 0;
    unsigned waited = 0;  ///< messages since it was tried for trying's sake
  };
  struct Size {
    Way& way(CopyWay which) noexcept { return ways[static_cast<std::size_t>(which)]; }
    /// Whether a try is due, once in `period` messages.
    bool due(CopyWay which, unsigned period) noexcept {
      unsigned& waited = way(which).waited;
      if (++waited < period) return false;
      waited = 0;
      return true;
    }
    CopyWay try_out(CopyWay which) noexcept {
      trying = which;
      left = kRow - 1;
      return which;
    }
    std::array<Way, 3> ways;  ///< by CopyWay
    CopyWay trying = CopyWay::both;
    unsigned left = 0;        ///< messages of the try that goes on
  };
  static constexpr double kWeight = 0.25;
  static constexpr double kMostOutlying = 1.5;
  static constexpr int kLeastBits = 15;

  Size& size_of(std::uint64_t bytes) noexcept {
    const int index =
        std::clamp(static_cast<int>(std::bit_width(bytes)) - kLeastBits, 0, static_cast<int>(sizes_.size()) - 1);
    return sizes_[static_cast<std::size_t>(index)];
  }

  std::array<Size, 16> sizes_;  ///< below 32 KiB, below 64 KiB, ... 512 MiB and above
};

}  // namespace tandem::comm::internal
