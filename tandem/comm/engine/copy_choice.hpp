// tandem/comm/engine/copy_choice.hpp: whether a large message on one host is read by its receiver or comes in segments. Pure.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

namespace tandem::comm::internal {

/// How a message between two processes of a host may come.
enum class CopyWay : std::uint8_t {
  pull,      ///< its receiver reads the sender's memory: one copy, by the kernel, on the receiver's core
  segments,  ///< through the transport: two copies, at once where both sides have a core
};

/// Learns which way is better, for each power of two of sizes, by taking both and looking at how long they took. Neither wins
/// everywhere: it depends on the caches, on what a system call costs on this machine, and on whether senders are there to copy.
///
/// Messages that fit into a cache are rather pulled, unless segments are much faster: they drag the rings through the caches,
/// which makes the pulls in the other direction slower, so that two ranks would each find segments to be no worse. Longer ones
/// rather come in segments. The other way is tried at first, and then now and then, more rarely the farther it is from being
/// taken, since what was true may change, and trying costs. Not thread-safe.
class CopyChoice {
 public:
  CopyWay choose(std::uint64_t bytes) noexcept {
    Size& size = size_of(bytes);
    const auto [pull, segments] = size.ways;
    const bool fits = bytes < kFitsCache;
    const CopyWay usual = fits ? CopyWay::pull : CopyWay::segments;
    const CopyWay other = fits ? CopyWay::segments : CopyWay::pull;
    if (size.way(usual).tries < kFirstTries) return usual;
    if (size.way(other).tries < kFirstTries) return fits || size.due(kOftenTriesPeriod) ? other : usual;
    const double margin = fits ? kMuchFaster : 1;
    const CopyWay better = pull.ns_per_byte <= margin * segments.ns_per_byte ? CopyWay::pull : CopyWay::segments;
    const CopyWay worse = better == CopyWay::pull ? CopyWay::segments : CopyWay::pull;
    double slower = size.way(worse).ns_per_byte / std::max(size.way(better).ns_per_byte, 1e-9);
    if (worse != usual) slower *= margin;  // so much is missing until it is taken
    return size.due(slower <= kLittleSlower ? kOftenTriesPeriod
                    : slower <= kMuchSlower ? kTriesPeriod
                                            : kRareTriesPeriod)
               ? worse
               : better;
  }

  /// So long it took until the message was there. Not told for those that failed or were cancelled.
  void took(CopyWay way, std::uint64_t bytes, std::int64_t ns) noexcept {
    if (bytes == 0) return;
    Way& known = size_of(bytes).way(way);
    const double sample = static_cast<double>(std::max<std::int64_t>(ns, 0)) / static_cast<double>(bytes);
    // The first ones meet cold caches and unmapped pages.
    const bool fresh = known.tries < kFirstTries;
    if (fresh) known.ns_per_byte = known.tries++ == 0 ? sample : std::min(known.ns_per_byte, sample);
    // What was interrupted counts as slow, not as the time that the interruption took.
    else known.ns_per_byte += kWeight * (std::min(sample, kMostOutlying * known.ns_per_byte) - known.ns_per_byte);
  }

  static constexpr unsigned kFirstTries = 3;        ///< of each way
  static constexpr unsigned kOftenTriesPeriod = 16;   ///< messages per try of the slower way, where it is little slower
  static constexpr unsigned kTriesPeriod = 256;
  static constexpr unsigned kRareTriesPeriod = 1024;  ///< where it is much slower
  static constexpr std::uint64_t kFitsCache = 1 << 20;
  static constexpr double kMuchFaster = 1.5;
  static constexpr double kLittleSlower = 1.3;
  static constexpr double kMuchSlower = 3;

 private:
  struct Way {
    double ns_per_byte = 0;
    unsigned tries = 0;
  };
  struct Size {
    Way& way(CopyWay which) noexcept { return ways[static_cast<std::size_t>(which)]; }
    /// Whether the time of a try has come, once in so many messages.
    bool due(unsigned period) noexcept {
      if (++turn < period) return false;
      turn = 0;
      return true;
    }
    std::array<Way, 2> ways;  ///< by CopyWay
    unsigned turn = 0;
  };
  static constexpr double kWeight = 0.25;
  static constexpr double kMostOutlying = 1.5;
  static constexpr int kLeastBits = 15;

  Size& size_of(std::uint64_t bytes) noexcept {
    const int index = std::clamp(static_cast<int>(std::bit_width(bytes)) - kLeastBits, 0, static_cast<int>(sizes_.size()) - 1);
    return sizes_[static_cast<std::size_t>(index)];
  }

  std::array<Size, 16> sizes_;  ///< below 32 KiB, below 64 KiB, ... 512 MiB and above
};

}  // namespace tandem::comm::internal
