// tandem/comm/wire.hpp: the records that engines exchange inside control blocks, and how they are written and read.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

#include "tandem/base/assert.hpp"

namespace tandem::comm::wire {

/// Changes with every change of this file, of `sync/records.hpp`, or of `tcp/frame.hpp`; ranks whose versions differ
/// refuse each other at the first contact.
inline constexpr std::uint32_t version = 10;

/// What a record is. Each record begins with a `Prefix` and takes a multiple of 8 bytes. All numbers are little-endian,
/// as the machines are (asserted below).
enum class Kind : std::uint8_t {
  eager = 1,         ///< a whole message: its header and data follow, or its data is the packet's payload
  announce,          ///< a large message: may I send it?
  grant,             ///< you may send a stream up to some byte
  data,              ///< the payload is a segment of a stream
  finish,            ///< the receiver has read an announced message, or a strand, from the sender's memory
  share,             ///< I read your announced message from its beginning; write it from its end, until we meet
  shared,            ///< I have written what I took of it
  mcast,             ///< a strand of a broadcast begins: its route below follows, the payload is its first segment
  mcast_done,        ///< my whole subtree has a strand
  mcast_decline,     ///< I cannot forward a strand: serve my subtree, and me when I ask (or when `mcast_done` follows,
                     ///< not)
  mcast_lost,        ///< a strand will not come: a rank above you died, and no rank has the data
  goodbye,           ///< I leave; I send nothing more
  goodbye_answered,  ///< the answer to it
  defer,       ///< I defer messages for you that I may not announce; or, I do not any more
  want,           ///< while you defer: a receive of mine waits for a message of this channel and tag
};

struct Prefix {
  Kind kind;
  std::uint8_t flags = 0;
  std::uint16_t header_bytes = 0;  ///< of the user's header, which follows the record
};
static_assert(sizeof(Prefix) == 4);

/// Opens every control block. Counters are cumulative, modulo 2^32.
struct BlockHead {
  std::uint32_t seen = 0;            ///< ordered envelopes (eager, announce) that I took from you
  std::uint32_t freed_messages = 0;  ///< eager messages of yours that occupy my memory no more
  std::uint32_t freed_units = 0;     ///< their sizes and headers, each rounded up to units; up to 16 bytes are none
  /// On rail 0: my broadcasts up to this number (its low 32 bits) began before this block, so that all that they were
  /// fenced behind is there.
  std::uint32_t fences_passed = 0;

  static constexpr std::uint32_t unit_bytes = 64;
};

/// Flags of `Eager`, `Announce`.
inline constexpr std::uint8_t flag_after = 1;    ///< an `After` follows the record, before the header
/// The packet's payload is the data, or the announced stream's beginning.
inline constexpr std::uint8_t flag_payload = 2;
inline constexpr std::uint8_t flag_placed = 4;  ///< of an announcement: the network itself writes the payloads of its
                                                ///< stream, also into the memory of CUDA devices

struct Eager {
  Prefix prefix{Kind::eager};
  std::uint32_t bytes = 0;
  std::uint32_t channel = 0;
  std::uint32_t reserved = 0;
  std::uint64_t tag = 0;
};

struct Announce {
  Prefix prefix{Kind::announce};
  std::uint32_t stream = 0;  ///< the sender's number of the stream that will carry it
  std::uint32_t channel = 0;
  std::uint32_t reserved = 0;
  std::uint64_t tag = 0;
  std::uint64_t bytes = 0;
  std::uint64_t address = 0;  ///< of the data in the sender's process, when it is contiguous; 0: not to be pulled
};

/// Follows an `Eager` or `Announce` with `flag_after`.
struct After {
  std::uint64_t broadcast = 0;  ///< of the sender: match only after this one was matched
};

/// Flags of `Grant`.
inline constexpr std::uint8_t flag_last = 1;     ///< nothing beyond `up_to` is wanted (the receive's buffer is short)
inline constexpr std::uint8_t flag_restart = 2;  ///< from the beginning: what came with the announcement was dropped,
                                                 ///< or a broadcast was declined (in epoch 1)
inline constexpr std::uint8_t flag_met = 4;      ///< a receive waited for the announcement

struct Grant {
  Prefix prefix{Kind::grant};
  std::uint32_t stream = 0;
  std::uint64_t up_to = 0;  ///< bytes from the stream's beginning
};

/// Flag of `Data`.
inline constexpr std::uint8_t flag_epoch = 1;  ///< after a restart

struct Data {
  Prefix prefix{Kind::data};
  std::uint32_t stream = 0;
  std::uint64_t offset = 0;
};

struct Finish {
  Prefix prefix{Kind::finish};
  std::uint32_t stream = 0;
};

struct Share {
  Prefix prefix{Kind::share};
  std::uint32_t stream = 0;
  std::uint64_t address = 0;     ///< of the receive's memory in the receiver's process
  std::uint64_t bytes = 0;       ///< of the message that are wanted
  /// What each side takes at a time (engine/copy_meeting.hpp); the last part may be shorter.
  std::uint64_t part_bytes = 0;
};

/// Flag of `Shared`.
inline constexpr std::uint8_t flag_refused = 1;  ///< writing is not permitted: none of what I took is there

struct Shared {
  Prefix prefix{Kind::shared};
  std::uint32_t stream = 0;
  std::uint64_t bytes = 0;  ///< that I took, the last ones of those wanted
};

/// Flags of the broadcast's records.
inline constexpr std::uint8_t flag_strand = 1;      ///< the second strand
inline constexpr std::uint8_t flag_sequential = 4;  ///< children are served one after the other, not segment by segment
/// The strand is sent unasked and counts against the credit, as eager messages do.
inline constexpr std::uint8_t flag_credited = 8;
/// The packet's payload is the first segment; else it is another record's.
inline constexpr std::uint8_t flag_first = 32;
/// The first window is sent unasked; else only what the recipient grants.
inline constexpr std::uint8_t flag_unasked = 16;

struct Mcast {
  Prefix prefix{Kind::mcast};
  std::uint32_t stream = 0;  ///< the parent's number of the stream towards this child
  std::uint32_t root = 0;
  std::uint32_t reserved = 0;
  std::uint64_t id = 0;       ///< counted by the root
  std::uint64_t low_id = 0;   ///< all broadcasts of the root below this id are acknowledged by all
  std::uint64_t after = 0;    ///< recipients whose entry says `ordered` match this one after that one
  std::uint32_t channel = 0;
  /// Entries of the route that follow the user's header: those of this recipient's subtree, its own first
  /// (mcast/route.hpp).
  std::uint32_t route_entries = 0;
  std::uint64_t tag = 0;
  std::uint64_t bytes = 0;         ///< of the whole message
  std::uint64_t strand_first = 0;  ///< the strand carries the bytes from here on
  std::uint64_t strand_bytes = 0;
  std::uint32_t segment_bytes = 0;
  std::uint16_t strands = 1;
  std::uint16_t deaths = 0;        ///< of ranks above, that led to this offer: it replaces those of fewer
  std::uint64_t address = 0;  ///< of the whole strand in the sender's process; 0: not to be pulled
};

struct McastNote {  ///< mcast_done, mcast_decline
  Prefix prefix{Kind::mcast_done};
  std::uint32_t stream = 0;
};

struct McastLost {
  Prefix prefix{Kind::mcast_lost};
  std::uint32_t root = 0;
  std::uint64_t id = 0;
  std::uint64_t low_id = 0;
  std::uint64_t after = 0;
  std::uint32_t channel = 0;
  std::uint32_t dead = 0;
  std::uint32_t strands = 1;
  std::uint32_t reserved = 0;
  std::uint64_t tag = 0;
  std::uint64_t bytes = 0;
  std::uint64_t self = 0;  ///< the recipient's own route entry
  std::uint32_t stream = 0;  ///< to be acknowledged with `mcast_done` by this number; 0: not
  std::uint32_t reserved_too = 0;
};

struct Goodbye {
  Prefix prefix{Kind::goodbye};
  std::uint32_t reserved = 0;
};

/// Flag of `Defer`.
inline constexpr std::uint8_t flag_over = 1;  ///< nothing is deferred any more

struct Defer {
  Prefix prefix{Kind::defer};
  std::uint32_t reserved = 0;
};

/// Flags of `Want`.
inline constexpr std::uint8_t flag_any_tag = 1;
inline constexpr std::uint8_t flag_all = 2;  ///< of any tag, as many as there are, from now on
inline constexpr std::uint8_t flag_renew = 4;  ///< forget what I wanted: what I still want follows
inline constexpr std::uint8_t flag_everything = 8;  ///< of any channel and tag, from now on, while you defer messages

struct Want {
  Prefix prefix{Kind::want};
  std::uint32_t channel = 0;
  std::uint64_t tag = 0;
};

template <class Record>
concept IsRecord = std::is_trivially_copyable_v<Record> && sizeof(Record) % 8 == 0;
static_assert(IsRecord<Eager> && IsRecord<Announce> && IsRecord<After> && IsRecord<Grant> && IsRecord<Data> &&
              IsRecord<Finish> && IsRecord<Share> &&
              IsRecord<Shared> && IsRecord<Mcast> && IsRecord<McastNote> && IsRecord<McastLost> && IsRecord<Goodbye> &&
              IsRecord<Defer> && IsRecord<Want> && sizeof(BlockHead) == 16);
static_assert(sizeof(Eager) == 24 && sizeof(Data) == 16 && sizeof(Mcast) == 96);
static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the wire format is written for little-endian machines");

constexpr std::size_t padded(std::size_t bytes) noexcept { return (bytes + 7) & ~std::size_t{7}; }

/// Appends records to a block of fixed capacity. The caller has made sure that there is room (assertion).
class Writer {
 public:
  explicit Writer(std::span<std::byte> room) noexcept : room_(room) {}

  template <IsRecord Record>
  void put(const Record& record) noexcept {
    TANDEM_DEBUG_ASSERT(used_ + sizeof record <= room_.size());
    std::memcpy(room_.data() + used_, &record, sizeof record);
    used_ += sizeof record;
  }
  /// Writes by words: a record assembled in memory and then copied by wider loads would wait for its own stores.
  [[gnu::always_inline]] void put(const Eager& record) noexcept {
    const auto two = [](std::uint32_t low, std::uint32_t high) { return low | std::uint64_t{high} << 32; };
    const std::uint32_t prefix = static_cast<std::uint32_t>(record.prefix.kind) |
                                 std::uint32_t{record.prefix.flags} << 8 |
                                 std::uint32_t{record.prefix.header_bytes} << 16;
    put_word(two(prefix, record.bytes));
    put_word(two(record.channel, record.reserved));
    put_word(record.tag);
  }
  /// Loads each counter by itself: they are counted one by one, often right before, and one load of several would wait
  /// until they are in memory.
  [[gnu::always_inline]] void put_head(const BlockHead& head) noexcept {
    const auto alone = [](const std::uint32_t& counter) -> std::uint64_t {
      return *static_cast<const volatile std::uint32_t*>(&counter);
    };
    put_word(alone(head.seen) | alone(head.freed_messages) << 32);
    put_word(alone(head.freed_units) | alone(head.fences_passed) << 32);
  }
  /// Writes bytes, padded with zeros to a multiple of 8.
  void put_bytes(std::span<const std::byte> bytes) noexcept {
    if (!bytes.empty()) std::memcpy(claim(bytes.size()).data(), bytes.data(), bytes.size());
  }
  /// Reserves `bytes`, padded, for the caller to fill.
  std::span<std::byte> claim(std::size_t bytes) noexcept {
    const std::size_t whole = padded(bytes);
    TANDEM_DEBUG_ASSERT(used_ + whole <= room_.size());
    std::byte* place = room_.data() + used_;
    if (whole != bytes) std::memset(place + whole - 8, 0, 8);
    used_ += whole;
    return {place, bytes};
  }

  std::size_t used() const noexcept { return used_; }
  std::size_t left() const noexcept { return room_.size() - used_; }
  std::span<const std::byte> block() const noexcept { return room_.first(used_); }

 private:
  void put_word(std::uint64_t word) noexcept {
    TANDEM_DEBUG_ASSERT(used_ + sizeof word <= room_.size());
    std::memcpy(room_.data() + used_, &word, sizeof word);
    used_ += sizeof word;
  }

  std::span<std::byte> room_;
  std::size_t used_ = 0;
};

/// What precedes the data of a message that is alone in its block and has no header.
inline constexpr std::size_t kBeforeData = sizeof(BlockHead) + sizeof(Eager);

/// Loads a field of a block once: its sender can still change the memory, and what was checked must be what is used.
template <class Field>
[[gnu::always_inline]] inline Field load_once(const std::byte* at) noexcept {
  static_assert(sizeof(Field) == 4 || sizeof(Field) == 8);
  return *reinterpret_cast<const volatile Field*>(at);
}
/// Like `load_once`, for what was read with `memcpy`: the compiler does not read it again after this point.
inline void loaded_once() noexcept { std::atomic_signal_fence(std::memory_order_seq_cst); }

/// Prefix and bytes of the first record of a block, which has at least `kBeforeData` bytes.
inline std::uint64_t first_word(std::span<const std::byte> block) noexcept {
  return load_once<std::uint64_t>(block.data() + sizeof(BlockHead));
}
/// Whether a block holds one eager message with its data, without header and flags, and nothing else, as most do.
/// `first` is its `first_word`.
inline bool holds_one_plain_message(std::span<const std::byte> block, std::uint64_t first) noexcept {
  return static_cast<std::uint32_t>(first) == static_cast<std::uint32_t>(Kind::eager) &&
         block.size() - kBeforeData == padded(first >> 32);
}
/// The record of such a block, loaded by fields, which stay in registers.
[[gnu::always_inline]] inline Eager plain_message(std::span<const std::byte> block, std::uint64_t first) noexcept {
  const std::byte* const record = block.data() + sizeof(BlockHead);
  Eager eager;
  eager.bytes = static_cast<std::uint32_t>(first >> 32);
  eager.channel = load_once<std::uint32_t>(record + offsetof(Eager, channel));
  eager.tag = load_once<std::uint64_t>(record + offsetof(Eager, tag));
  return eager;
}

/// Reads records from a block that may hold anything, and that may change meanwhile: every read is checked against its
/// end, and `ok` reports a failed one. A record that was read is a copy; `get_bytes` refers to the block.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> block) noexcept : block_(block) {}

  bool at_end() const noexcept { return at_ == block_.size(); }
  bool ok() const noexcept { return ok_; }
  /// The next record's prefix, which stays to be read.
  Prefix peek() noexcept {
    Prefix prefix{};
    if (block_.size() - at_ < sizeof prefix) {
      ok_ = false;
    } else {
      std::memcpy(&prefix, block_.data() + at_, sizeof prefix);
      loaded_once();
    }
    return prefix;
  }
  template <class Record>
  Record get() noexcept {
    if (block_.size() - at_ < sizeof(Record)) [[unlikely]] {
      ok_ = false;
      return Record{};
    }
    Record record;
    std::memcpy(&record, block_.data() + at_, sizeof record);
    loaded_once();
    at_ += sizeof record;
    return record;
  }
  /// `bytes` bytes and their padding.
  std::span<const std::byte> get_bytes(std::size_t bytes) noexcept {
    // Compared without adding, since `bytes` may be anything.
    if (bytes > block_.size() - at_ || padded(bytes) > block_.size() - at_) {
      ok_ = false;
      return {};
    }
    const auto found = block_.subspan(at_, bytes);
    at_ += padded(bytes);
    return found;
  }

 private:
  std::span<const std::byte> block_;
  std::size_t at_ = 0;
  bool ok_ = true;
};

}  // namespace tandem::comm::wire
