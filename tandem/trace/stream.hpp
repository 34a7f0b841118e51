// tandem/trace/stream.hpp: an actor's events: the probes.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>

#include "tandem/clock/clock.hpp"
#include "tandem/clock/tsc_clock.hpp"
#include "tandem/trace/packet.hpp"
#include "tandem/trace/selection.hpp"

namespace tandem::trace {

class Session;
struct Buffer;  // pool.hpp

namespace internal {

template <Field F>
struct FieldValue;
template <> struct FieldValue<Field::u8> { using Type = std::uint8_t; };
template <> struct FieldValue<Field::u16> { using Type = std::uint16_t; };
template <> struct FieldValue<Field::u32> { using Type = std::uint32_t; };
template <> struct FieldValue<Field::u64> { using Type = std::uint64_t; };
template <> struct FieldValue<Field::i16> { using Type = std::int16_t; };
template <> struct FieldValue<Field::i32> { using Type = std::int32_t; };
template <> struct FieldValue<Field::i64> { using Type = std::int64_t; };
template <> struct FieldValue<Field::f64> { using Type = double; };

template <Type T>
constexpr std::size_t fixed_bytes() noexcept {
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < field_count(*find_spec(T)); ++i) bytes += bytes_of(find_spec(T)->fields[i].field);
  return bytes;
}

template <Type T, std::size_t I = 0>
inline void store_fields(std::byte*) noexcept {}

template <Type T, std::size_t I = 0, class First, class... Rest>
[[gnu::always_inline]] inline void store_fields(std::byte* to, First first, Rest... rest) noexcept {
  using Value = typename FieldValue<find_spec(T)->fields[I].field>::Type;
  const auto value = static_cast<Value>(first);
  std::memcpy(to, &value, sizeof(value));
  store_fields<T, I + 1>(to + sizeof(value), rest...);
}

constexpr std::size_t rounded(std::size_t bytes) noexcept { return (bytes + 3) & ~std::size_t{3}; }

/// The kind of a field for values of a type.
template <class Value>
constexpr Field field_of() noexcept {
  if constexpr (std::is_same_v<Value, std::uint8_t>) return Field::u8;
  else if constexpr (std::is_same_v<Value, std::uint16_t>) return Field::u16;
  else if constexpr (std::is_same_v<Value, std::uint32_t>) return Field::u32;
  else if constexpr (std::is_same_v<Value, std::uint64_t>) return Field::u64;
  else if constexpr (std::is_same_v<Value, std::int16_t>) return Field::i16;
  else if constexpr (std::is_same_v<Value, std::int32_t>) return Field::i32;
  else if constexpr (std::is_same_v<Value, std::int64_t>) return Field::i64;
  else if constexpr (std::is_same_v<Value, double>) return Field::f64;
  else {
    static_assert(std::is_same_v<Value, std::string_view>,
                  "values of events are whole numbers of stdint.h, double or std::string_view");
    return Field::text;
  }
}

/// Most bytes of values of a program's own types, which are stored in a record.
inline constexpr std::size_t kLongestValue = 4096;
inline std::string_view stored_part(std::string_view text) noexcept {
  text = text.substr(0, kLongestValue);
  return text.substr(0, text.find('\0'));
}
template <class Value>
std::size_t bytes_of_value(const Value& value) noexcept {
  if constexpr (std::is_same_v<Value, std::string_view>) return stored_part(value).size() + 1;
  else return sizeof(value);
}
template <class Value>
std::byte* store_value(std::byte* to, const Value& value) noexcept {
  if constexpr (std::is_same_v<Value, std::string_view>) {
    const std::string_view part = stored_part(value);
    if (!part.empty()) std::memcpy(to, part.data(), part.size());
    to[part.size()] = std::byte{0};
    return to + part.size() + 1;
  } else {
    std::memcpy(to, &value, sizeof(value));
    return to + sizeof(value);
  }
}

}  // namespace internal

/// The events of one actor, in order. Embedded in the actor; until a session attaches it, and for types that are not
/// selected, a probe is one load and a branch.
///
/// Threads. Only the actor's thread writes. Its buffer is its own until it hands the full buffer over, so a probe takes
/// no lock, shares no cache line and makes no system call. `Session` turns types on and off from any thread; a
/// concurrent probe may still see the old choice. A probe that finds its type on (acquire) also sees what the session
/// has set up before (release).
///
/// Protocol of a live buffer. A record's fields, and a zero where the next record's header word will be, are stored
/// before its own header word (release), which was zero before and is never zero afterwards. So a reader of the memory,
/// even after the process was killed, takes the records before the first zero, and ignores what an earlier packet has
/// left after it.
///
/// Completing a record. The last record of a stream may have a word of 32 bits that its actor stores once more
/// (`leave_open`, then `open_word` and `complete`): the length of a task that runs, the queue of one that was
/// submitted. While it is open, a reader of the memory may find either value:
/// - The actor stores the word before the header word of any later record (both release). So a reader that has found a
///   later header word (acquire) and then loads the word again has its final value; a reader that finds no later record
///   reads this one again the next time (read/copy_records.hpp).
/// - Only the actor hands its buffer over. From then on `open_word` returns null, as it does when another record has
///   followed: nobody stores into a buffer that the flusher may be writing. What could not be completed becomes a
///   record of its own.
/// - A killed program leaves the word open: the task was running.
///
/// Stamps. `emit` reads the clock: 8 of its 10 ns. Immediate consequences of an event can have its stamp:
/// `begin_instant` reads the clock if any of several types is on, and `append` uses that stamp.
class Stream {
 public:
  Stream() noexcept = default;
  ~Stream() { detach(); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  template <Type... T>
  [[gnu::always_inline]] bool any_on() const noexcept {
    constexpr Selection types = selection_of<T...>();
    std::uint64_t found = 0;
    for (std::size_t i = 0; i < types.words.size(); ++i)
      if (types.words[i] != 0) found |= on_[i].load(std::memory_order_acquire) & types.words[i];
    return found != 0;
  }

  template <Type... T>
  [[gnu::always_inline]] bool all_on() const noexcept {
    constexpr Selection types = selection_of<T...>();
    for (std::size_t i = 0; i < types.words.size(); ++i)
      if (types.words[i] != 0 && (on_[i].load(std::memory_order_acquire) & types.words[i]) != types.words[i])
        return false;
    return true;
  }

  /// Writes an event with a stamp of its own.
  template <Type T, class... Fields>
  [[gnu::always_inline]] void emit(Fields... fields) noexcept {
    if (any_on<T>()) [[unlikely]] write<T>(read_clock(), fields...);
  }

  /// Reads the clock if any of these types is on, and returns true then. The following `append`s get this stamp.
  template <Type... T>
  [[gnu::always_inline]] bool begin_instant() noexcept {
    if (!any_on<T...>()) [[likely]] return false;
    instant_ = read_clock();
    return true;
  }
  /// Writes an event with the stamp of the last `begin_instant`.
  template <Type T, class... Fields>
  [[gnu::always_inline]] void append(Fields... fields) noexcept {
    if (any_on<T>()) [[unlikely]] write<T>(instant_, fields...);
  }
  std::uint64_t instant() const noexcept { return instant_; }
  /// Sets the stamp: `ticks` was read by the actor, and is not before the stamp of its last event.
  void set_instant(std::uint64_t ticks) noexcept { instant_ = ticks; }

  /// Writes an event with a stamp that was read by `read_clock` since the last one.
  template <Type T, class... Fields>
  [[gnu::always_inline]] void emit_at(std::uint64_t ticks, Fields... fields) noexcept {
    if (any_on<T>()) [[unlikely]] write<T>(ticks, fields...);
  }

  /// Writes an event of a type that the program has declared; the values have the kinds of its fields.
  template <class... Values>
  [[gnu::always_inline]] void emit_declared(Type type, const Values&... values) noexcept {
    if (!any_on<Type::declared>()) [[likely]] return;
    const Open record = open_whole(type, read_clock(), (internal::bytes_of_value(values) + ... + 0));
    if (record.fields == nullptr) [[unlikely]] return;
    [[maybe_unused]] std::byte* at = record.fields;
    ((at = internal::store_value(at, values)), ...);
    publish(record);
  }

  /// Whether `read_clock` reads the TSC without a call.
  bool reads_tsc() const noexcept { return clock_ == nullptr; }
  std::uint64_t read_clock() const noexcept {
#if defined(__x86_64__)
    if (reads_tsc()) [[likely]] return __builtin_ia32_rdtsc();
#endif
    return static_cast<std::uint64_t>(clock_->now_ns());
  }

  /// A record whose fields the caller stores before it calls `publish`: `fields` has room for `bytes`, with zeros up to
  /// the next multiple of 4. Null `fields`: the event is lost.
  struct Open {
    std::byte* fields = nullptr;
    std::uint32_t* header = nullptr;
    std::uint32_t word = 0;
  };
  [[gnu::always_inline]] Open open(Type type, std::uint64_t ticks, std::size_t bytes) noexcept {
    const std::size_t needed = RecordHeader::compact_bytes + internal::rounded(bytes);
    std::byte* const at = at_;
    if (static_cast<std::size_t>(end_ - at) < needed || ticks - last_ >= RecordHeader::stamp_span ||
        static_cast<std::int64_t>(ticks - last_event_) < 0) [[unlikely]]
      return open_slowly(type, ticks, bytes);
    last_ = last_event_ = ticks;
    at_ = at + needed;
    fetch_ahead(at);
    fill_up(bytes);
    return {at + RecordHeader::compact_bytes, reinterpret_cast<std::uint32_t*>(at), RecordHeader::compact(type, ticks)};
  }
  /// Like `open`, with an extended header: for types whose number needs more than 7 bits.
  [[gnu::always_inline]] Open open_whole(Type type, std::uint64_t ticks, std::size_t bytes) noexcept {
    const std::size_t needed = RecordHeader::extended_bytes + internal::rounded(bytes);
    std::byte* const at = at_;
    if (static_cast<std::size_t>(end_ - at) < needed || static_cast<std::int64_t>(ticks - last_event_) < 0) [[unlikely]]
      return open_slowly(type, ticks, bytes);
    last_ = last_event_ = ticks;
    at_ = at + needed;
    fetch_ahead(at);
    std::memcpy(at + RecordHeader::compact_bytes, &ticks, sizeof(ticks));
    fill_up(bytes);
    return {at + RecordHeader::extended_bytes, reinterpret_cast<std::uint32_t*>(at), RecordHeader::extended(type)};
  }
  [[gnu::always_inline]] void publish(const Open& record) noexcept {
    ++count_;
    last_record_ = record.header;
    open_key_ = kNone;
    *reinterpret_cast<std::uint32_t*>(at_) = 0;
    std::atomic_ref<std::uint32_t>(*record.header).store(record.word, std::memory_order_release);
  }

  /// Whether `open` has only its usual work for a record at `ticks` with up to `most_bytes` of fields. Then the caller
  /// may store the fields behind the header word at `draft()`, and call `publish_draft`, or not.
  [[gnu::always_inline]] bool takes_draft(std::uint64_t ticks, std::size_t most_bytes) const noexcept {
    return static_cast<std::size_t>(end_ - at_) >= RecordHeader::compact_bytes + most_bytes &&
           ticks - last_ < RecordHeader::stamp_span && static_cast<std::int64_t>(ticks - last_event_) >= 0;
  }
  std::byte* draft() const noexcept { return at_; }
  /// Publishes the record at `at`, which `draft` returned, with `bytes` of fields, a multiple of 4; `ticks` as for
  /// `takes_draft`.
  [[gnu::always_inline]] void publish_draft(std::byte* at, Type type, std::uint64_t ticks, std::size_t bytes) noexcept {
    last_ = last_event_ = ticks;
    at_ = at + RecordHeader::compact_bytes + bytes;
    fetch_ahead(at);
    publish({nullptr, reinterpret_cast<std::uint32_t*>(at), RecordHeader::compact(type, ticks)});
  }
  /// Writes a record of any type, on or off, with a stamp as for `emit_at`.
  template <Type T, class... Fields>
  [[gnu::always_inline]] void record(std::uint64_t ticks, Fields... fields) noexcept {
    write<T>(ticks, fields...);
  }
  /// Whether a record with `bytes` of fields fits into the present packet.
  bool has_room(std::size_t bytes) const noexcept {
    return static_cast<std::size_t>(end_ - at_) >= RecordHeader::extended_bytes + internal::rounded(bytes);
  }
  /// Marks the 32 bits at `word`, a multiple of 4, of the last published record as not final. `open_word` finds them by
  /// `key`.
  void leave_open(std::uint32_t key, std::byte* word) noexcept {
    open_word_ = reinterpret_cast<std::uint32_t*>(word);
    open_key_ = key;
  }
  /// The word left open under `key`; null once another record has followed, the buffer has been handed over, or another
  /// record was left open.
  std::uint32_t* open_word(std::uint32_t key) const noexcept {
    return open_key_ == key ? open_word_ : nullptr;
  }
  /// Stores a word that `open_word` returned.
  static void complete(std::uint32_t* word, std::uint32_t value) noexcept {
    std::atomic_ref<std::uint32_t>(*word).store(value, std::memory_order_release);
  }
  /// Like `complete`, for an event at `ticks`, which is not before the last one: no later record gets an earlier stamp.
  void complete_at(std::uint64_t ticks, std::uint32_t* word, std::uint32_t value) noexcept {
    last_event_ = ticks;
    complete(word, value);
  }

  /// Hands the buffer over and turns the stream off. The caller is the actor, or the actor no longer writes.
  void detach() noexcept;
  /// The time of the last event: the stamp of a record, or the time in a completed one.
  std::uint64_t last_event() const noexcept { return last_event_; }
  /// Stores a number of the actor, for instance of the task that it has recorded last, which is forgotten when the
  /// packet ends.
  void mark(std::uint32_t number) noexcept { mark_ = number; }
  void forget_mark() noexcept { mark_ = kNone; }
  bool is_marked(std::uint32_t number) const noexcept { return mark_ == number; }
  /// Packets begun so far: when this changes, facts that each packet must contain are written again.
  std::uint64_t packets() const noexcept { return sequence_; }
  bool attached() const noexcept { return session_.load(std::memory_order_relaxed) != nullptr; }
  bool writes_to(const Session& session) const noexcept { return session_.load(std::memory_order_relaxed) == &session; }
  /// The stream's number in its session, by which other events refer to it.
  std::uint32_t actor() const noexcept { return actor_; }

 private:
  friend class Session;

  template <Type... T>
  static constexpr Selection selection_of() noexcept {
    Selection selection;
    (selection.add(T), ...);
    return selection;
  }

  template <Type T, class... Fields>
  [[gnu::always_inline]] void write(std::uint64_t ticks, Fields... fields) noexcept {
    static_assert(sizeof...(Fields) == field_count(*find_spec(T)),
                  "an event has as many values as its specification has fields");
    const Open record = open(T, ticks, internal::fixed_bytes<T>());
    if (record.fields == nullptr) [[unlikely]] return;
    internal::store_fields<T>(record.fields, fields...);
    publish(record);
  }

  /// Prefetches memory for records: a runtime's many locked instructions wait for all earlier stores, so a record must
  /// not miss the cache.
  static void fetch_ahead(const std::byte* at) noexcept {
#if defined(__x86_64__)
    asm volatile("prefetchw %0" : : "m"(at[512]));
#else
    __builtin_prefetch(at + 512, 1);
#endif
  }
  /// Writes zeros behind the record before `at_`, which has `bytes` of fields.
  [[gnu::always_inline]] void fill_up(std::size_t bytes) noexcept {
    if (bytes % 4 != 0) reinterpret_cast<std::uint32_t*>(at_)[-1] = 0;
  }
  Open open_slowly(Type type, std::uint64_t ticks, std::size_t bytes) noexcept;

  static constexpr std::uint64_t kNone = UINT64_MAX;  ///< instead of a number of 32 bits

  std::array<std::atomic<std::uint64_t>, kTypes / 64> on_{};
  std::byte* at_ = nullptr;     ///< where the next record goes
  std::byte* end_ = nullptr;    ///< end of the room for records; a word of the buffer is behind it
  std::uint64_t last_ = 0;      ///< stamp of the last record
  std::uint64_t last_event_ = 0;  ///< that stamp, or the time of an event that has completed a record since
  const std::uint32_t* last_record_ = nullptr;  ///< its header
  std::uint32_t* open_word_ = nullptr;  ///< of the last record
  std::uint64_t open_key_ = kNone;      ///< `kNone`: that was not left open
  std::uint64_t mark_ = kNone;  ///< `kNone`: none in this packet
  std::uint64_t instant_ = 0;
  const clock::Clock* clock_ = nullptr;  ///< null: the TSC
  std::uint32_t count_ = 0;     ///< records in this buffer
  std::uint32_t actor_ = 0;
  // --- rarely used
  std::atomic<Session*> session_{nullptr};
  Buffer* buffer_ = nullptr;
  unsigned numa_node_ = 0;
  std::uint64_t sequence_ = 0;  ///< packets so far
  std::uint64_t lost_ = 0;      ///< events for which no buffer was free, and overwritten ones
  std::uint64_t lost_reported_ = 0;  ///< of them, reported by `tracer.lost`
  std::uint64_t waited_ns_ = 0;  ///< for buffers, not reported yet by `tracer.waited`
};

}  // namespace tandem::trace
