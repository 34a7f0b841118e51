// tandem/comm/match/matcher.cpp: matching by class and key.
#include "tandem/comm/match/matcher.hpp"

#include <algorithm>
#include <utility>

#include "tandem/base/assert.hpp"

namespace tandem::comm {
namespace {

using internal::make_key;
using internal::TableKey;

TableKey key_of(const MatchKey& key, unsigned wild_class) noexcept {
  return make_key(wild_class, key.source.value(), key.channel, key.tag);
}

template <class Node>
void sort_by_sequence(std::vector<Node*>& nodes) {
  std::sort(nodes.begin(), nodes.end(), [](const Node* a, const Node* b) { return a->sequence < b->sequence; });
}

}  // namespace

PostedReceive* Matcher::arrive_among_many(MatchKey key) noexcept {
  PostedReceive* oldest = nullptr;
  PostedReceive* const recent = posted_.recent();
  const std::size_t known =
      recent && recent->pattern.matches(key) ? recent->pattern.wild_class() : wild_in_class_.size();
  for (unsigned c = 0; c < wild_in_class_.size(); ++c) {
    if (posted_in(c) == 0) continue;
    PostedReceive* const candidate = c == known ? recent : posted_.front(key_of(key, c));
    if (candidate && (!oldest || candidate->sequence < oldest->sequence)) oldest = candidate;
  }
  if (oldest) unlink(*oldest);
  return oldest;
}

void Matcher::keep(ArrivedEnvelope& envelope) {
  TANDEM_DEBUG_ASSERT(!envelope.linked());
  note_source(envelope.key.source);
  envelope.sequence = next_kept_++;
  kept_.push(envelope);
  const unsigned classes = indexed_.classes_of(envelope.key.channel);
  for (unsigned c = internal::wild_source; c <= internal::wild_both && classes >> c; ++c) {
    if (classes >> c & 1) add_to_index(envelope, c);
  }
}

ArrivedEnvelope* Matcher::take(const MatchPattern& pattern) {
  ArrivedEnvelope* const found = peek(pattern);
  if (found) remove(*found);
  return found;
}

ArrivedEnvelope* Matcher::peek(const MatchPattern& pattern) {
  if (kept_.size() == 0) return nullptr;
  if (ArrivedEnvelope* const lone = kept_.lone()) return pattern.matches(lone->key) ? lone : nullptr;
  if (pattern.wild_class() == internal::exact) {
    ArrivedEnvelope* const recent = kept_.recent();
    if (recent && pattern.matches(recent->key)) return recent;
    return kept_.front(make_key(internal::exact, pattern.source.value(), pattern.channel, pattern.tag));
  }
  if (pattern.wild_class() == internal::wild_source && source_count_ <= few_sources)
    return oldest_of_few_sources(pattern);
  return peek_in_index(pattern);
}

void Matcher::note_source(Rank source) noexcept {
  if (kept_.size() == 0) source_count_ = 0;
  if (source_count_ > few_sources) return;
  const auto end = sources_.begin() + source_count_;
  if (std::find(sources_.begin(), end, source) != end) return;
  if (source_count_ < few_sources) *end = source;
  ++source_count_;
}

ArrivedEnvelope* Matcher::oldest_of_few_sources(const MatchPattern& pattern) const noexcept {
  ArrivedEnvelope* oldest = nullptr;
  for (unsigned i = 0; i < source_count_; ++i) {
    ArrivedEnvelope* const candidate =
        kept_.front(make_key(internal::exact, sources_[i].value(), pattern.channel, pattern.tag));
    if (candidate && (!oldest || candidate->sequence < oldest->sequence)) oldest = candidate;
  }
  return oldest;
}

ArrivedEnvelope* Matcher::peek_in_index(const MatchPattern& pattern) {
  const unsigned c = pattern.wild_class();
  const TableKey key = make_key(c, pattern.source.value(), pattern.channel, pattern.tag);
  if (!(indexed_.classes_of(pattern.channel) >> c & 1)) build_index(pattern.channel, c);
  const internal::WildLink* const link = index_.front(key);
  return link ? link->envelope : nullptr;
}

bool Matcher::cancel(PostedReceive& receive) noexcept {
  if (!receive.linked()) return false;
  unlink(receive);
  return true;
}

void Matcher::remove(ArrivedEnvelope& envelope) noexcept {
  kept_.remove(envelope);
  while (internal::WildLink* const link = envelope.wild) {
    envelope.wild = link->other;
    index_.remove(*link);
    pool_.give_back(link);
  }
}

void Matcher::trim() noexcept {
  posted_.trim();
  kept_.trim();
  index_.trim();
  pool_.trim();
}

void Matcher::build_index(std::uint32_t channel, unsigned wild_class) {
  std::vector<ArrivedEnvelope*> envelopes;
  kept_.for_each([&](ArrivedEnvelope& envelope) {
    if (envelope.key.channel == channel) envelopes.push_back(&envelope);
  });
  sort_by_sequence(envelopes);
  for (ArrivedEnvelope* const envelope : envelopes) add_to_index(*envelope, wild_class);
  indexed_.add(channel, wild_class);
}

void Matcher::add_to_index(ArrivedEnvelope& envelope, unsigned wild_class) {
  internal::WildLink* const link = pool_.take();
  link->envelope = &envelope;
  link->wild_class = wild_class;
  link->other = std::exchange(envelope.wild, link);
  index_.push(*link);
}

bool Matcher::waits_for(Rank source) const {
  bool found = false;
  posted_.for_each([&](const PostedReceive& receive) {
    found |= !receive.pattern.any_source && receive.pattern.source == source;
  });
  return found;
}

std::vector<PostedReceive*> Matcher::extract_posted_from(Rank source) {
  return extract_posted_if([source](const PostedReceive& receive) {
    return !receive.pattern.any_source && receive.pattern.source == source;
  });
}

std::vector<PostedReceive*> Matcher::extract_all_posted() {
  return extract_posted_if([](const PostedReceive&) { return true; });
}

template <class Wanted>
std::vector<PostedReceive*> Matcher::extract_posted_if(Wanted&& wanted) {
  std::vector<PostedReceive*> found;
  posted_.for_each([&](PostedReceive& receive) {
    if (wanted(receive)) found.push_back(&receive);
  });
  sort_by_sequence(found);
  for (PostedReceive* const receive : found) unlink(*receive);
  return found;
}

std::vector<ArrivedEnvelope*> Matcher::extract_kept_from(Rank source) {
  return extract_kept_if([source](const ArrivedEnvelope& envelope) { return envelope.key.source == source; });
}

std::vector<ArrivedEnvelope*> Matcher::extract_all_kept() {
  return extract_kept_if([](const ArrivedEnvelope&) { return true; });
}

template <class Wanted>
std::vector<ArrivedEnvelope*> Matcher::extract_kept_if(Wanted&& wanted) {
  std::vector<ArrivedEnvelope*> found;
  kept_.for_each([&](ArrivedEnvelope& envelope) {
    if (wanted(envelope)) found.push_back(&envelope);
  });
  sort_by_sequence(found);
  for (ArrivedEnvelope* const envelope : found) remove(*envelope);
  return found;
}

std::size_t Matcher::memory_bytes() const noexcept {
  return posted_.memory_bytes() + kept_.memory_bytes() + index_.memory_bytes() + pool_.memory_bytes() +
         indexed_.memory_bytes();
}

void Matcher::check_invariants() const {
  posted_.check_invariants();
  kept_.check_invariants();
  index_.check_invariants();
  std::array<std::size_t, 4> in_class = {};
  posted_.for_each([&](const PostedReceive& receive) { ++in_class[receive.pattern.wild_class()]; });
  for (unsigned c = 0; c < in_class.size(); ++c) TANDEM_ASSERT(in_class[c] == posted_in(c));
  std::size_t links = 0;
  kept_.for_each([&](ArrivedEnvelope& envelope) {
    unsigned classes = 0;
    for (const internal::WildLink* link = envelope.wild; link; link = link->other) {
      ++links;
      classes |= 1u << link->wild_class;
      TANDEM_ASSERT(link->linked() && link->envelope == &envelope);
    }
    TANDEM_ASSERT(classes == indexed_.classes_of(envelope.key.channel));
  });
  TANDEM_ASSERT(links == index_.size());
}

}  // namespace tandem::comm
