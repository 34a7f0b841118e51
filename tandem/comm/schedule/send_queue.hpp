// tandem/comm/schedule/send_queue.hpp: what waits to be sent to one peer, in the order in which it should go.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "tandem/comm/match/key_table.hpp"

namespace tandem::comm {

class SendQueue;
struct PacketPlan;

namespace internal {
struct SendLevel;
}

enum class SendKind : std::uint8_t {
  record,  ///< a record of `control_bytes` and nothing else: control records, small eager messages, announcements
  whole,   ///< a record, and `bulk_bytes` that are the payload of the same packet, uncut: an eager message sent without
           ///< a copy
  stream,  ///< `bulk_bytes` that are cut into segments, each with its own record of `control_bytes`; may be ready in
           ///< parts
};

/// Base of what the engine has to send. Owned by the engine; linked from `SendQueue::push` until it is committed
/// (record, whole) or removed (stream), and not moved meanwhile. The fields above the line are set before `push` and
/// belong to the queue afterwards.
struct SendItem : internal::KeyLinks<SendItem> {
  std::uint32_t channel = 0;
  std::uint64_t tag = 0;
  std::int32_t priority = 0;  ///< higher goes first
  SendKind kind = SendKind::record;
  /// Whether it keeps its order with the other ordered items of its (channel, tag): eager messages and announcements.
  /// Never for streams.
  bool ordered = false;
  std::uint32_t control_bytes = 0;  ///< of its record (of each segment's record for a stream)
  std::uint64_t bulk_bytes = 0;     ///< whole: of its payload; stream: that may be sent now, 0 while nothing is ready

  // ---- Fields of the queue; strategies may read them.
  std::uint64_t sequence = 0;          ///< position in the order of `push`
  std::int32_t effective_priority = 0;  ///< of the run, at its last item; see `SendQueue`
  bool last_of_run = true;             ///< whether it is its run's youngest, which stands for the run
  SendItem* run_next = nullptr;        ///< ring of a run; null: not in a queue
  SendItem* run_previous = nullptr;
  SendItem* level_next = nullptr;      ///< neighbours of a run in its level, at its last item
  SendItem* level_previous = nullptr;
  internal::SendLevel* level = nullptr;
  std::size_t heap_index = not_in_heap;  ///< streams

  static constexpr std::size_t not_in_heap = ~std::size_t{0};

  bool queued() const noexcept { return run_next != nullptr; }
  internal::TableKey table_key() const noexcept { return internal::make_key(internal::exact, 0, channel, tag); }
  bool has_key(const internal::TableKey& key) const noexcept { return channel == key.channel && tag == key.tag; }
  bool same_key(const SendItem& other) const noexcept { return channel == other.channel && tag == other.tag; }
};

namespace internal {

/// The items of one effective priority, oldest first: a list of runs.
struct SendLevel {
  std::int32_t priority = 0;
  SendItem* first = nullptr;
  SendItem* last = nullptr;
  SendLevel* lower = nullptr;   ///< neighbours in the order of priority
  SendLevel* higher = nullptr;
};

}  // namespace internal

/// By what a queue orders its items: a property of the strategy that reads it.
enum class SendOrder : std::uint8_t {
  posting,   ///< the order of `push`; priorities are ignored
  priority,  ///< highest effective priority first, order of `push` inside one
};

/// What waits for one peer. Two structures, because packets hold many small items and one payload:
///  - messages (kinds record and whole): one list per priority, read in order through `messages()`;
///  - ready streams: a heap by (priority, age); a stream with nothing ready waits outside, and resumes by its age.
///
/// Order and priority. Ordered items of one (channel, tag) leave in the order of `push`. When one is pushed behind
/// older ones of lower priority, those go first, and with its priority (as NewMadeleine's prio strategy): they and it
/// become one *run*, which stands where the new item alone would stand, at the end of its priority. A run is cut by
/// nothing but commits and removals; an inherited priority is not taken back when the urgent item is removed. Thus the
/// effective priorities of the runs of a key fall from old to new, and a push only ever merges the youngest runs of its
/// key: amortised constant.
///
/// Cost: push, commit and remove of one item are constant while all priorities are equal (a plain list, no hashing);
/// otherwise plus one hash look-up for ordered items, and O(log P) for the first item of a priority, P being the number
/// of different ones that are pending. Streams: O(log S). The steady state allocates nothing.
///
/// Not thread-safe: called under the engine's lock. Owns no item. Destroyed empty or not; items left are simply
/// forgotten.
class SendQueue {
 public:
  explicit SendQueue(SendOrder order = SendOrder::priority) noexcept : order_(order) {}
  SendQueue(const SendQueue&) = delete;
  SendQueue& operator=(const SendQueue&) = delete;

  void push(SendItem& item);

  /// Takes out a queued item that is cancelled, or a stream that is finished.
  void remove(SendItem& item);

  /// Sets the bytes of a stream that may be sent now (0: none; it waits outside until the next `update`).
  void update(SendItem& stream, std::uint64_t bulk_bytes);

  /// Changes kind and sizes of a message that is sent in another way. It keeps its place. Not for streams.
  void reshape(SendItem& message, SendKind kind, std::uint32_t control_bytes, std::uint64_t bulk_bytes);

  /// Sets another priority from now on. A higher one takes the item's run to the end of that priority, older items of
  /// its key first, as a push would. A lower one moves an item that is a run by itself to the end of that priority, or
  /// into the next younger run of its key if that has as much; an item that others of its run need stays. Streams keep
  /// their age. O(length of its run + log P).
  void set_priority(SendItem& item, std::int32_t priority);

  /// Takes out what was sent by a plan: its records and its whole item. Its stream has that much less ready, and stays
  /// in the queue even when nothing is left (the engine removes it after its last byte).
  void commit(const PacketPlan& plan);

  /// Iterates over the messages in the order of sending. Each step is constant time. Valid until an item is taken out
  /// or moved, or an ordered one is pushed; others may be pushed, and messages reshaped, meanwhile.
  class Cursor {
   public:
    explicit operator bool() const noexcept { return item_ != nullptr; }
    SendItem& operator*() const noexcept { return *item_; }
    SendItem* operator->() const noexcept { return item_; }
    /// The effective priority, its own or an inherited one; 0 in the order of posting.
    std::int32_t priority() const noexcept { return run_->effective_priority; }
    void advance() noexcept;

   private:
    friend class SendQueue;
    explicit Cursor(SendItem* run) noexcept : run_(run), item_(run ? run->run_next : nullptr) {}
    SendItem* run_;  // last item of the current run
    SendItem* item_;
  };
  Cursor messages() const noexcept { return Cursor(top_ ? top_->first : nullptr); }

  /// The ready stream that should go first, and the second (`place` 0 or 1); null if there is none.
  SendItem* stream(unsigned place = 0) const noexcept;

  /// Whether the last committed payload was a whole message's: streams and whole messages of one priority take turns.
  bool last_payload_was_whole() const noexcept { return last_payload_was_whole_; }

  SendOrder order() const noexcept { return order_; }
  std::size_t message_count() const noexcept { return messages_; }
  std::size_t stream_count() const noexcept { return streams_; }              ///< ready or not
  std::size_t ready_stream_count() const noexcept { return heap_.size(); }
  bool empty() const noexcept { return messages_ == 0 && streams_ == 0; }
  /// Whether nothing can be sent now: no message, no ready stream.
  bool idle() const noexcept { return messages_ == 0 && heap_.empty(); }
  /// Bytes of messages and of ready streams, for the choice of routes.
  std::uint64_t pending_bytes() const noexcept { return pending_bytes_; }

  /// Aborts when an invariant of the structure does not hold. O(pending); for tests and audits.
  void check_invariants() const;

 private:
  using Levels = std::map<std::int32_t, internal::SendLevel>;

  std::int32_t priority_of(const SendItem& item) const noexcept {
    return order_ == SendOrder::posting ? 0 : item.priority;
  }
  void push_message(SendItem& item);
  void index_keys();
  void absorb_older_runs(SendItem& last);
  void merge_runs(SendItem& older, SendItem& younger);
  void remove_message(SendItem& item);
  void hand_over_run(SendItem& last, SendItem& heir);
  void raise_run(SendItem& last, std::int32_t priority);
  void lower_item(SendItem& item);
  internal::SendLevel& level_for(std::int32_t priority);
  internal::SendLevel& make_level(std::int32_t priority);
  void drop_level(internal::SendLevel& level);
  void append_run(SendItem& last, std::int32_t priority);
  void detach_run(SendItem& last);
  bool before(const SendItem& a, const SendItem& b) const noexcept;
  void heap_place(std::size_t index, SendItem& item) noexcept;
  void heap_up(std::size_t index) noexcept;
  void heap_down(std::size_t index) noexcept;
  void heap_insert(SendItem& item);
  void heap_erase(SendItem& item) noexcept;

  SendOrder order_;
  bool last_payload_was_whole_ = false;
  bool keys_indexed_ = false;          // ordered items of several priorities were seen since there were none
  std::int32_t uniform_priority_ = 0;  // of all ordered items, while the keys are not indexed
  std::size_t ordered_ = 0;
  Levels levels_;                      // none is empty, except when it is the only one
  std::vector<Levels::node_type> spare_levels_;
  internal::SendLevel* top_ = nullptr;         // of the highest priority
  internal::SendLevel* recent_ = nullptr;      // used last: one comparison instead of a search
  internal::KeyTable<SendItem> runs_by_key_;   // last items of the runs of ordered items, oldest run first
  std::vector<SendItem*> heap_;
  std::size_t messages_ = 0;
  std::size_t streams_ = 0;
  std::uint64_t pending_bytes_ = 0;
  std::uint64_t next_sequence_ = 0;
};

}  // namespace tandem::comm
