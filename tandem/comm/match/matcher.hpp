// tandem/comm/match/matcher.hpp: pairs receives with messages in constant time, wildcards included.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "tandem/base/ids.hpp"
#include "tandem/comm/match/channel_set.hpp"
#include "tandem/comm/match/key_table.hpp"
#include "tandem/comm/match/wild_links.hpp"

namespace tandem::comm {

using base::Rank;

/// The key by which a message is matched.
struct MatchKey {
  Rank source;
  std::uint32_t channel = 0;
  std::uint64_t tag = 0;
  friend bool operator==(const MatchKey&, const MatchKey&) = default;
};

/// What a receive or a probe asks for. `source` is ignored when `any_source`, `tag` when `any_tag`; the channel is
/// always exact.
struct MatchPattern {
  Rank source;
  std::uint32_t channel = 0;
  std::uint64_t tag = 0;
  bool any_source = false;
  bool any_tag = false;

  [[gnu::always_inline]] bool matches(MatchKey key) const noexcept {
    return channel == key.channel && (tag == key.tag || any_tag) && (source == key.source || any_source);
  }
  /// Which parts are open, as an `internal::WildClass`; for the matcher.
  unsigned wild_class() const noexcept {
    return (any_source ? internal::wild_source : 0u) | (any_tag ? internal::wild_tag : 0u);
  }
};

/// Base of the engine's receive request. Owned by the engine; the matcher links it from `Matcher::post` until it is
/// returned by `arrive`, cancelled, or extracted, and it neither moves nor changes its pattern meanwhile.
struct PostedReceive : internal::KeyLinks<PostedReceive> {
  PostedReceive() = default;
  explicit PostedReceive(const MatchPattern& wanted) noexcept : pattern(wanted) {}

  MatchPattern pattern;
  /// Position in the order of posting, given by `Matcher::post`.
  std::uint64_t sequence = 0;

  internal::TableKey table_key() const noexcept {
    return internal::make_key(pattern.wild_class(), pattern.source.value(), pattern.channel, pattern.tag);
  }
  /// Compares with a key of the same hash, and thus of the same class.
  bool has_key(const internal::TableKey& key) const noexcept {
    return pattern.channel == key.channel && (pattern.any_tag || pattern.tag == key.tag) &&
           (pattern.any_source || pattern.source.value() == key.source);
  }
  bool same_key(const PostedReceive& other) const noexcept {
    const MatchPattern& theirs = other.pattern;
    return pattern.channel == theirs.channel && pattern.any_tag == theirs.any_tag &&
           pattern.any_source == theirs.any_source && (pattern.tag == theirs.tag || pattern.any_tag) &&
           (pattern.source == theirs.source || pattern.any_source);
  }
};

/// Base of the engine's unexpected message (eager data or an announcement). Owned by the engine; the matcher links it
/// from `Matcher::keep` until it is returned by `post`, removed, or extracted, and it neither moves nor changes its key
/// meanwhile.
struct ArrivedEnvelope : internal::KeyLinks<ArrivedEnvelope> {
  ArrivedEnvelope() = default;
  explicit ArrivedEnvelope(MatchKey from) noexcept : key(from) {}

  MatchKey key;
  /// Position in the order of arrival, given by `Matcher::keep`.
  std::uint64_t sequence = 0;
  /// Links in the wildcard indices, for the matcher; null where the channel has none.
  internal::WildLink* wild = nullptr;

  internal::TableKey table_key() const noexcept {
    return internal::make_key(internal::exact, key.source.value(), key.channel, key.tag);
  }
  bool has_key(const internal::TableKey& wanted) const noexcept {
    return key.tag == wanted.tag && key.channel == wanted.channel && key.source.value() == wanted.source;
  }
  bool same_key(const ArrivedEnvelope& other) const noexcept { return key == other.key; }
};

inline internal::TableKey internal::WildLink::table_key() const noexcept {
  return make_key(wild_class, envelope->key.source.value(), envelope->key.channel, envelope->key.tag);
}

inline bool internal::WildLink::has_key(const TableKey& key) const noexcept {
  return envelope->key.channel == key.channel && (wild_class & wild_tag || envelope->key.tag == key.tag) &&
         (wild_class & wild_source || envelope->key.source.value() == key.source);
}

inline bool internal::WildLink::same_key(const WildLink& link) const noexcept {
  const MatchKey& ours = envelope->key;
  const MatchKey& theirs = link.envelope->key;
  return wild_class == link.wild_class && ours.channel == theirs.channel &&
         (wild_class & wild_tag || ours.tag == theirs.tag) &&
         (wild_class & wild_source || ours.source == theirs.source);
}

/// The posted receives and the unexpected messages of one endpoint. A message goes to the oldest posted receive that
/// matches it, a receive takes the oldest unexpected message that it matches (as in MPI; so messages of one key never
/// overtake each other).
///
/// Posted receives are in four classes: exact, any source, any tag, both. All live in one table keyed by (class, what
/// is exact); each key holds a first-in first-out queue. An arriving message looks at the heads of at most four queues
/// and takes the lowest sequence number; classes without a receive cost nothing. Unexpected messages are queued by
/// their exact key, and besides by (class, what is exact) for those classes for which a wildcard receive or probe was
/// once posted on their channel; that index is built when first needed, by one walk over all unexpected messages per
/// (channel, class). A receive from any source with a given tag needs none while the messages are from few sources: it
/// looks at the queue of each.
///
/// Every operation is constant time in the number of pending requests (tables grow and shrink in small steps, so that
/// no single operation pays for a whole resize), except the walk just named and the `extract` family. Memory is
/// proportional to what is pending, or was until recently: up to 48 bytes of table per key while it grows; after
/// `trim`, at most 16 KiB when nothing is pending.
///
/// Not thread-safe: called under the engine's lock. Owns no request. Allocates only to grow tables.
class Matcher {
 public:
  Matcher() = default;
  Matcher(const Matcher&) = delete;
  Matcher& operator=(const Matcher&) = delete;

  /// A message has arrived: returns the oldest posted receive that matches it and unlinks it; null: none (call `keep`
  /// then).
  PostedReceive* arrive(MatchKey key) noexcept {
    if (PostedReceive* const found = arrive_at_hand(key)) return found;
    return posted_.size() == 0 || posted_.lone() != nullptr ? nullptr : arrive_among_many(key);
  }
  /// Like `arrive`, if that needs no look-up. Null: call `arrive`.
  [[gnu::always_inline]] PostedReceive* arrive_at_hand(MatchKey key) noexcept {
    if (PostedReceive* const lone = posted_.lone()) {
      if (!lone->pattern.matches(key)) return nullptr;
      unlink(*lone);
      return lone;
    }
    PostedReceive* const recent = posted_.recent();
    if (recent != nullptr && recent->pattern.matches(key)) {
      // Of the receives of its class these are the ones that match; if there is no other class, `recent` is the oldest
      // of all.
      if (posted_in(recent->pattern.wild_class()) == posted_.size()) [[likely]] {
        count_posted(*recent, -1);
        posted_.remove_recent();
        return recent;
      }
    }
    return nullptr;
  }

  /// Stores a message, with its `key` set, for which `arrive` had no receive.
  void keep(ArrivedEnvelope& envelope);

  /// Posts a receive with its `pattern` set: returns the oldest unexpected message that it matches and unlinks it;
  /// null: the receive is stored.
  ArrivedEnvelope* post(PostedReceive& receive) {
    TANDEM_DEBUG_ASSERT(!receive.linked());
    if (kept_.size() > 0) [[unlikely]] {
      if (ArrivedEnvelope* const found = take(receive.pattern)) return found;
    }
    receive.sequence = next_posted_++;
    posted_.push(receive);
    count_posted(receive, 1);
    return nullptr;
  }

  /// Like `post`, without storing the receive.
  ArrivedEnvelope* take(const MatchPattern& pattern);

  /// The oldest unexpected message that matches, which stays; or null.
  ArrivedEnvelope* peek(const MatchPattern& pattern);

  /// Takes a posted receive back. False: it is not posted (matched already, or never posted).
  bool cancel(PostedReceive& receive) noexcept;

  /// Takes an unexpected message out, wherever it stands in its queue. It must be kept.
  void remove(ArrivedEnvelope& envelope) noexcept;

  /// Whether a receive is posted for exactly this source. O(pending).
  bool waits_for(Rank source) const;
  /// For a peer that failed: takes out all receives posted for exactly this source, in the order of posting.
  /// O(pending).
  std::vector<PostedReceive*> extract_posted_from(Rank source);
  /// For a peer that failed: takes out all unexpected messages of a source, in the order of arrival. O(pending).
  std::vector<ArrivedEnvelope*> extract_kept_from(Rank source);
  /// Takes out all receives, or messages, in order: for the end of an endpoint.
  std::vector<PostedReceive*> extract_all_posted();
  std::vector<ArrivedEnvelope*> extract_all_kept();

  /// Returns memory that a burst has left unused, for an endpoint that goes to sleep. Without it, tables shrink after
  /// about as many further operations as they have buckets. Constant time, but for the return of the memory.
  void trim() noexcept;

  /// Bytes that a burst has left unused and that `trim` frees.
  std::size_t spare_bytes() const noexcept {
    return posted_.spare_bytes() + kept_.spare_bytes() + index_.spare_bytes() + pool_.spare_bytes();
  }

  std::size_t posted_count() const noexcept { return posted_.size(); }
  std::size_t kept_count() const noexcept { return kept_.size(); }

  /// Calls `visit(PostedReceive&)` for each posted receive, in no order. The visitor changes nothing in the matcher.
  template <class Visit>
  void for_each_posted(Visit&& visit) const { posted_.for_each(visit); }
  /// Calls `visit(ArrivedEnvelope&)` for each unexpected message, in no order. The visitor changes nothing in the
  /// matcher.
  template <class Visit>
  void for_each_kept(Visit&& visit) const { kept_.for_each(visit); }

  /// Bytes of tables and indices, without the requests themselves.
  std::size_t memory_bytes() const noexcept;

  /// Aborts when an invariant of the structure does not hold. O(pending); for tests and audits.
  void check_invariants() const;

 private:
  PostedReceive* arrive_among_many(MatchKey key) noexcept;
  [[gnu::always_inline]] void unlink(PostedReceive& receive) noexcept {
    posted_.remove(receive);
    count_posted(receive, -1);
  }
  /// Number of posted receives of a class.
  std::size_t posted_in(unsigned wild_class) const noexcept {
    return wild_class == internal::exact ? posted_.size() - wild_posted_ : wild_in_class_[wild_class];
  }
  /// Exact receives, by far the most, are not counted here.
  void count_posted(const PostedReceive& receive, std::ptrdiff_t change) noexcept {
    const unsigned wild_class = receive.pattern.wild_class();
    if (wild_class == internal::exact) [[likely]] return;
    wild_posted_ += change;
    wild_in_class_[wild_class] += change;
  }
  template <class Wanted>
  std::vector<PostedReceive*> extract_posted_if(Wanted&& wanted);
  template <class Wanted>
  std::vector<ArrivedEnvelope*> extract_kept_if(Wanted&& wanted);
  ArrivedEnvelope* peek_in_index(const MatchPattern& pattern);
  ArrivedEnvelope* oldest_of_few_sources(const MatchPattern& pattern) const noexcept;
  void note_source(Rank source) noexcept;
  void build_index(std::uint32_t channel, unsigned wild_class);
  void add_to_index(ArrivedEnvelope& envelope, unsigned wild_class);

  internal::KeyTable<PostedReceive> posted_;
  internal::KeyTable<ArrivedEnvelope> kept_;
  internal::KeyTable<internal::WildLink> index_;     // kept envelopes again, by wildcard class
  internal::WildLinkPool pool_;
  static constexpr unsigned few_sources = 4;
  std::array<Rank, few_sources> sources_{Rank{0}, Rank{0}, Rank{0}, Rank{0}};  // of messages kept since there were none
  unsigned source_count_ = 0;                                                  // above `few_sources`: others, too
  internal::ChannelSet indexed_;                     // which (channel, class) have an index
  std::size_t wild_posted_ = 0;                      // posted receives with an open part
  std::array<std::size_t, 4> wild_in_class_ = {};    // these by class
  std::uint64_t next_posted_ = 0;
  std::uint64_t next_kept_ = 0;
};

}  // namespace tandem::comm
