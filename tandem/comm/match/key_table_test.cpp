// tandem/comm/match/key_table_test.cpp: queues by key, while the table grows and shrinks under them.
#include "tandem/comm/match/key_table.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <memory>
#include <random>
#include <vector>

namespace tandem::comm::internal::key_table_test {
namespace {

struct Item : KeyLinks<Item> {
  explicit Item(std::uint64_t with_tag, std::uint32_t from = 0) : tag(with_tag), source(from) {}
  std::uint64_t tag;
  std::uint32_t source;
  TableKey table_key() const noexcept { return make_key(exact, source, 7, tag); }
  bool has_key(const TableKey& key) const noexcept {
    return key.tag == tag && key.source == source && key.channel == 7;
  }
  bool same_key(const Item& other) const noexcept { return tag == other.tag && source == other.source; }
};

std::vector<std::unique_ptr<Item>> items_with_tags(const std::vector<std::uint64_t>& tags) {
  std::vector<std::unique_ptr<Item>> items;
  for (const std::uint64_t tag : tags) items.push_back(std::make_unique<Item>(tag));
  return items;
}

/// The most keys that share one bucket among `tags`, in a table of `buckets`.
std::size_t longest_chain(const std::vector<std::uint64_t>& tags, std::size_t buckets) {
  std::vector<std::size_t> count(buckets);
  for (const std::uint64_t tag : tags) ++count[(make_key(exact, 3, 7, tag).hash >> class_bits) & (buckets - 1)];
  return *std::max_element(count.begin(), count.end());
}

TEST(KeyTable, ALoneNodeNeedsNoTable) {
  KeyTable<Item> table;
  Item item(5);
  for (int i = 0; i < 3; ++i) {
    table.push(item);
    EXPECT_EQ(table.lone(), &item);
    EXPECT_EQ(table.front(item.table_key()), &item);
    EXPECT_EQ(table.back(item.table_key()), &item);
    EXPECT_EQ(table.front(make_key(exact, 0, 7, 6)), nullptr);
    table.check_invariants();
    table.remove(item);
    EXPECT_FALSE(item.linked());
  }
  EXPECT_EQ(table.memory_bytes(), 0u);
}

TEST(KeyTable, TheKeyThatWasPushedLastIsKnown) {
  KeyTable<Item> table;
  auto items = items_with_tags({1, 2, 2, 1, 3, 2});
  for (auto& item : items) table.push(*item);
  EXPECT_EQ(table.recent(), items[1].get()) << "the oldest of tag 2";
  table.check_invariants();
  table.remove(*items[5]);  // its youngest
  EXPECT_EQ(table.recent(), items[1].get());
  table.remove(*items[1]);
  EXPECT_EQ(table.recent(), items[2].get());
  Item with(2);
  table.replace(*items[2], with);
  EXPECT_EQ(table.recent(), &with);
  table.check_invariants();
  table.remove(with);
  EXPECT_EQ(table.recent(), nullptr);
  table.push(*items[2]);
  EXPECT_EQ(table.recent(), items[2].get());
  for (Item* const item : {items[0].get(), items[3].get(), items[2].get(), items[4].get()}) {
    table.remove(*item);
    table.check_invariants();
  }
  EXPECT_EQ(table.recent(), nullptr);
  EXPECT_EQ(table.size(), 0u);
}

TEST(KeyTable, AKeyIsAQueue) {
  KeyTable<Item> table;
  auto items = items_with_tags({1, 1, 2, 1, 1});
  for (auto& item : items) table.push(*item);
  const TableKey key = items[0]->table_key();
  EXPECT_EQ(table.key_count(), 2u);
  EXPECT_EQ(table.back(key), items[4].get());
  table.remove(*items[4]);  // the youngest
  table.remove(*items[1]);  // one in the middle
  table.check_invariants();
  EXPECT_EQ(table.front(key), items[0].get());
  EXPECT_EQ(table.back(key), items[3].get());
  table.remove(*items[0]);
  EXPECT_EQ(table.front(key), items[3].get());
  table.remove(*items[3]);
  EXPECT_EQ(table.front(key), nullptr);
  EXPECT_EQ(table.size(), 1u);
  table.check_invariants();
}

TEST(KeyTable, MemoryFollowsWhatIsPending) {
  KeyTable<Item> table;
  std::vector<std::uint64_t> tags(100'000);
  for (std::size_t i = 0; i < tags.size(); ++i) tags[i] = i;
  auto items = items_with_tags(tags);
  for (int round = 0; round < 2; ++round) {
    for (auto& item : items) table.push(*item);
    EXPECT_LE(table.memory_bytes(), 48 * items.size());
    for (std::size_t i = items.size(); i-- > 1000;) table.remove(*items[i]);
    table.trim();
    for (std::size_t i = 0; i < 20'000; ++i) {  // shrinking goes on with what follows
      table.remove(*items[i % 1000]);
      table.push(*items[i % 1000]);
    }
    EXPECT_LE(table.memory_bytes(), 1000u * 48);
    table.check_invariants();
    for (std::size_t i = 1000; i-- > 0;) table.remove(*items[i]);
    table.trim();
    EXPECT_LE(table.memory_bytes(), 4096u);
  }
}

TEST(KeyTable, ATableThatStaysSparseShrinksByItself) {
  KeyTable<Item> table;
  std::vector<std::uint64_t> tags(20'000);
  for (std::size_t i = 0; i < tags.size(); ++i) tags[i] = i;
  auto items = items_with_tags(tags);
  for (int round = 0; round < 3; ++round) {  // a table filled and drained repeatedly keeps its size
    for (auto& item : items) table.push(*item);
    const std::size_t filled_bytes = table.memory_bytes();
    for (auto& item : items) table.remove(*item);
    EXPECT_EQ(table.memory_bytes(), filled_bytes);
  }
  for (int i = 0; i < 200'000; ++i) {  // one at a time
    table.push(*items[0]);
    table.remove(*items[0]);
  }
  EXPECT_LE(table.memory_bytes(), 4096u);
}

TEST(KeyTable, EqualKeysDoNotGrowTheTable) {
  KeyTable<Item> table;
  auto items = items_with_tags(std::vector<std::uint64_t>(10'000, 42));
  for (auto& item : items) table.push(*item);
  EXPECT_LE(table.memory_bytes(), 4096u);
  for (auto& item : items) {
    EXPECT_EQ(table.front(item->table_key()), item.get());
    table.remove(*item);
  }
}

TEST(KeyTable, ConsecutiveTagsFillBlocks) {
  for (std::uint64_t first : {std::uint64_t{0}, std::uint64_t{1} << 40, ~std::uint64_t{15}}) {
    std::map<std::uint64_t, int> blocks;
    std::map<std::uint64_t, int> buckets;
    for (std::uint64_t i = 0; i < 16; ++i) {
      const std::uint64_t hash = make_key(exact, 9, 1, first + i).hash;
      ++blocks[hash >> (class_bits + bucket_bits)];
      ++buckets[hash >> class_bits];
    }
    EXPECT_EQ(blocks.size(), 1u);
    EXPECT_EQ(buckets.size(), 16u);
  }
}

TEST(KeyTable, NoRegularPatternOfTagsMakesLongChains) {
  constexpr std::size_t count = 1 << 16, buckets = 1 << 17;
  for (unsigned shift = 0; shift < 48; ++shift) {
    std::vector<std::uint64_t> strided(count), reversed(count);
    for (std::uint64_t i = 0; i < count; ++i) {
      strided[i] = i << shift;
      reversed[i] = ~(i << shift);
    }
    EXPECT_LE(longest_chain(strided, buckets), 10u) << "stride 2^" << shift;
    EXPECT_LE(longest_chain(reversed, buckets), 10u) << "stride 2^" << shift;
  }
  std::vector<std::uint64_t> two_fields;  // tile coordinates, as task runtimes make tags
  for (std::uint64_t i = 0; i < 256; ++i) {
    for (std::uint64_t j = 0; j < 256; ++j) two_fields.push_back(i << 32 | j);
  }
  EXPECT_LE(longest_chain(two_fields, buckets), 10u);
}

TEST(KeyTable, ManySourcesAndChannelsSpread) {
  constexpr std::size_t buckets = 1 << 17;
  std::vector<std::size_t> count(buckets);
  for (std::uint32_t source = 0; source < 1024; ++source) {
    for (std::uint32_t channel = 0; channel < 64; ++channel) {
      ++count[(make_key(exact, source, channel, 1).hash >> class_bits) & (buckets - 1)];
    }
  }
  EXPECT_LE(*std::max_element(count.begin(), count.end()), 10u);
}

TEST(KeyTable, RandomOperationsAgreeWithAMapOfQueues) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937_64 random(seed);
    KeyTable<Item> table;
    std::map<std::pair<std::uint64_t, std::uint32_t>, std::deque<Item*>> model;
    std::vector<std::unique_ptr<Item>> in;
    const std::uint64_t tags = std::uint64_t{1} << (random() % 13);
    std::size_t target = 0;
    for (int operation = 0; operation < 4000; ++operation) {
      if (operation % 500 == 0) target = random() % 3000;
      if (in.empty() || (in.size() < target && random() % 8 != 0)) {
        in.push_back(std::make_unique<Item>(random() % tags, static_cast<std::uint32_t>(random() % 2)));
        table.push(*in.back());
        model[{in.back()->tag, in.back()->source}].push_back(in.back().get());
      } else if (Item* const recent = random() % 8 == 0 ? table.recent() : nullptr) {
        auto& queue = model[{recent->tag, recent->source}];
        ASSERT_EQ(queue.front(), recent);
        queue.pop_front();
        table.remove_recent();
        std::erase_if(in, [recent](const auto& item) { return item.get() == recent; });
      } else {
        std::swap(in[random() % in.size()], in.back());
        const std::unique_ptr<Item> out = std::move(in.back());
        in.pop_back();
        table.remove(*out);
        std::erase(model[{out->tag, out->source}], out.get());
      }
      const std::uint64_t tag = random() % tags;
      const auto& queue = model[{tag, 1}];
      ASSERT_EQ(table.front(make_key(exact, 1, 7, tag)), queue.empty() ? nullptr : queue.front());
      ASSERT_EQ(table.back(make_key(exact, 1, 7, tag)), queue.empty() ? nullptr : queue.back());
      ASSERT_EQ(table.size(), in.size());
      if (operation % 64 == 0) table.check_invariants();
    }
    std::size_t visited = 0;
    table.for_each([&](Item&) { ++visited; });
    EXPECT_EQ(visited, in.size());
  }
}

}  // namespace
}  // namespace tandem::comm::internal::key_table_test
