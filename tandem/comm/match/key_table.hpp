// tandem/comm/match/key_table.hpp: a hash table of queues, whose links lie in the queued objects.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <utility>

#include "tandem/base/assert.hpp"

namespace tandem::comm::internal {

/// A key and its hash. Bits of the hash, from the lowest: 2 of the class, 4 of the bucket inside its block, 57 of the
/// block; the highest is 0. The four buckets' bits are the tag's lowest ones, exclusive-or'ed with bits of the block's
/// hash: 16 consecutive tags fill one block of 16 adjacent buckets in some order, so walking through tags walks through
/// memory, and tags that differ only above (strides of powers of two) still spread over all buckets.
struct TableKey {
  std::uint64_t hash = 0;
  std::uint64_t tag = 0;
  std::uint32_t source = 0;
  std::uint32_t channel = 0;
};

/// Bits of a class: what a key leaves open. Open parts of a key are zero.
enum WildClass : unsigned { exact = 0, wild_source = 1, wild_tag = 2, wild_both = 3 };

inline constexpr unsigned class_bits = 2;
inline constexpr unsigned bucket_bits = 4;
inline constexpr std::size_t block_buckets = std::size_t{1} << bucket_bits;

/// The key of a message, seen from a class of receives.
inline TableKey make_key(unsigned wild_class, std::uint32_t source, std::uint32_t channel, std::uint64_t tag) noexcept {
  if (wild_class & wild_source) source = 0;
  if (wild_class & wild_tag) tag = 0;
  // Two multiplications by odd constants spread each half; a last xor-shift-multiply (as in MurmurHash3's finaliser, by
  // A. Appleby) brings the high bits down to where blocks are chosen.
  std::uint64_t mixed = ((tag >> bucket_bits) + 4 * std::uint64_t{channel} + wild_class) * 0x9e3779b97f4a7c15u;
  mixed ^= mixed >> 32;
  mixed += ((std::uint64_t{source} << 32) | channel) * 0xd6e8feb86659fd93u;
  mixed ^= mixed >> 33;
  mixed *= 0xff51afd7ed558ccdu;
  mixed ^= mixed >> 33;
  const std::uint64_t bucket = (tag ^ (mixed >> 60)) & (block_buckets - 1);
  const std::uint64_t block = mixed & ((std::uint64_t{1} << 57) - 1);
  return {(block << (class_bits + bucket_bits)) | (bucket << class_bits) | wild_class, tag, source, channel};
}

/// The links of an object in a `KeyTable`. An object is in one table at most and does not move meanwhile.
template <class Node>
struct KeyLinks {
  KeyLinks() = default;
  KeyLinks(const KeyLinks&) = delete;
  KeyLinks& operator=(const KeyLinks&) = delete;

  Node* next = nullptr;      ///< younger one of the same key; null at the youngest
  Node* previous = nullptr;  ///< older one of the same key; at the oldest, the youngest; null: in no table
  Node* chain = nullptr;     ///< at the oldest of a key: the oldest of another key in the same bucket
  std::uint64_t hash = 0;

  bool linked() const noexcept { return previous != nullptr; }
};

/// Queues of `Node`s by key: `push` at the end, `front` and `back`, `remove` anywhere; each in constant time.
///
/// A bucket holds a hash and the oldest node of a key; keys that share a bucket are chained through their oldest nodes.
/// The hash in the bucket, and a bit that says whether there is a chain, keep look-ups that fail from touching any
/// node. A key without nodes leaves nothing behind. The table holds at most as many keys as buckets, and shrinks when
/// it has been less than an eighth full for long, or by `trim`. Resizing moves a few blocks with each `push` and
/// `remove` (whose cost is thus bounded): blocks below `moved_` are in `table_`, others still in `old_`. Two cases cost
/// no hashing at all: a single node stands outside the table (`lone`), and the oldest node of the key that was pushed
/// last is known (`recent`), since streams of messages have one key.
///
/// `Node` derives from `KeyLinks<Node>` and has `TableKey table_key() const`, `bool same_key(const Node&) const`, and
/// `bool has_key(const TableKey&) const`, which is asked only about keys of the node's hash.
/// Not thread-safe. Owns no node.
template <class Node>
class KeyTable {
 public:
  KeyTable() = default;
  KeyTable(const KeyTable&) = delete;
  KeyTable& operator=(const KeyTable&) = delete;

  std::size_t size() const noexcept { return size_; }
  /// Number of different keys, including that of a lone node.
  std::size_t key_count() const noexcept { return lone_ ? 1 : keys_; }
  /// The only node, if it stands outside the table: callers may compare with it instead of computing a hash.
  Node* lone() const noexcept { return lone_; }
  /// The oldest node of the key that was pushed last, if known: for a comparison like that with `lone`.
  Node* recent() const noexcept { return recent_; }

  /// The oldest node of a key, or null.
  Node* front(const TableKey& key) const noexcept {
    if (lone_) [[unlikely]] return lone_->table_key().hash == key.hash && lone_->has_key(key) ? lone_ : nullptr;
    if (keys_ == 0) return nullptr;
    const Bucket& bucket = home(key.hash);
    Node* node = bucket.head;
    if (!node) return nullptr;
    if ((bucket.hash & ~chained) == key.hash && node->has_key(key)) [[likely]] return node;
    if (!(bucket.hash & chained)) return nullptr;
    while ((node = node->chain) && !(node->hash == key.hash && node->has_key(key))) {}
    return node;
  }

  /// The youngest node of a key, or null.
  Node* back(const TableKey& key) const noexcept {
    Node* const oldest = front(key);
    return oldest ? oldest->previous : nullptr;
  }

  /// The next older node of the same key, or null. The node is in this table.
  Node* older(const Node& node) const noexcept { return node.previous->next == &node ? node.previous : nullptr; }

  /// Adds a node behind those of its key.
  void push(Node& node) {
    TANDEM_DEBUG_ASSERT(!node.linked() && !node.next && !node.chain);
    if (size_++ == 0) {
      lone_ = &node;
      node.previous = &node;
      if (table_.blocks > kept_blocks) [[unlikely]] note_use();
      return;
    }
    if (recent_ && recent_->same_key(node)) [[likely]] {
      node.hash = recent_->hash;
      append(*recent_, node);
      return;
    }
    push_among_many(node);
  }

  /// Takes a node, which is in this table, out of the queue of its key.
  void remove(Node& node) noexcept {
    TANDEM_DEBUG_ASSERT(node.linked() && size_ > 0);
    --size_;
    if (lone_) {
      TANDEM_DEBUG_ASSERT(lone_ == &node);
      lone_ = nullptr;
    } else {
      remove_among_many(node);
    }
    node.next = node.previous = node.chain = nullptr;
  }

  /// Takes out the node `recent`, which is not null.
  [[gnu::always_inline]] void remove_recent() noexcept {
    Node& node = *recent_;
    Node* const successor = node.next;
    if (successor == nullptr || (recent_place_ == nullptr && !find_recent_place())) [[unlikely]] return remove(node);
    // The successor, of the same hash and before the same chain, takes the place of the oldest.
    --size_;
    successor->previous = node.previous;
    successor->chain = node.chain;
    *recent_place_ = recent_ = successor;
    node.next = node.previous = node.chain = nullptr;
  }

  /// Puts another node of the same key into the place of one that is in this table.
  void replace(Node& node, Node& with) noexcept {
    TANDEM_DEBUG_ASSERT(node.linked() && !with.linked());
    recent_place_ = nullptr;
    with.hash = node.hash;
    with.next = node.next;
    with.chain = node.chain;
    with.previous = node.previous == &node ? &with : node.previous;
    if (recent_ == &node) recent_ = &with;
    if (lone_) {
      lone_ = &with;
    } else {
      replace_in_older(node, with);
      if (!node.next && with.previous != &with) oldest_before(node)->previous = &with;
      if (node.next) node.next->previous = &with;
    }
    node.next = node.previous = node.chain = nullptr;
  }

  /// Calls `visit(Node&)` for each node, in no order of keys; inside a key from old to young. The visitor changes
  /// nothing in the table.
  template <class Visit>
  void for_each(Visit&& visit) const {
    if (lone_) visit(*lone_);
    for_each_key([&visit](Node& oldest) {
      for (Node* node = &oldest; node; node = node->next) visit(*node);
    });
  }

  /// Frees at once the memory of a table without keys, and begins to shrink one that is much too large. Constant time.
  void trim() noexcept {
    sparse_uses_ = 0;
    if (!sparse()) return;
    if (keys_ == 0) {
      old_ = Table();
      table_ = Table();
      return;
    }
    if (old_.blocks != 0) return;
    recent_place_ = nullptr;
    try {  // not to less than an eighth, so that the move is over long before the smaller table is full
      resize(std::max({kept_blocks, table_.blocks / 8, std::bit_ceil(2 * keys_) / block_buckets}));
    } catch (const std::bad_alloc&) {  // the large table serves as well
    }
  }

  /// Bytes that `trim` frees sooner or later; 0 unless the table is much too large.
  std::size_t spare_bytes() const noexcept { return sparse() ? table_.buckets() * sizeof(Bucket) : 0; }
  std::size_t memory_bytes() const noexcept { return (table_.buckets() + old_.buckets()) * sizeof(Bucket); }

  /// Aborts when an invariant does not hold. O(size).
  void check_invariants() const {
    std::size_t keys = 0, nodes = 0;
    for_each_key([&](Node& oldest) {
      ++keys;
      check_reachable(oldest);
      for (Node* node = &oldest; node; node = node->next) {
        ++nodes;
        TANDEM_ASSERT(node->hash == oldest.hash && node->has_key(oldest.table_key()) &&
                      node->table_key().hash == node->hash);
        TANDEM_ASSERT(node->next ? node->next->previous == node : oldest.previous == node);
      }
    });
    TANDEM_ASSERT(keys == keys_ && nodes + (lone_ ? 1 : 0) == size_);
    TANDEM_ASSERT(!lone_ || (size_ == 1 && keys_ == 0 && lone_->previous == lone_));
    TANDEM_ASSERT(!recent_ || (!lone_ && front(recent_->table_key()) == recent_));
    TANDEM_ASSERT(!recent_place_ ||
                  (recent_ && recent_place_ == &home(recent_->hash).head && *recent_place_ == recent_));
    TANDEM_ASSERT(old_.blocks == 0 || moved_ < old_.blocks);
    TANDEM_ASSERT(keys_ <= table_.buckets());
  }

 private:
  struct Bucket {
    std::uint64_t hash;  ///< of `head`, and `chained`
    Node* head;
  };
  static_assert(sizeof(Bucket) == 16 && block_buckets * sizeof(Bucket) % 64 == 0);

  /// Bucket 0 is aligned to a cache line; memory from `calloc` is clean already when it is fresh from the system.
  struct Table {
    Table() = default;
    explicit Table(std::size_t block_count)
        : blocks(block_count), memory(std::calloc(1, buckets() * sizeof(Bucket) + 64)) {
      if (!memory) throw std::bad_alloc();
      first = reinterpret_cast<Bucket*>((reinterpret_cast<std::uintptr_t>(memory.get()) + 63) & ~std::uintptr_t{63});
    }
    std::size_t buckets() const noexcept { return blocks * block_buckets; }
    Bucket& at(std::uint64_t hash) const noexcept {
      return first[(hash >> class_bits) & (buckets() - 1)];  // the bits of the block lie above those of the bucket
    }

    struct Free {
      void operator()(void* bytes) const noexcept { std::free(bytes); }
    };
    std::size_t blocks = 0;  ///< a power of two, or 0
    std::unique_ptr<void, Free> memory;
    Bucket* first = nullptr;
  };

  static constexpr std::uint64_t chained = std::uint64_t{1} << 63;
  static constexpr std::size_t first_blocks = 4;     ///< 1 KiB
  static constexpr std::size_t kept_blocks = 16;     ///< 4 KiB: not freed
  static constexpr std::size_t blocks_per_step = 2;  ///< moved with each push and remove while resizing

  [[gnu::always_inline]] Bucket& home(std::uint64_t hash) const noexcept {
    if (old_.blocks != 0) [[unlikely]] {
      if (((hash >> (class_bits + bucket_bits)) & (old_.blocks - 1)) >= moved_) return old_.at(hash);
    }
    return table_.at(hash);
  }

  [[gnu::noinline]] void push_among_many(Node& node) {
    recent_place_ = nullptr;
    if (Node* const first = std::exchange(lone_, nullptr)) insert(*first);
    insert(node);
  }

  [[gnu::noinline]] void remove_among_many(Node& node) noexcept {
    recent_place_ = nullptr;
    if (node.previous->next == &node) remove_younger(node);
    else remove_oldest(node);
  }

  /// False: `recent_` stands behind another key in its bucket.
  [[gnu::noinline]] bool find_recent_place() noexcept {
    Bucket& bucket = home(recent_->hash);
    if (bucket.head == recent_) recent_place_ = &bucket.head;
    return recent_place_ != nullptr;
  }

  void insert(Node& node) {
    const TableKey key = node.table_key();
    node.hash = key.hash;
    if (keys_ + 1 > table_.buckets()) [[unlikely]] resize(std::max(first_blocks, 2 * table_.blocks));
    step();
    recent_ = front(key);
    if (recent_) return append(*recent_, node);
    recent_ = &node;
    node.previous = &node;
    ++keys_;
    link_key(home(node.hash), node);
    note_use();
  }

  static void append(Node& oldest, Node& node) noexcept {
    node.previous = oldest.previous;
    node.previous->next = &node;
    oldest.previous = &node;
  }

  static void link_key(Bucket& bucket, Node& oldest) noexcept {
    oldest.chain = bucket.head;
    bucket.hash = oldest.hash | (bucket.head ? chained : 0);
    bucket.head = &oldest;
  }

  void remove_younger(Node& node) noexcept {
    node.previous->next = node.next;
    if (node.next) {
      node.next->previous = node.previous;
      return;
    }
    oldest_before(node)->previous = node.previous;  // the youngest leaves: its key's oldest remembers the new one
  }

  /// The oldest node of the key whose youngest is `youngest`.
  Node* oldest_before(const Node& youngest) const noexcept {
    Node* oldest = home(youngest.hash).head;
    while (oldest->previous != &youngest) oldest = oldest->chain;
    return oldest;
  }

  void replace_in_older(Node& node, Node& with) noexcept {
    if (node.previous->next == &node) {
      node.previous->next = &with;
      return;
    }
    Node** place = &home(node.hash).head;
    while (*place != &node) place = &(*place)->chain;
    *place = &with;
  }

  void remove_oldest(Node& node) noexcept {
    if (&node == recent_) recent_ = node.next;
    Node* successor = node.chain;
    if (node.next) {
      successor = node.next;
      successor->previous = node.previous;
      successor->chain = node.chain;
    }
    Bucket& bucket = home(node.hash);
    if (bucket.head == &node) {
      bucket.head = successor;
      if (successor) bucket.hash = successor->hash | (successor->chain ? chained : 0);
    } else {
      Node* before = bucket.head;
      while (before->chain != &node) before = before->chain;
      before->chain = successor;
      if (before == bucket.head && !successor) bucket.hash &= ~chained;
    }
    if (node.next) return;
    --keys_;
    step();
    note_use();
  }

  bool sparse() const noexcept { return table_.blocks > kept_blocks && 8 * keys_ < table_.buckets(); }

  /// Shrinks a table that has been sparse for as many operations as it has buckets: a table that is drained and filled
  /// repeatedly keeps its size, and earlier operations pay for the shrinking.
  void note_use() noexcept {
    if (!sparse()) [[likely]] {
      sparse_uses_ = 0;
    } else if (++sparse_uses_ > table_.buckets()) {
      trim();
    }
  }

  void resize(std::size_t blocks) {
    while (old_.blocks != 0) step();
    Table other(blocks);
    old_ = std::exchange(table_, std::move(other));
    moved_ = 0;
    sparse_uses_ = 0;
  }

  void step() noexcept {
    for (std::size_t count = 0; count < blocks_per_step && old_.blocks != 0; ++count) {
      Bucket* const block = old_.first + moved_ * block_buckets;
      ++moved_;
      for (std::size_t i = 0; i < block_buckets; ++i) move_bucket(block[i]);
      if (moved_ == old_.blocks) old_ = Table();
    }
  }

  void move_bucket(const Bucket& bucket) noexcept {
    if (!bucket.head) return;
    if (!(bucket.hash & chained)) {  // without touching the node, when its new bucket is free
      Bucket& to = table_.at(bucket.hash);
      if (!to.head) {
        to = bucket;
        return;
      }
    }
    for (Node* node = bucket.head; node;) {
      Node* const following = node->chain;
      link_key(table_.at(node->hash), *node);
      node = following;
    }
  }

  template <class Visit>
  void for_each_key(Visit&& visit) const {
    for (std::size_t i = 0; i < table_.buckets(); ++i) {
      for (Node* node = table_.first[i].head; node; node = node->chain) visit(*node);
    }
    for (std::size_t i = moved_ * block_buckets; i < old_.buckets(); ++i) {
      for (Node* node = old_.first[i].head; node; node = node->chain) visit(*node);
    }
  }

  void check_reachable(const Node& oldest) const {
    const Bucket& bucket = home(oldest.hash);
    TANDEM_ASSERT((bucket.hash & ~chained) == bucket.head->hash);
    TANDEM_ASSERT(((bucket.hash & chained) != 0) == (bucket.head->chain != nullptr));
    const Node* node = bucket.head;
    while (node && node != &oldest) node = node->chain;
    TANDEM_ASSERT(node == &oldest);
  }

  Table table_;
  Table old_;              // what is being moved into `table_`; empty most of the time
  std::size_t moved_ = 0;  // blocks of `old_` that have been moved
  std::size_t keys_ = 0;   // in the tables
  std::size_t size_ = 0;
  std::size_t sparse_uses_ = 0;  // operations since the table was last well filled
  Node* lone_ = nullptr;
  Node* recent_ = nullptr;  // the oldest of its key; null: not known
  Node** recent_place_ = nullptr;  // what points to `recent_` in its bucket; null: not known, or another node
};

}  // namespace tandem::comm::internal
