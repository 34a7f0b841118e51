// tandem/comm/sync/records.hpp: the records by which ranks synchronise their clocks; each is the header of one message.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <type_traits>
#include <variant>

#include "tandem/clock/global_clock.hpp"
#include "tandem/clock/tsc_clock.hpp"

namespace tandem::comm::internal::sync {

/// A counter that all processes of a host share, and how a rank's clock follows from it: two ranks of one host that
/// read the same counter know their offset by arithmetic.
struct SharedCounter {
  enum Kind : std::uint64_t { none, tsc, kernel_clock };
  std::uint64_t kind = none;
  clock::TickScale scale = {};  ///< of `tsc`
};

// Measuring, from a child to its parent in the tree and back.
struct Ask {                    ///< may I measure? Repeated until the turn comes
  std::uint64_t attempt = 0;    ///< counts the child's measurements
};
struct Turn {                   ///< now, alone; and how my clock leads to the reference
  std::uint64_t attempt = 0;
  clock::GlobalClock to_reference = {};
  SharedCounter counter = {};
};
struct Ping {
  std::uint64_t attempt = 0;
  std::int64_t send_ns = 0;     ///< the child's time, written as late as possible
};
struct Pong {
  std::uint64_t attempt = 0;
  std::int64_t send_ns = 0;     ///< the ping's, returned, so that the child need not store it
  std::int64_t remote_ns = 0;   ///< the parent's time when the ping arrived
  std::uint64_t processor = no_processor;  ///< the parent's processor at that time

  static constexpr std::uint64_t no_processor = UINT64_MAX;
};
struct End {                    ///< I have measured
  std::uint64_t attempt = 0;
};

// The barrier. `barrier` counts the barriers of a job, `round` the proposals for one of them.
struct Ready {                  ///< up: all ranks below have come
  std::uint64_t barrier = 0;
};
struct Propose {                ///< down: can you leave at this time of the reference?
  std::uint64_t barrier = 0;
  std::uint64_t round = 0;
  std::int64_t leave_ns = 0;
};
struct Vote {                   ///< up: the least time that any rank below had left; negative: too late
  std::uint64_t barrier = 0;
  std::uint64_t round = 0;
  std::int64_t slack_ns = 0;
};
struct Commit {                 ///< down: leave at this time
  std::uint64_t barrier = 0;
  std::int64_t leave_ns = 0;
};
struct Nudge {                  ///< down: no content; its failure shows that a peer is gone
  std::uint64_t barrier = 0;
};
struct Broken {                 ///< to all neighbours, once: barriers cannot complete any more
  std::uint64_t rank = 0;
  std::uint64_t left = 0;       ///< 1: said goodbye; 0: died
};

using Record = std::variant<Ask, Turn, Ping, Pong, End, Ready, Propose, Vote, Commit, Nudge, Broken>;
static_assert(sizeof(Turn) == 8 + 48 + 32 && std::is_trivially_copyable_v<Record>);

/// A record as bytes: its kind, then its fields, as this machine has them (the wire's version guards both).
class PackedRecord {
 public:
  explicit PackedRecord(const Record& record) noexcept {
    const std::uint64_t kind = record.index();
    std::memcpy(bytes_.data(), &kind, sizeof kind);
    std::visit(
        [&](const auto& value) {
          std::memcpy(bytes_.data() + sizeof kind, &value, sizeof value);
          used_ = sizeof kind + sizeof value;
        },
        record);
  }
  std::span<const std::byte> bytes() const noexcept { return std::span(bytes_).first(used_); }

 private:
  std::array<std::byte, sizeof(Turn) + sizeof(std::uint64_t)> bytes_;
  std::size_t used_ = 0;
};

template <std::size_t kind = 0>
std::optional<Record> read_fields(std::uint64_t wanted, std::span<const std::byte> bytes) noexcept {
  if constexpr (kind == std::variant_size_v<Record>) {
    return std::nullopt;
  } else {
    if (wanted != kind) return read_fields<kind + 1>(wanted, bytes);
    std::variant_alternative_t<kind, Record> value;
    if (bytes.size() != sizeof value) return std::nullopt;
    std::memcpy(&value, bytes.data(), sizeof value);
    return Record(value);
  }
}

/// Reads a record. Empty when there is no such kind, or its size is wrong. The fields may be anything.
inline std::optional<Record> read_record(std::span<const std::byte> bytes) noexcept {
  std::uint64_t kind = 0;
  if (bytes.size() < sizeof kind) return std::nullopt;
  std::memcpy(&kind, bytes.data(), sizeof kind);
  return read_fields(kind, bytes.subspan(sizeof kind));
}

}  // namespace tandem::comm::internal::sync
