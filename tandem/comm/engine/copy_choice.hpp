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

/// Learns which way is faster, for each power of two of sizes, by taking both and looking at how long they took. Neither wins
/// everywhere: it depends on the caches, on what a system call costs on this machine, and on whether senders are there to copy.
///
/// The first messages of each size take turns; later the slower way is taken now and then, more rarely the slower it is, since
/// what was true at first may change. Not thread-safe.
class CopyChoice {
 public:
  CopyWay choose(std::uint64_t bytes) noexcept {
    Size& size = size_of(bytes);
    const auto [pull, segments] = size.ways;
    if (std::min(pull.tries, segments.tries) < kFirstTries) return pull.tries <= segments.tries ? CopyWay::pull : CopyWay::segments;
    const CopyWay better = pull.ns_per_byte <= segments.ns_per_byte ? CopyWay::pull : CopyWay::segments;
    const auto [least, most] = std::minmax(pull.ns_per_byte, segments.ns_per_byte);
    const unsigned period = most <= kLittleSlower * least ? kOftenTriesPeriod : most <= kMuchSlower * least ? kTriesPeriod : kRareTriesPeriod;
    if (++size.turn < period) return better;
    size.turn = 0;
    return better == CopyWay::pull ? CopyWay::segments : CopyWay::pull;
  }

  /// So long it took until the message was there. Not told for those that failed or were cancelled.
  void took(CopyWay way, std::uint64_t bytes, std::int64_t ns) noexcept {
    if (bytes == 0) return;
    Way& known = size_of(bytes).ways[static_cast<std::size_t>(way)];
    const double sample = static_cast<double>(std::max<std::int64_t>(ns, 0)) / static_cast<double>(bytes);
    // The first ones meet cold caches and unmapped pages.
    const bool fresh = known.tries < kFirstTries;
    if (fresh) known.ns_per_byte = known.tries++ == 0 ? sample : std::min(known.ns_per_byte, sample);
    // What was interrupted counts as slow, not as the time that the interruption took.
    else known.ns_per_byte += kWeight * (std::min(sample, kMostOutlying * known.ns_per_byte) - known.ns_per_byte);
  }

  static constexpr unsigned kFirstTries = 3;        ///< of each way
  static constexpr unsigned kOftenTriesPeriod = 16;   ///< messages per try of the slower way, where it is little slower
  static constexpr unsigned kTriesPeriod = 64;
  static constexpr unsigned kRareTriesPeriod = 1024;  ///< where it is much slower
  static constexpr double kLittleSlower = 1.3;
  static constexpr double kMuchSlower = 3;

 private:
  struct Way {
    double ns_per_byte = 0;
    unsigned tries = 0;
  };
  struct Size {
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
