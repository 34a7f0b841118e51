// tandem/comm/schedule/send_queue_random_test.cpp: random histories against a queue that sorts a list.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <vector>

#include "tandem/comm/schedule/strategy.hpp"

namespace tandem::comm::send_queue_random_test {
namespace {

/// The order as a sort key: effective priority, then place; items of a run share the place of its youngest, and go by
/// age.
struct Entry {
  SendItem* item;
  std::int32_t priority;
  std::uint64_t place;
};

class SortedModel {
 public:
  void push(SendItem& item) {
    entries.push_back({&item, item.priority, next_place_++});
    if (item.ordered) pull_up_older(item, entries.back().priority, entries.back().place);
  }
  void remove(SendItem& item) {
    std::erase_if(entries, [&](const Entry& entry) { return entry.item == &item; });
  }
  void set_priority(SendItem& item, std::int32_t priority) {
    if (item.priority == priority) return;
    Entry entry = *find(item);
    if (priority > entry.priority) {
      const std::uint64_t place = next_place_++;
      for (Entry& each : entries) {
        if (each.place == entry.place) each = {each.item, priority, place};
      }
      if (item.ordered) pull_up_older(item, priority, place);
    } else if (priority < entry.priority && run_length(entry.place) == 1) {
      const Entry* const younger = item.ordered ? next_of_key(item) : nullptr;
      const bool held_up = younger && younger->priority >= priority;
      *find(item) = held_up ? Entry{&item, younger->priority, younger->place} : Entry{&item, priority, next_place_++};
    }
  }
  std::vector<std::pair<const SendItem*, std::int32_t>> order() const {
    std::vector<Entry> sorted = entries;
    std::sort(sorted.begin(), sorted.end(), [](const Entry& a, const Entry& b) {
      return std::tuple(-std::int64_t{a.priority}, a.place, a.item->sequence) <
             std::tuple(-std::int64_t{b.priority}, b.place, b.item->sequence);
    });
    std::vector<std::pair<const SendItem*, std::int32_t>> answer;
    for (const Entry& entry : sorted) answer.emplace_back(entry.item, entry.priority);
    return answer;
  }

  std::vector<Entry> entries;

 private:
  static bool same_key(const SendItem& a, const SendItem& b) {
    return a.ordered && b.ordered && a.channel == b.channel && a.tag == b.tag;
  }
  Entry* find(const SendItem& item) {
    return &*std::find_if(entries.begin(), entries.end(), [&](const Entry& entry) { return entry.item == &item; });
  }
  std::size_t run_length(std::uint64_t place) const {
    return static_cast<std::size_t>(
        std::count_if(entries.begin(), entries.end(), [&](const Entry& entry) { return entry.place == place; }));
  }
  void pull_up_older(const SendItem& item, std::int32_t priority, std::uint64_t place) {
    for (Entry& entry : entries) {
      if (same_key(*entry.item, item) && entry.item->sequence < item.sequence && entry.priority < priority) {
        entry = {entry.item, priority, place};
      }
    }
  }
  const Entry* next_of_key(const SendItem& item) const {
    const Entry* next = nullptr;
    for (const Entry& entry : entries) {
      if (!same_key(*entry.item, item) || entry.item->sequence <= item.sequence) continue;
      if (!next || entry.item->sequence < next->item->sequence) next = &entry;
    }
    return next;
  }

  std::uint64_t next_place_ = 0;
};

void run_history(std::uint64_t seed, int operations) {
  std::mt19937_64 random(seed);
  const auto below = [&](std::uint64_t bound) { return random() % bound; };
  SendQueue queue;
  SortedModel model;
  std::vector<std::unique_ptr<SendItem>> items;
  const std::uint64_t priorities = 1 + below(6), tags = 1 + below(8), ordered_percent = below(101),
                      pending = 1 + below(60);
  for (int operation = 0; operation < operations; ++operation) {
    const std::uint64_t dice = below(100);
    if (model.entries.empty() || (dice < 55 && model.entries.size() < pending)) {
      SendItem& item = *items.emplace_back(std::make_unique<SendItem>());
      item.tag = below(tags);
      item.priority = static_cast<std::int32_t>(below(priorities)) - 2;
      item.ordered = below(100) < ordered_percent;
      queue.push(item);
      model.push(item);
    } else if (dice < 80) {  // the first ones leave
      PacketPlan plan;
      plan.records.push_back(&*queue.messages());
      queue.commit(plan);
      model.remove(*plan.records[0]);
    } else {
      SendItem& item = *model.entries[below(model.entries.size())].item;
      if (dice < 90) {
        queue.remove(item);
        model.remove(item);
      } else {
        const std::int32_t priority = static_cast<std::int32_t>(below(priorities)) - 2;
        model.set_priority(item, priority);
        queue.set_priority(item, priority);
      }
    }
    std::vector<std::pair<const SendItem*, std::int32_t>> order;
    for (SendQueue::Cursor at = queue.messages(); at; at.advance()) order.emplace_back(&*at, at.priority());
    ASSERT_EQ(order, model.order()) << "operation " << operation;
    queue.check_invariants();
  }
}

TEST(SendQueue, RandomHistoriesAgreeWithSorting) {
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    run_history(seed, 150);
    if (testing::Test::HasFatalFailure()) return;
  }
}

TEST(SendQueue, StreamsLeaveByPriorityAndAge) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937_64 random(seed);
    SendQueue queue;
    std::vector<std::unique_ptr<SendItem>> streams;
    for (int operation = 0; operation < 200; ++operation) {
      if (streams.empty() || random() % 4 == 0) {
        SendItem& stream = *streams.emplace_back(std::make_unique<SendItem>());
        stream.kind = SendKind::stream;
        stream.priority = static_cast<std::int32_t>(random() % 3);
        stream.bulk_bytes = random() % 3;
        queue.push(stream);
      }
      std::swap(streams[random() % streams.size()], streams.back());
      SendItem& chosen = *streams.back();
      switch (random() % 4) {
        case 0: queue.update(chosen, random() % 3); break;
        case 1: queue.set_priority(chosen, static_cast<std::int32_t>(random() % 3)); break;
        case 2:
          queue.remove(chosen);
          streams.pop_back();
          break;
        default: break;
      }
      std::vector<SendItem*> ready;
      for (const auto& stream : streams) {
        if (stream->bulk_bytes > 0) ready.push_back(stream.get());
      }
      std::sort(ready.begin(), ready.end(), [](const SendItem* a, const SendItem* b) {
        return std::tuple(-a->priority, a->sequence) < std::tuple(-b->priority, b->sequence);
      });
      ASSERT_EQ(queue.stream(0), ready.empty() ? nullptr : ready[0]);
      ASSERT_EQ(queue.stream(1), ready.size() < 2 ? nullptr : ready[1]);
      queue.check_invariants();
    }
  }
}

}  // namespace
}  // namespace tandem::comm::send_queue_random_test
