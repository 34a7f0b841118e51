// tests/dist_flow/random_plan.cpp: draws plans and prints them.
#include "random_plan.hpp"

#include <algorithm>
#include <cstdio>
#include <random>

namespace tandem::dist_test {

/// In words: what the largest task needs, and the sum of two that a reduction gathers.
static std::size_t largest_task(const Plan& plan) {
  std::size_t most = 2 * *std::max_element(plan.sizes.begin(), plan.sizes.end());
  for (const Operation& operation : plan.operations) {
    std::size_t words = 0;
    for (const unsigned datum : operation.data) words += plan.sizes[datum];
    most = std::max(most, words);
  }
  return most;
}

Plan draw(std::uint64_t seed) {
  std::mt19937_64 random(seed * 77 + 5);
  const auto below = [&](std::uint64_t n) { return static_cast<unsigned>(random() % n); };
  Plan plan;
  plan.seed = seed;
  plan.ranks = 1 + below(6);
  plan.faults = below(3) == 0;
  plan.objects = seed % 3 == 0;
  JobSetup& setup = plan.setup;
  setup.ranks = plan.ranks;
  setup.workers = 1 + below(3);
  setup.sched = std::vector<std::string>{"lws", "prio", "random"}[below(3)];
  setup.core.watchdog_ns = 0;
  setup.core.tasks_per_step = 1 + below(3);
  setup.core.seed = seed;
  setup.core.adaptive_polling = seed % 4 != 0;
  if (below(4) == 0) setup.core.window = 1 + below(40);
  setup.network.latency_max_ns = 1 + below(20'000);
  setup.network.copies = below(2) == 0;
  setup.network.remote_copy = below(3) == 0;
  setup.network.ranks_per_host = 1 + below(4);
  setup.network.eager_bytes = std::vector<std::size_t>{64, 1024, 4096}[below(3)];
  setup.network.segment_bytes = 1024;
  setup.flow.transfers.broadcasts = below(4) != 0;
  setup.flow.transfers.tree =
      std::vector<comm::TreeKind>{comm::TreeKind::automatic, comm::TreeKind::binary, comm::TreeKind::chain,
                                  comm::TreeKind::two_tree, comm::TreeKind::flat}[below(5)];
  setup.flow.transfers.early_read = below(4) != 0;
  setup.flow.transfers.hold_ns = below(4) == 0 ? 2'000 : 0;
  const unsigned count = 2 + below(7);
  for (unsigned i = 0; i < count; ++i) {
    plan.owners.push_back(below(5) == 0 ? std::nullopt : std::optional<std::uint32_t>(below(plan.ranks)));
    plan.allocated.push_back(below(3) == 0);
    plan.sizes.push_back(below(8) == 0 ? below(2) : below(600));
  }
  std::vector<bool> unwritten = plan.allocated;
  const unsigned length = 10 + below(90);
  for (unsigned step = 0; step < length; ++step) {
    Operation operation;
    operation.factor = random() % 1000;
    const unsigned what = below(100);
    if (what < 70) {
      operation.kind = Kind::task;
      operation.priority = static_cast<int>(below(5));
      std::vector<unsigned> order(count);
      for (unsigned i = 0; i < count; ++i) order[i] = i;
      std::shuffle(order.begin(), order.end(), random);
      const unsigned uses = std::min(count, 1 + below(kMostUses));
      const unsigned writes = std::min(uses, 1 + below(2));
      const bool own = !plan.owners[order[0]].has_value();
      for (unsigned i = 0; i < uses; ++i) {
        const unsigned datum = order[uses - 1 - i];
        const bool writer = i >= uses - writes && plan.owners[datum].has_value() != own;
        AccessMode mode = AccessMode::read;
        if (writer) {
          mode = std::vector<AccessMode>{AccessMode::write, AccessMode::read_write, AccessMode::read_write,
                                         AccessMode::commute, AccessMode::reduce}[below(plan.faults ? 3 : 5)];
          if (unwritten[datum]) mode = AccessMode::write;
        }
        if (mode == AccessMode::read && unwritten[datum]) continue;
        operation.data.push_back(datum);
        operation.modes.push_back(mode);
      }
      if (operation.data.empty()) continue;
      bool writes_something = false;
      for (std::size_t i = 0; i < operation.data.size(); ++i)
        if (operation.modes[i] != AccessMode::read) {
          unwritten[operation.data[i]] = false;
          writes_something = true;
        }
      if (!own && writes_something && below(4) == 0) operation.on = below(plan.ranks);
      operation.throws = plan.faults && writes_something && below(12) == 0;
    } else {
      const unsigned datum = below(count);
      operation.data.push_back(datum);
      operation.kind = what < 75   ? Kind::fetch
                       : what < 79 ? Kind::fetch_everywhere
                       : what < 83 ? Kind::migrate
                       : what < 85 ? Kind::flush
                       : what < 88 ? Kind::message
                       : what < 91 ? Kind::wait
                       : what < 95 ? Kind::look
                       : what < 98 ? Kind::write_at_owner
                                   : Kind::replace;
      operation.on = below(plan.ranks);
      if (operation.kind == Kind::message && (plan.owners[datum] || plan.faults)) continue;
      const bool sees = operation.kind != Kind::wait && operation.kind != Kind::replace &&
                        operation.kind != Kind::flush && operation.kind != Kind::migrate;
      if (sees && unwritten[datum]) continue;
      if ((operation.kind == Kind::migrate || operation.kind == Kind::write_at_owner) && !plan.owners[datum]) continue;
      if (operation.kind == Kind::look && plan.faults) continue;
      if (operation.kind == Kind::write_at_owner && plan.faults) continue;
      if (operation.kind == Kind::replace) unwritten[datum] = true;
    }
    plan.operations.push_back(std::move(operation));
  }
  plan.operations.emplace_back().kind = Kind::wait;
  if (below(2) == 0) {
    // Often just what is enough for whatever task, or less.
    std::size_t most = 1;
    for (const Operation& operation : plan.operations) {
      std::size_t bytes = 0;
      for (const unsigned datum : operation.data) bytes += std::max<std::size_t>(plan.sizes[datum] * sizeof(Word), 1);
      most = std::max(most, bytes);
    }
    const unsigned eighths = std::vector<unsigned>{8, 8 + below(8), 16, 16 + below(32)}[below(4)];
    setup.flow.copy_bytes = (most * eighths + 7) / 8;
    plan.may_be_refused = eighths < 16;
  }
  // All tasks whose duration is known count as memory-bound, and all large messages as long.
  if (seed % 3 == 1)
    setup.core.memory_gate = {
        .most = 1 + static_cast<unsigned>(seed / 3 % 2), .most_beside_messages = 1, .network_bytes_per_ns = 1e-9};
  // Policies that look ahead take memory into account, and limit tasks by that.
  if (seed % 3 != 0)
    setup.core.memory_shares = {.core_bytes_per_ns = 1e-3, .stream_bytes_per_ns = 1e-3, .of_cores = {1, 1, 0.6},
                                  .beside_messages = {1, 0.7, 0.4}, .of_streams = {1, 0.8, 0.3}};
  if (std::mt19937_64 of_memory(seed * 191 + 3); plan.ranks > 1 && of_memory() % 3 == 0) {
    setup.main_bytes = std::max<std::size_t>(
        largest_task(plan) * sizeof(Word) * std::vector<unsigned>{8, 8, 9, 12}[of_memory() % 4] / 8, 1);
  }
  if (std::mt19937_64 of_devices(seed * 307 + 13); !plan.objects && of_devices() % 2 == 0) {
    setup.devices = 1 + static_cast<unsigned>(of_devices() % 2);
    setup.flow.transfers.device_message_bytes = 1 + of_devices() % 2 * 1000;
    if (of_devices() % 2 == 0)
      setup.device_bytes = std::max<std::size_t>(largest_task(plan) * sizeof(Word) * (4 + of_devices() % 4) / 4, 1);
    setup.network.cuda_memory = of_devices() % 2 == 0;
    if (of_devices() % 3 == 0) setup.device_messages = runtime::MessageMemory::cuda;
  }
  const bool records = !plan.faults && !plan.may_be_refused;
  for (std::size_t from = 0, to = 0; records && from < plan.operations.size(); from = std::max(to, from + 1)) {
    for (to = from; plan.operations[to].kind < Kind::wait && to - from < 1 + below(12);) ++to;
    if (to > from && below(2) == 0) plan.recorded[from] = {to - from, 1 + below(3)};
  }
  return plan;
}

Plan draw_with_cancels(std::uint64_t seed) {
  Plan plan = draw(seed);
  std::mt19937_64 random(seed * 173 + 11);
  plan.cancels = true;
  plan.faults = false;
  plan.recorded.clear();
  if (plan.may_be_refused) plan.setup.flow.copy_bytes = SIZE_MAX;
  plan.may_be_refused = false;
  if (random() % 3 != 0) plan.setup.core.begin_ahead_ns = 0;
  for (Operation& operation : plan.operations) {
    operation.throws = false;
    operation.cancels = operation.kind == Kind::task && random() % 25 == 0;
    if (random() % 60 == 0) operation.cancelled_by = static_cast<std::uint32_t>(random() % plan.ranks);
  }
  return plan;
}

void print(const Plan& plan) {
  std::printf("%u ranks, %u workers, %u devices of %zu, %s, copies %zu, memory %zu%s\n", plan.ranks, plan.setup.workers,
              plan.setup.devices, plan.setup.device_bytes, plan.setup.sched.c_str(), plan.setup.flow.copy_bytes,
              plan.setup.main_bytes, plan.objects ? ", objects" : "");
  for (std::size_t i = 0; i < plan.sizes.size(); ++i)
    std::printf("d%zu: %zu words, owner %d%s\n", i, plan.sizes[i],
                plan.owners[i] ? static_cast<int>(*plan.owners[i]) : -1, plan.allocated[i] ? ", allocated" : "");
  const char* const kinds[] = {"task",    "fetch", "fetch_everywhere", "migrate",        "flush",
                               "message", "wait",  "look",             "write_at_owner", "replace"};
  for (std::size_t position = 0; position < plan.operations.size(); ++position) {
    const Operation& operation = plan.operations[position];
    if (const auto recorded = plan.recorded.find(position); recorded != plan.recorded.end())
      std::printf("the next %zu are recorded and replayed %u times\n", recorded->second.length,
                  recorded->second.replays);
    std::printf("%zu %s", position, kinds[static_cast<int>(operation.kind)]);
    for (std::size_t i = 0; i < operation.data.size(); ++i)
      std::printf(" d%u%s%s", operation.data[i], operation.modes.empty() ? "" : ":",
                  operation.modes.empty() ? "" : std::string(name_of(operation.modes[i])).c_str());
    if (operation.on) std::printf(" on %u", *operation.on);
    if (operation.cancelled_by) std::printf(", rank %u cancels", *operation.cancelled_by);
    for (std::uint32_t rank = 0; rank < plan.skips.size(); ++rank)
      if (plan.skips[rank][position]) std::printf(", rank %u skips", rank);
    std::printf("%s%s\n", operation.throws ? " throws" : "", operation.cancels ? " cancels" : "");
  }
}

}  // namespace tandem::dist_test
