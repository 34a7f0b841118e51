// tandem/api/coherence_test.cpp: all orders of the steps of a few tasks, two memories and evictions.
//
// The steps of workers and the ends of copies are put into every order that can happen
// (`base::EventLoop::choose_with`), for every pair of tasks on two data behind a task on the device, which has room for
// one datum.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tandem/api/test_support.hpp"
#include "tandem/base/event_loop.hpp"
#include "tandem/base/sanitizers.hpp"
#include "tandem/runtime/data/handle.hpp"
#include "tandem/runtime/memory/memory_node.hpp"
#include "tandem/runtime/runtime_core.hpp"

namespace tandem::coherence_test {
namespace {

using Datum = VectorData<int>;

constexpr std::size_t kWords = 2;
constexpr std::size_t kBytes = kWords * sizeof(int);

/// A task of a case: on a core or on the device.
struct Use {
  unsigned datum = 0;
  AccessMode mode = AccessMode::read;
  unsigned node = 0;

  bool sees() const noexcept { return sees_value(mode); }
  bool makes() const noexcept { return makes_value(mode); }
  std::string described() const {
    return std::string(name_of(mode)) + " of " + (datum == 0 ? "a" : "b") +
           (node == 0 ? " on a core" : " on the device");
  }
};

/// Model of the copies that the protocol should make: one datum fits on the device.
class Model {
 public:
  void run(const Use& use) {
    Datum_& mine = data_[use.datum];
    Datum_& other = data_[1 - use.datum];
    if (use.node == 1 && !mine.has_memory_there) {
      if (other.has_memory_there) {
        if (other.there && !other.home) ++copies_, other.home = true;  // it is the only value
        other.there = other.has_memory_there = false;
      }
      mine.has_memory_there = true;
    }
    bool& here = use.node == 0 ? mine.home : mine.there;
    if (use.sees() && !here) ++copies_, here = true;
    if (use.makes()) mine.home = use.node == 0, mine.there = use.node == 1;
  }
  std::size_t copies() const noexcept { return copies_; }

 private:
  struct Datum_ {
    bool home = true;
    bool there = false;
    bool has_memory_there = false;
  };
  std::array<Datum_, 2> data_;
  std::size_t copies_ = 0;
};

/// Enumerates the orders of all steps, depth first.
class Orders {
 public:
  std::size_t choose(std::size_t count) {
    if (count == 1) return 0;
    if (at_ == path_.size()) path_.push_back({0, count});
    if (path_[at_].count != count) throw std::logic_error("the same order gave another choice");
    return path_[at_++].chosen;
  }
  /// Goes to another order; false: there is none.
  bool next() {
    path_.resize(at_);
    at_ = 0;
    while (!path_.empty() && path_.back().chosen + 1 == path_.back().count) path_.pop_back();
    if (path_.empty()) return false;
    ++path_.back().chosen;
    return true;
  }
  std::string described() const {
    std::string text;
    for (const Choice& choice : path_) text += std::to_string(choice.chosen) + "/" + std::to_string(choice.count) + " ";
    return text;
  }

 private:
  struct Choice {
    std::size_t chosen;
    std::size_t count;
  };
  std::vector<Choice> path_;
  std::size_t at_ = 0;
};

/// Copies when the order says so: at once, or in a separate step.
class OrderedCopier final : public runtime::Copier {
 public:
  OrderedCopier(base::EventLoop& loop, std::size_t& copies) : loop_(loop), copies_(copies) {}
  runtime::CopyState start(const runtime::CopyRequest& request, runtime::CopyEnded ended) override {
    ++copies_;
    loop_.at(loop_.now_ns(), [request, ended = std::move(ended)] {
      runtime::copy_matrix(request);
      ended(nullptr);
    });
    return runtime::CopyState::posted;
  }

 private:
  base::EventLoop& loop_;
  std::size_t& copies_;
};

/// Checks, between two steps while no kernel runs, that there is a value, unless a task is about to replace it; that
/// all valid replicas have the same one; and that the device has room.
void check_replicas(Runtime& rt, const std::array<Datum, 2>& data, const std::array<bool, 2>& is_replaced) {
  std::size_t there = 0;
  for (std::size_t i = 0; i < data.size(); ++i) {
    const Datum& datum = data[i];
    runtime::Handle& handle = *datum.handle();
    const std::uint32_t valid = handle.valid.load();
    ASSERT_TRUE((valid & 3U) != 0 || is_replaced[i]) << "no value of " << datum.name();
    ASSERT_EQ(valid & ~(runtime::Handle::kMoving | 3U), 0U);
    if ((valid & runtime::Handle::kMoving) != 0) {
      ASSERT_NE(valid & 2U, 0U) << "what is moved away is there until it has arrived";
    }
    for (unsigned node = 0; node < 2; ++node)
      if (handle.valid_on(node)) {
        ASSERT_NE(handle.replica(node).pointer, nullptr);
      }
    if ((valid & 3U) == 3) {
      ASSERT_EQ(std::memcmp(handle.replica(0).pointer, handle.replica(1).pointer, kBytes), 0)
          << "two values of " << datum.name();
    }
    if (handle.replica(1).pointer != nullptr) ++there;
  }
  ASSERT_LE(there, 1U) << "the device has room for one";
  ASSERT_TRUE(rt.core().memory().room().check_invariants(1));
}

using Value = std::array<int, kWords>;

void apply(const Use& use, int number, std::span<int> value) {
  for (int& v : value) v = use.sees() ? v * 3 + number : number;
}

/// Runs one order. Returns the number of copies.
std::size_t run(const std::array<Use, 3>& uses, Orders& orders) {
  std::size_t copies = 0;
  auto resources = test::test_resources();
  runtime::World world = make_test_world({.seed = 1, .workers = 1, .devices = 1, .device_bytes = kBytes}, *resources);
  base::EventLoop& loop = *resources->loop;
  for (auto& [node, copier] : world.nodes) copier = std::make_unique<OrderedCopier>(loop, copies);
  runtime::CoreOptions options;
  options.tasks_per_step = 1;
  Runtime rt(std::move(resources), std::move(world), options);
  std::array<Value, 2> memory{{{1, 2}, {3, 4}}};
  std::array<Value, 2> expected = memory;
  std::array<int, 3> seen{}, expected_seen{};
  std::array<bool, 2> is_replaced{};
  for (const Use& use : uses) is_replaced[use.datum] = is_replaced[use.datum] || use.mode == AccessMode::write;
  std::array<Datum, 2> data{rt.data("a", std::span<int>(memory[0])), rt.data("b", std::span<int>(memory[1]))};
  const auto at_step = [&](std::size_t count) {
    if (!testing::Test::HasFatalFailure()) check_replicas(rt, data, is_replaced);
    return orders.choose(count);
  };
  int number = 10;
  for (std::size_t i = 0; i < uses.size(); ++i, ++number) {
    const Use use = uses[i];
    const auto there = [node = use.node](const WorkerDescription& worker) {
      return (worker.device == DeviceKind::user) == (node == 1);
    };
    const Datum& datum = data[use.datum];
    if (use.mode == AccessMode::read) {
      const auto kernel = [at = &seen[i]](std::span<const int> value) { *at = value[0] + 100 * value[1]; };
      rt.submit(Codelet("reads", kernel).also(DeviceKind::user, kernel).can_run(there), read(datum));
      expected_seen[i] = expected[use.datum][0] + 100 * expected[use.datum][1];
    } else {
      const auto kernel = [use, number](std::span<int> value) { apply(use, number, value); };
      const auto codelet = Codelet("writes", kernel).also(DeviceKind::user, kernel).can_run(there);
      if (use.mode == AccessMode::write) rt.submit(codelet, write(datum));
      else rt.submit(codelet, read_write(datum));
      apply(use, number, expected[use.datum]);
    }
  }
  loop.choose_with(at_step);
  rt.wait();
  const std::size_t made = copies;
  loop.choose_with({});
  check_replicas(rt, data, {});
  for (std::size_t i = 0; i < data.size(); ++i) {
    auto view = rt.acquire(read(data[i]));
    EXPECT_TRUE(std::equal((*view).begin(), (*view).end(), expected[i].begin())) << "the value of " << data[i].name();
  }
  EXPECT_EQ(seen, expected_seen);
  return made;
}

/// Numbers of copies by the model, over the orders that the flow allows.
std::set<std::size_t> possible_copies(const std::array<Use, 3>& uses) {
  std::set<std::size_t> possible;
  std::array<std::size_t, 3> order{0, 1, 2};
  do {
    bool allowed = true;
    for (std::size_t i = 0; i < order.size(); ++i)
      for (std::size_t j = 0; j < i; ++j) {
        const Use &earlier = uses[order[j]], &later = uses[order[i]];
        if (order[j] > order[i] && earlier.datum == later.datum && (earlier.makes() || later.makes())) allowed = false;
      }
    if (!allowed) continue;
    Model model;
    for (const std::size_t task : order) model.run(uses[task]);
    possible.insert(model.copies());
  } while (std::next_permutation(order.begin(), order.end()));
  return possible;
}

// A sanitizer takes ten times as long: every eighth pair is enough for it.
constexpr std::size_t kEvery = base::under_sanitizer ? 8 : 1;

/// Tests all pairs of tasks behind one on the device.
TEST(Coherence, HoldsInAllOrdersOfAFewTasksAndTheirEvictions) {
  const std::array modes{AccessMode::read, AccessMode::write, AccessMode::read_write};
  std::vector<Use> all;
  for (unsigned datum = 0; datum < 2; ++datum)
    for (const AccessMode mode : modes)
      for (unsigned node = 0; node < 2; ++node) all.push_back({datum, mode, node});
  std::size_t pairs = 0, orders_run = 0, most = 0, evictions = 0, moved_in_vain = 0;
  for (const AccessMode before : {AccessMode::read, AccessMode::read_write})
    for (const Use& first : all)
      for (const Use& second : all) {
        if (first.node + second.node == 0 || pairs++ % kEvery != 0) continue;
        const std::array<Use, 3> uses{Use{0, before, 1}, first, second};
        const std::set<std::size_t> possible = possible_copies(uses);
        evictions += first.node == 1 && first.datum == 1;
        Orders orders;
        std::size_t here = 0;
        do {
          const std::size_t copies = run(uses, orders);
          ++here;
          const std::string what = uses[0].described() + ", " + first.described() + ", " + second.described() +
                                   "; order " + orders.described();
          ASSERT_GE(copies, *possible.begin()) << what;
          // One move may be unnecessary: when the task that takes its memory must wait for another one that uses the
          // data first.
          ASSERT_LE(copies, *possible.rbegin() + 1) << what;
          moved_in_vain += copies > *possible.rbegin();
          ASSERT_FALSE(HasFailure()) << what;
          ASSERT_LT(here, 20'000U) << "too many orders: " << what;
        } while (orders.next());
        orders_run += here;
        most = std::max(most, here);
      }
  EXPECT_GT(evictions, 0U);
  EXPECT_GT(most, 10U) << "there is something to choose";
  RecordProperty("orders", std::to_string(orders_run));
  EXPECT_GT(orders_run, 10'000U / kEvery);
  EXPECT_LT(moved_in_vain, orders_run / 10) << "of " << orders_run << " orders";
}

}  // namespace
}  // namespace tandem::coherence_test
