// tandem/comm/mcast/route.cpp: packing of route entries, and the check of those that came from elsewhere.
#include "tandem/comm/mcast/route.hpp"

#include <algorithm>
#include <limits>

#include "tandem/base/assert.hpp"

namespace tandem::comm {
namespace {

constexpr unsigned rank_bits = 22, size_bits = 16, priority_bits = 16, ordered_bits = 1, fence_bits = 9;
constexpr unsigned size_at = rank_bits, priority_at = size_at + size_bits, ordered_at = priority_at + priority_bits;
constexpr unsigned fence_at = ordered_at + ordered_bits;
static_assert(fence_at + fence_bits == 8 * route_entry_bytes);
static_assert(max_route_rank == (1u << rank_bits) - 1 && max_route_entries == (1u << size_bits) - 1);

constexpr std::uint64_t field(std::uint64_t word, unsigned at, unsigned bits) {
  return word >> at & ((1ull << bits) - 1);
}

std::uint64_t read_word(std::span<const std::byte> bytes) {
  std::uint64_t word = 0;
  for (unsigned i = 0; i < route_entry_bytes; ++i) word |= std::to_integer<std::uint64_t>(bytes[i]) << 8 * i;
  return word;
}

void write_word(std::uint64_t word, std::span<std::byte> bytes) {
  for (unsigned i = 0; i < route_entry_bytes; ++i) bytes[i] = static_cast<std::byte>(word >> 8 * i);
}

[[maybe_unused]] bool all_different(std::span<const RouteRecipient> recipients) {
  std::vector<std::uint32_t> ranks;
  ranks.reserve(recipients.size());
  for (const RouteRecipient& recipient : recipients) ranks.push_back(recipient.rank.value());
  std::sort(ranks.begin(), ranks.end());
  return std::adjacent_find(ranks.begin(), ranks.end()) == ranks.end();
}

}  // namespace

void write_route_entry(const RouteEntry& entry, std::span<std::byte> bytes) {
  TANDEM_ASSERT(entry.rank.value() <= max_route_rank);
  TANDEM_ASSERT(entry.subtree_size >= 1 && entry.subtree_size <= max_route_entries);
  TANDEM_ASSERT(entry.fence <= max_route_fence);
  using Limits = std::numeric_limits<std::int16_t>;
  const auto priority =
      static_cast<std::int16_t>(std::clamp<std::int32_t>(entry.priority, Limits::min(), Limits::max()));
  const std::uint64_t word = std::uint64_t{entry.rank.value()} | std::uint64_t{entry.subtree_size} << size_at |
                             std::uint64_t{static_cast<std::uint16_t>(priority)} << priority_at |
                             std::uint64_t{entry.ordered} << ordered_at | std::uint64_t{entry.fence} << fence_at;
  write_word(word, bytes);
}

void set_order(std::span<std::byte> entry, bool ordered, std::uint16_t fence) {
  TANDEM_ASSERT(fence <= max_route_fence);
  const std::uint64_t rest = read_word(entry) & ((std::uint64_t{1} << ordered_at) - 1);
  write_word(rest | std::uint64_t{ordered} << ordered_at | std::uint64_t{fence} << fence_at, entry);
}

RouteEntry read_route_entry(std::span<const std::byte> bytes) {
  const std::uint64_t word = read_word(bytes);
  return {.rank = Rank(static_cast<std::uint32_t>(field(word, 0, rank_bits))),
          .subtree_size = static_cast<std::uint32_t>(field(word, size_at, size_bits)),
          .priority = static_cast<std::int16_t>(field(word, priority_at, priority_bits)),
          .ordered = field(word, ordered_at, ordered_bits) != 0,
          .fence = static_cast<std::uint16_t>(field(word, fence_at, fence_bits))};
}

void write_route(const Strand& strand, std::span<const RouteRecipient> recipients, std::vector<std::byte>& bytes) {
  TANDEM_ASSERT(strand.nodes.size() <= max_route_entries);
  TANDEM_DEBUG_ASSERT(all_different(recipients));
  bytes.resize(strand.nodes.size() * route_entry_bytes);
  std::span<std::byte> rest = bytes;
  for (const RouteNode& node : strand.nodes) {
    const RouteRecipient& recipient = recipients[node.recipient];
    write_route_entry({recipient.rank, node.subtree_size, recipient.priority, recipient.ordered, recipient.fence},
                      rest);
    rest = rest.subspan(route_entry_bytes);
  }
}

const char* RouteView::validate(std::uint32_t job_size, Rank self, Rank root) const {
  if (bytes_.size() % route_entry_bytes != 0) return "a route ends within an entry";
  if (bytes_.size() / route_entry_bytes > max_route_entries)
    return "a route has more entries than any subtree may have";
  const std::uint32_t count = size();
  // From the back, so that the subtrees behind an entry are known to nest: stepping from one subtree to the next finds
  // an entry's children, and visits each entry as a child only once.
  for (std::uint32_t i = count; i-- > 0;) {
    const RouteEntry one = entry(i);
    if (one.rank.value() >= job_size) return "a route names a rank that the job does not have";
    if (one.rank == self || one.rank == root) return "a route leads back to a rank that already has the data";
    if (one.subtree_size == 0) return "a route has an empty subtree";
    if (one.subtree_size > count - i) return "a subtree is larger than the route that holds it";
    const std::uint32_t end = i + one.subtree_size;
    std::uint32_t child = i + 1;
    while (child < end) child += entry(child).subtree_size;
    if (child != end) return "a subtree is larger than the subtree that holds it";
  }
  return nullptr;
}

}  // namespace tandem::comm
