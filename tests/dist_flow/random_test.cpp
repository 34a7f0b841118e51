// tests/dist_flow/random_test.cpp: random flows on random owners give what their sequential execution gives, on every rank.
//
// DIST_FLOW_SEED=n plays the flow of that seed alone; DIST_FLOW_COUNT=n plays n flows per test; DIST_FLOW_FRESH=1 those of seeds
// that were never played before. DIST_FLOW_VERBOSE=1 says what a flow does.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <random>
#include <stdexcept>

#include "baton.hpp"

namespace tandem::dist_test {
namespace {

using testing::HasSubstr;
using Word = std::uint64_t;
using Values = std::vector<Word>;

std::uint64_t from_environment(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text != nullptr && *text != '\0' ? std::strtoull(text, nullptr, 10) : otherwise;
}

enum class Kind { task, fetch, fetch_everywhere, migrate, flush, message, wait, look, write_at_owner, replace };

struct Operation {
  Kind kind = Kind::task;
  std::vector<unsigned> data;  ///< of a task: what it sees first, then what it writes
  std::vector<AccessMode> modes;
  Word factor = 0;
  int priority = 0;
  std::optional<std::uint32_t> on;
  bool throws = false;
  bool cancels = false;                          ///< a task: its kernel ends the flow
  std::optional<std::uint32_t> cancelled_by;     ///< whose program ends the flow after it
};

struct Plan {
  std::uint64_t seed = 0;
  std::uint32_t ranks = 2;
  JobSetup setup;
  std::vector<std::optional<std::uint32_t>> owners;  ///< none: each rank's own
  std::vector<bool> allocated;                       ///< by Tandem, so without a value at first
  std::vector<std::size_t> sizes;
  std::vector<Operation> operations;
  /// Operations from a position on that are recorded together, and how often they are replayed.
  struct Recorded {
    std::size_t length = 0;
    unsigned replays = 0;
  };
  std::map<std::size_t, Recorded> recorded;
  bool faults = false;
  bool objects = false;         ///< all data are objects, whose sizes change; `sizes` are those at first, and the estimates
  bool cancels = false;         ///< some operations end their flow
  bool may_be_refused = false;  ///< the budget of copies may be less than a task sees
  std::vector<std::vector<bool>> skips;  ///< by rank and operation: tasks that it passes over; empty: nobody passes over any
};

constexpr unsigned kMostUses = 3;

/// What a kernel does: the same for the runtime and for the oracle.
void compute(Word factor, std::span<const std::span<const Word>> seen, AccessMode mode, std::span<Word> written) {
  for (std::size_t i = 0; i < written.size(); ++i) {
    Word sum = factor + i;
    for (const auto& in : seen)
      if (!in.empty()) sum = sum * 31 + in[i % in.size()];
    if (mode == AccessMode::write) written[i] = sum;
    else if (mode == AccessMode::commute || mode == AccessMode::reduce) written[i] += sum;
    else written[i] = written[i] * 7 + sum;
  }
}

/// Of an object, what is computed: the size changes, and with commuting accesses in whatever order to the same.
std::span<Word> resized(Word factor, AccessMode mode, Values& values) {
  const std::size_t wanted = factor % 600;
  if (mode == AccessMode::commute || mode == AccessMode::reduce) {
    if (values.size() < wanted) values.resize(wanted);
    return std::span(values).first(wanted);
  }
  if (mode == AccessMode::write) values.assign(wanted, 0);
  else values.resize((values.size() + factor) % 700);
  return values;
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
          mode = std::vector<AccessMode>{AccessMode::write, AccessMode::read_write, AccessMode::read_write, AccessMode::commute,
                                         AccessMode::reduce}[below(plan.faults ? 3 : 5)];
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
      const bool sees = operation.kind != Kind::wait && operation.kind != Kind::replace && operation.kind != Kind::flush &&
                        operation.kind != Kind::migrate;
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
  const bool records = !plan.faults && !plan.may_be_refused;
  for (std::size_t from = 0, to = 0; records && from < plan.operations.size(); from = std::max(to, from + 1)) {
    for (to = from; plan.operations[to].kind < Kind::wait && to - from < 1 + below(12);) ++to;
    if (to > from && below(2) == 0) plan.recorded[from] = {to - from, 1 + below(3)};
  }
  return plan;
}

/// The same flow, in which some kernels and programs cancel what is to come until the next wait.
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

/// Which tasks each rank may pass over, by the rule and nothing else: the flow is gone through once, with all that moves.
class Pruner {
 public:
  explicit Pruner(const Plan& plan) : plan_(plan), data_(plan.sizes.size()) {
    for (std::size_t datum = 0; datum < data_.size(); ++datum) start(datum);
    may_skip_.assign(plan.ranks, std::vector<bool>(plan.operations.size(), true));
    for (std::size_t position = 0; position < plan.operations.size(); ++position) {
      const auto recorded = plan.recorded.find(position);
      const std::size_t length = recorded == plan.recorded.end() ? 1 : recorded->second.length;
      const unsigned times = recorded == plan.recorded.end() ? 1 : recorded->second.replays;
      for (unsigned time = 0; time < times; ++time) {
        const std::vector<Datum> before = data_;
        for (std::size_t i = position; i < position + length; ++i) go_through(i, recorded != plan.recorded.end());
        for (unsigned datum = 0; recorded != plan.recorded.end() && datum < data_.size(); ++datum)
          if (data_[datum].owner != before[datum].owner) migrate_back(datum, before[datum].owner);
      }
      position += length - 1;
    }
  }

  /// Of those that `rank` wishes to pass over, the ones that it may: none writes last what it sees later.
  std::vector<bool> skips_of(std::uint32_t rank, const std::vector<bool>& wished) const {
    std::vector<bool> skips = wished;
    for (std::size_t i = 0; i < skips.size(); ++i) skips[i] = skips[i] && may_skip_[rank][i];
    while (const std::optional<std::size_t> wrong = needed_writer(rank, skips)) skips[*wrong] = false;
    return skips;
  }

 private:
  static constexpr std::uint32_t kAll = UINT32_MAX;
  struct Datum {
    std::uint32_t owner = kAll;  ///< kAll: each rank's own
    std::uint32_t holder = kAll;
    std::vector<bool> copies;
    bool reducing = false;
  };
  /// An operation as it takes place; several times when it is recorded.
  struct Step {
    std::size_t operation = 0;
    bool may_be_skipped = false;
    std::vector<unsigned> gathered;  ///< before it
    std::vector<unsigned> written;   ///< known to all ranks that submit it
    std::vector<unsigned> seen;
    std::uint32_t seen_by = 0;
  };

  void start(std::size_t datum) {
    const std::uint32_t owner = plan_.owners[datum].value_or(kAll);
    data_[datum] = {owner, owner, std::vector<bool>(plan_.ranks, false), false};
  }
  void write(unsigned datum, std::uint32_t at) {
    data_[datum].holder = data_[datum].owner == kAll ? kAll : at;
    data_[datum].copies.assign(plan_.ranks, false);
  }
  void see(unsigned datum, std::uint32_t at) {
    if (at == kAll) data_[datum].copies.assign(plan_.ranks, true);
    else data_[datum].copies[at] = true;
  }
  void gather(unsigned datum, Step& step) {
    if (!std::exchange(data_[datum].reducing, false)) return;
    write(datum, data_[datum].owner);
    step.gathered.push_back(datum);
  }
  std::size_t bytes_of(unsigned datum) const {
    const std::size_t bytes = plan_.sizes[datum] * sizeof(Word);
    return plan_.objects ? std::max<std::size_t>(bytes, 1) : bytes;
  }
  std::uint32_t executor_of(const Operation& operation) const {
    if (operation.on) return *operation.on;
    std::vector<std::uint32_t> owners;
    for (std::size_t i = 0; i < operation.data.size(); ++i)
      if (operation.modes[i] != AccessMode::read) owners.push_back(data_[operation.data[i]].owner);
    if (owners.empty()) return data_[operation.data[0]].owner;
    std::uint32_t best = owners[0];
    std::size_t least = SIZE_MAX;
    for (const std::uint32_t rank : owners) {
      std::size_t moved = 0;
      for (std::size_t i = 0; i < operation.data.size(); ++i) {
        const std::uint32_t owner = data_[operation.data[i]].owner;
        const bool once = operation.modes[i] == AccessMode::read || operation.modes[i] == AccessMode::write;
        if (owner != rank && owner != kAll) moved += bytes_of(operation.data[i]) * (once ? 1 : 2);
      }
      if (moved <= least) {
        best = rank;
        least = moved;
      }
    }
    return best;
  }

  void go_through(std::size_t position, bool recorded) {
    const Operation& operation = plan_.operations[position];
    Step step{.operation = position, .may_be_skipped = operation.kind == Kind::task, .gathered = {}, .written = {}, .seen = {}};
    if (operation.kind == Kind::task) {
      go_through_task(operation, step, recorded);
    } else if (operation.kind == Kind::wait) {
      for (unsigned datum = 0; datum < data_.size(); ++datum) {
        gather(datum, step);
        if (data_[datum].holder != data_[datum].owner) write(datum, data_[datum].owner);
      }
    } else {
      const unsigned datum = operation.data[0];
      gather(datum, step);
      const bool everywhere = operation.kind == Kind::fetch_everywhere || operation.kind == Kind::look;
      step.seen_by = everywhere ? kAll : operation.on.value_or(0);
      if (operation.kind == Kind::fetch || everywhere) {
        step.seen.push_back(datum);
        see(datum, step.seen_by);
      }
      if (operation.kind == Kind::migrate) migrate(datum, step.seen_by, step);
      if (operation.kind == Kind::write_at_owner) {
        step.written.push_back(datum);
        write(datum, data_[datum].owner);
      }
      if (operation.kind == Kind::replace) {
        step.written.push_back(datum);
        start(datum);
      }
    }
    steps_.push_back(std::move(step));
  }

  void migrate(unsigned datum, std::uint32_t to, Step& step) {
    if (data_[datum].owner == to) return;
    step.seen.push_back(datum);  // and not written: whether there is a value says only the task that wrote it
    see(datum, to);
    data_[datum].owner = to;
    if (data_[datum].holder != to) write(datum, to);
  }
  /// At the end of a replay.
  void migrate_back(unsigned datum, std::uint32_t to) {
    Step step{.gathered = {}, .written = {}, .seen = {}, .seen_by = to};
    gather(datum, step);
    migrate(datum, to, step);
    steps_.push_back(std::move(step));
  }

  /// Recorded tasks have no shares: they write the data themselves.
  void go_through_task(const Operation& operation, Step& step, bool recorded) {
    for (std::size_t i = 0; i < operation.data.size(); ++i)
      if (recorded || operation.modes[i] != AccessMode::reduce) gather(operation.data[i], step);
    const std::uint32_t executor = executor_of(operation);
    step.seen_by = executor;
    bool of_all = executor == kAll || !step.gathered.empty();
    std::vector<bool> must(plan_.ranks, false);
    const auto submits = [&](std::uint32_t rank) {
      if (rank == kAll) of_all = true;
      else must[rank] = true;
    };
    submits(executor);
    for (std::size_t i = 0; i < operation.data.size(); ++i) {
      const unsigned datum = operation.data[i];
      const AccessMode mode = operation.modes[i];
      Datum& place = data_[datum];
      if (mode == AccessMode::reduce) of_all = true;
      if (mode == AccessMode::reduce && !recorded && place.owner != executor && place.owner != kAll) {
        place.reducing = true;
        continue;
      }
      if (mode == AccessMode::read && place.owner == kAll) continue;
      submits(place.owner);
      submits(place.holder);
      if (mode != AccessMode::write) step.seen.push_back(datum);
      if (mode == AccessMode::read) {
        see(datum, executor);
        continue;
      }
      for (std::uint32_t rank = 0; rank < plan_.ranks; ++rank)
        if (place.copies[rank]) submits(rank);
      step.written.push_back(datum);
      write(datum, executor);
    }
    for (std::uint32_t rank = 0; rank < plan_.ranks; ++rank)
      if (of_all || must[rank]) may_skip_[rank][step.operation] = false;
  }

  /// An operation that `rank` wants to pass over, and that writes something last before the rank sees it.
  std::optional<std::size_t> needed_writer(std::uint32_t rank, const std::vector<bool>& skips) const {
    std::vector<bool> needed(data_.size(), false);
    for (auto step = steps_.rbegin(); step != steps_.rend(); ++step) {
      if (step->may_be_skipped && skips[step->operation]) {
        for (const unsigned datum : step->written)
          if (needed[datum]) return step->operation;
        continue;
      }
      for (const unsigned datum : step->written) needed[datum] = false;
      if (step->seen_by == rank || step->seen_by == kAll)
        for (const unsigned datum : step->seen) needed[datum] = true;
      for (const unsigned datum : step->gathered) needed[datum] = false;
    }
    return {};
  }

  const Plan& plan_;
  std::vector<Datum> data_;
  std::vector<Step> steps_;
  std::vector<std::vector<bool>> may_skip_;
};

/// The same flow, in which ranks pass over tasks; some all that they may.
Plan with_skips(Plan plan) {
  std::mt19937_64 random(plan.seed * 211 + 3);
  if (plan.may_be_refused) plan.setup.flow.copy_bytes = SIZE_MAX;
  plan.may_be_refused = false;
  // Behind the end of a cancelled flow nothing migrates, and who owns what is not known before.
  if (plan.cancels) std::erase_if(plan.operations, [](const Operation& operation) { return operation.kind == Kind::migrate; });
  plan.setup.flow.check_pruning = random() % 4 == 0;
  const Pruner pruner(plan);
  for (std::uint32_t rank = 0; rank < plan.ranks; ++rank) {
    const std::uint64_t thirds = random() % 4;
    std::vector<bool> wished(plan.operations.size());
    for (std::size_t i = 0; i < wished.size(); ++i)
      wished[i] = plan.operations[i].kind == Kind::task && random() % 3 < thirds;
    plan.skips.push_back(pruner.skips_of(rank, wished));
  }
  return plan;
}

/// What a person who looks for a mistake reads.
void print(const Plan& plan) {
  std::printf("%u ranks, %u workers, %s, copies %zu%s\n", plan.ranks, plan.setup.workers, plan.setup.sched.c_str(),
              plan.setup.flow.copy_bytes, plan.objects ? ", objects" : "");
  for (std::size_t i = 0; i < plan.sizes.size(); ++i)
    std::printf("d%zu: %zu words, owner %d%s\n", i, plan.sizes[i], plan.owners[i] ? static_cast<int>(*plan.owners[i]) : -1,
                plan.allocated[i] ? ", allocated" : "");
  const char* const kinds[] = {"task",    "fetch", "fetch_everywhere", "migrate",        "flush",
                               "message", "wait",  "look",             "write_at_owner", "replace"};
  for (std::size_t position = 0; position < plan.operations.size(); ++position) {
    const Operation& operation = plan.operations[position];
    if (const auto recorded = plan.recorded.find(position); recorded != plan.recorded.end())
      std::printf("the next %zu are recorded and replayed %u times\n", recorded->second.length, recorded->second.replays);
    std::printf("%zu %s", position, kinds[static_cast<int>(operation.kind)]);
    for (std::size_t i = 0; i < operation.data.size(); ++i)
      std::printf(" d%u%s%s", operation.data[i], operation.modes.empty() ? "" : ":",
                  operation.modes.empty() ? "" : std::string(name_of(operation.modes[i])).c_str());
    if (operation.on) std::printf(" on %u", *operation.on);
    if (operation.cancelled_by) std::printf(", rank %u cancels", *operation.cancelled_by);
    for (std::uint32_t rank = 0; rank < plan.skips.size(); ++rank)
      if (plan.skips[rank][position]) std::printf(", rank %u passes", rank);
    std::printf("%s%s\n", operation.throws ? " throws" : "", operation.cancels ? " cancels" : "");
  }
}

/// Executes a plan one operation after the other.
class Oracle {
 public:
  explicit Oracle(const Plan& plan) : plan_(plan) {
    for (std::size_t i = 0; i < plan.sizes.size(); ++i) values_.push_back(initial(plan, i));
    poison_.resize(values_.size());
  }
  static Values initial(const Plan& plan, std::size_t datum) { return Values(plan.sizes[datum], 1000 + datum); }

  /// What this wait throws: the label of a task, or nothing.
  std::string step(std::size_t position, const Operation& operation) {
    if (operation.kind == Kind::task) run(position, operation);
    if (operation.kind == Kind::write_at_owner)
      values_[operation.data[0]].assign(plan_.sizes[operation.data[0]], operation.factor);
    if (operation.kind == Kind::replace) poison_[operation.data[0]] = nullptr;
    if (operation.kind != Kind::wait) return {};
    Failure* told = nullptr;
    for (auto& failure : failures_) {
      const bool untold = failure->told == 0 || failure->last_cancelled > failure->told;
      if (untold && told == nullptr) told = failure.get();
      failure->told = position + 1;
    }
    return told == nullptr ? std::string() : label(told->position);
  }
  static std::string label(std::size_t position) { return "failure at " + std::to_string(position); }
  void set(std::size_t datum, Word value) { values_[datum].assign(plan_.sizes[datum], value); }
  /// Null: it does not exist.
  const Values* value(std::size_t datum) const { return poison_[datum] == nullptr ? &values_[datum] : nullptr; }

 private:
  struct Failure {
    std::size_t position = 0;
    std::size_t last_cancelled = 0;
    std::size_t told = 0;
  };

  void run(std::size_t position, const Operation& operation) {
    Failure* cause = nullptr;
    std::vector<std::span<const Word>> seen;
    for (std::size_t i = 0; i < operation.data.size(); ++i) {
      if (operation.modes[i] == AccessMode::read) seen.emplace_back(values_[operation.data[i]]);
      Failure* poison = poison_[operation.data[i]];
      if (operation.modes[i] != AccessMode::write && poison != nullptr &&
          (cause == nullptr || poison->position < cause->position))
        cause = poison;
    }
    if (cause != nullptr) cause->last_cancelled = position + 1;
    if (cause == nullptr && operation.throws) {
      failures_.push_back(std::make_unique<Failure>(Failure{.position = position}));
      cause = failures_.back().get();
    }
    for (std::size_t i = 0; i < operation.data.size(); ++i) {
      if (operation.modes[i] == AccessMode::read) continue;
      poison_[operation.data[i]] = cause;
      if (cause != nullptr) continue;
      Values& values = values_[operation.data[i]];
      const Word factor = operation.factor + i;
      compute(factor, seen, operation.modes[i], plan_.objects ? resized(factor, operation.modes[i], values) : values);
    }
  }

  const Plan& plan_;
  std::vector<Values> values_;
  std::vector<Failure*> poison_;
  std::vector<std::unique_ptr<Failure>> failures_;
};

/// One rank's program: goes through the plan and through the oracle's values side by side.
template <bool objects>
class Program {
  using Held = std::conditional_t<objects, Object<Values>, Vector<Word>>;

 public:
  Program(const Plan& plan, Runtime& rt, BatonJob& job) : plan_(plan), rt_(rt), job_(job), oracle_(plan) {
    memory_.reserve(plan.sizes.size());  // objects stay where they were registered
    for (std::size_t i = 0; i < plan.sizes.size(); ++i) {
      memory_.push_back(Oracle::initial(plan, i));
      owners_.push_back(plan.owners[i]);
      data_.push_back(add(i));
      has_memory_.push_back(!plan.allocated[i]);
    }
  }

  void play() {
    for (std::size_t position = 0; position < plan_.operations.size(); ++position) {
      const Operation& operation = plan_.operations[position];
      job_.breathe(rt_.rank());
      if (const auto recorded = plan_.recorded.find(position); recorded != plan_.recorded.end()) {
        replay(position, recorded->second);
        position += recorded->second.length - 1;
        continue;
      }
      if (plan_.cancels) {
        play_cancelled(position, operation);
        continue;
      }
      const std::string expected = oracle_.step(position, operation);
      if (operation.kind == Kind::wait) wait(expected);
      else perform(position, operation);
    }
  }

 private:
  Data<Held> add(std::size_t datum) {
    if (plan_.allocated[datum]) return allocate(datum);
    const std::string name = "d" + std::to_string(datum);
    if constexpr (objects) return with_sum(rt_.object(name, memory_[datum], options(datum)));
    else return with_sum(rt_.data(name, memory_[datum], options(datum)));
  }
  Data<Held> allocate(std::size_t datum) {
    const std::string name = "d" + std::to_string(datum);
    if constexpr (objects) return with_sum(rt_.object<Values>(name, options(datum)));
    else return with_sum(rt_.vector<Word>(name, plan_.sizes[datum], options(datum)));
  }
  DataOptions options(std::size_t datum) const {
    DataOptions options{.owner = owners_[datum]};
    if (objects) options.bytes = std::max<std::size_t>(plan_.sizes[datum] * sizeof(Word), 1);
    return options;
  }
  static Data<Held> with_sum(Data<Held> data) {
    if constexpr (objects) {
      data.reduction([](Values& sum) { sum.clear(); },
                     [](Values& sum, const Values& more) {
                       if (sum.size() < more.size()) sum.resize(more.size());
                       for (std::size_t i = 0; i < more.size(); ++i) sum[i] += more[i];
                     });
    } else {
      data.reduction([](std::span<Word> sum) { std::fill(sum.begin(), sum.end(), Word{0}); },
                     [](std::span<Word> sum, std::span<const Word> more) {
                       for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += more[i];
                     });
    }
    return data;
  }

  /// Only the wait tells what has run: the oracle follows then.
  void play_cancelled(std::size_t position, const Operation& operation) {
    if (operation.kind == Kind::wait) return wait_for_cancelled(position);
    const bool over = rt_.cancelled();
    // Behind the end each rank does something else; but data is registered and let go alike.
    const bool left_out = over && operation.kind != Kind::replace && (position + rt_.rank()) % 3 == 0;
    const std::uint64_t before = rt_.position();
    if (!left_out && !(over && operation.kind == Kind::migrate)) {
      try {
        perform(position, operation);
      } catch (const FlowCancelled&) {
        // A look at what has no value, or what travels no more.
      }
    }
    if (over && rt_.position() != before && operation.kind != Kind::replace && operation.kind != Kind::look &&
        operation.kind != Kind::write_at_owner)
      throw std::logic_error("something was entered behind the end");
    played_.push_back({position, rt_.position(), over});
    if (operation.cancelled_by == rt_.rank()) rt_.cancel();
  }

  void wait_for_cancelled(std::size_t position) {
    rt_.wait();
    const std::optional<std::uint64_t> end = rt_.cancelled_at();
    std::vector<bool> lost(data_.size(), false);
    for (const Played& played : played_) {
      const Operation& operation = plan_.operations[played.operation];
      const bool runs = operation.kind == Kind::replace ||
                        (!played.over && (!end || operation.kind != Kind::task || played.position <= *end));
      if (runs) oracle_.step(played.operation, operation);
      for (std::size_t i = 0; !runs && i < operation.data.size(); ++i)
        if (operation.kind == Kind::write_at_owner || (operation.kind == Kind::task && operation.modes[i] == AccessMode::write))
          lost[operation.data[i]] = true;
    }
    played_.clear();
    compare(&lost);
    if (!end) return;
    // Everything is written afresh, so that the flows to come start from what is known.
    const Codelet fresh("fresh", [](Word factor, std::size_t size, auto&& out) {
      if constexpr (objects) out.resize(size);
      std::fill(out.begin(), out.end(), factor);
    });
    for (std::size_t i = 0; i < data_.size(); ++i) {
      rt_.submit(fresh, position * 100 + i, plan_.sizes[i], write(data_[i]));
      oracle_.set(i, position * 100 + i);
    }
    rt_.wait();
    compare(nullptr);
  }

  void compare(const std::vector<bool>* but) {
    for (std::size_t i = 0; i < data_.size(); ++i) {
      const bool here = !owners_[i] || *owners_[i] == rt_.rank();
      const bool at_home = has_memory_[i] && (!plan_.owners[i] || owners_[i] == plan_.owners[i]);
      if (here && at_home && (but == nullptr || !(*but)[i]) && memory_[i] != *oracle_.value(i))
        throw std::logic_error("after a wait, d" + std::to_string(i) + " differs");
    }
  }

  void replay(std::size_t from, const Plan::Recorded& recorded) {
    const std::vector<std::optional<std::uint32_t>> owners = owners_;
    Graph graph = rt_.record([&] {
      for (std::size_t i = 0; i < recorded.length; ++i) perform(from + i, plan_.operations[from + i]);
      // The next replay finds the owners that this one has found.
      for (std::size_t datum = 0; datum < owners.size(); ++datum)
        if (owners_[datum] != owners[datum]) rt_.migrate(data_[datum], *owners[datum]);
    });
    owners_ = owners;
    for (unsigned replay = 0; replay < recorded.replays; ++replay) {
      job_.breathe(rt_.rank());
      rt_.replay(graph);
      for (std::size_t i = 0; i < recorded.length; ++i) oracle_.step(from + i, plan_.operations[from + i]);
    }
  }

  void wait(const std::string& expected) {
    std::string thrown;
    try {
      rt_.wait();
    } catch (const JobError&) {
      throw;  // a rank died
    } catch (const std::exception& error) {
      thrown = error.what();
    }
    if (expected.empty() ? !thrown.empty() : thrown.find(expected + "!") == std::string::npos)
      throw std::logic_error("wait threw '" + thrown + "' instead of '" + expected + "'");
    // What has memory of the program's is at home now.
    for (std::size_t i = 0; i < data_.size(); ++i) {
      const bool here = !owners_[i] || *owners_[i] == rt_.rank();
      const bool at_home = has_memory_[i] && (!plan_.owners[i] || owners_[i] == plan_.owners[i]);
      if (here && at_home && oracle_.value(i) != nullptr && memory_[i] != *oracle_.value(i))
        throw std::logic_error("after a wait, d" + std::to_string(i) + " differs");
    }
  }

  void perform(std::size_t position, const Operation& operation) {
    const unsigned datum = operation.data[0];
    auto& data = data_[datum];
    switch (operation.kind) {
      case Kind::task: submit(position, operation); break;
      case Kind::fetch: rt_.fetch(data, *operation.on); break;
      case Kind::fetch_everywhere: rt_.fetch_everywhere(data); break;
      case Kind::migrate:
        rt_.migrate(data, *operation.on);
        owners_[datum] = *operation.on;
        break;
      case Kind::flush: rt_.flush(data); break;
      case Kind::message:
        // All have the same value before, and after.
        for (std::uint32_t rank = 0; rank < rt_.size(); ++rank) {
          if (rank == *operation.on || (operation.factor >> rank & 1) == 0) continue;
          if (rt_.rank() == *operation.on) rt_.send(data, rank, position, operation.priority);
          if (rt_.rank() == rank) rt_.receive(data, *operation.on, position);
        }
        break;
      case Kind::look: {
        auto view = rt_.acquire(read(data));
        if (plan_.cancels) break;
        const Values* expected = oracle_.value(datum);
        if (!std::equal((*view).begin(), (*view).end(), expected->begin(), expected->end()))
          throw std::logic_error("a look at d" + std::to_string(datum) + " differs");
        break;
      }
      case Kind::write_at_owner:
        if (auto view = rt_.acquire_at_owner(write(data))) {
          if constexpr (objects) (**view).resize(plan_.sizes[datum]);
          for (Word& word : **view) word = operation.factor;
        }
        break;
      case Kind::replace:
        data = {};
        owners_[datum] = plan_.owners[datum];
        data = allocate(datum);
        has_memory_[datum] = false;
        break;
      default: break;
    }
  }

  /// Kernels of up to `kMostUses` uses, of whatever modes.
  template <class... Accesses>
  void submit_with(std::size_t position, const Operation& operation, const Accesses&... accesses) {
    const Codelet codelet("task", [](const Operation* what, std::size_t at, Runtime* rt, auto&&... views) {
      if (what->cancels) rt->cancel();
      if (what->throws) throw std::runtime_error(Oracle::label(at) + "!");
      const std::span<const Word> all[] = {std::span<const Word>(views.data(), views.size())...};
      std::vector<std::span<const Word>> seen;
      for (std::size_t i = 0; i < what->data.size(); ++i)
        if (what->modes[i] == AccessMode::read) seen.push_back(all[i]);
      std::size_t i = 0;
      const auto change = [&]<class View>(View& view) {
        [[maybe_unused]] const AccessMode mode = what->modes[i];
        [[maybe_unused]] const Word factor = what->factor + i++;
        if constexpr (std::is_same_v<View, Values>) compute(factor, seen, mode, resized(factor, mode, view));
        else if constexpr (std::is_same_v<View, std::span<Word>>) compute(factor, seen, mode, view);
      };
      (change(views), ...);
    });
    rt_.submit({.priority = operation.priority, .on = operation.on}, codelet, &operation, position, &rt_, accesses...);
  }
  template <class... Accesses>
  void submit_next(std::size_t position, const Operation& operation, const Accesses&... accesses) {
    constexpr std::size_t index = sizeof...(accesses);
    if constexpr (index > 0)
      if (index == operation.data.size()) return submit_with(position, operation, accesses...);
    if constexpr (index < kMostUses) {
      const auto& data = data_[operation.data[index]];
      switch (operation.modes[index]) {
        case AccessMode::read: return submit_next(position, operation, accesses..., read(data));
        case AccessMode::write: return submit_next(position, operation, accesses..., write(data));
        case AccessMode::commute: return submit_next(position, operation, accesses..., commute(data));
        case AccessMode::reduce: return submit_next(position, operation, accesses..., reduce(data));
        default: return submit_next(position, operation, accesses..., read_write(data));
      }
    }
  }
  void submit(std::size_t position, const Operation& operation) {
    const bool skips = !plan_.skips.empty() && plan_.skips[rt_.rank()][position];
    for_tasks_of(rt_, 0, 1, [&](std::size_t) { return !skips; }, [&](std::size_t) { submit_next(position, operation); });
  }

  const Plan& plan_;
  Runtime& rt_;
  BatonJob& job_;
  Oracle oracle_;
  std::vector<Values> memory_;
  std::vector<std::optional<std::uint32_t>> owners_;
  std::vector<bool> has_memory_;
  std::vector<Data<Held>> data_;
  struct Played {
    std::size_t operation = 0;
    std::uint64_t position = 0;  ///< in the flow, after it
    bool over = false;           ///< the flow had ended before
  };
  std::vector<Played> played_;  ///< since the last wait
};

void play_program(const Plan& plan, Runtime& rt, BatonJob& baton) {
  if (plan.objects) Program<true>(plan, rt, baton).play();
  else Program<false>(plan, rt, baton).play();
}

void play(const Plan& plan) {
  const std::uint64_t seed = plan.seed;
  if (from_environment("DIST_FLOW_VERBOSE", 0) != 0) {
    print(plan);
    std::fflush(stdout);
  }
  BatonJob job(seed);
  const BatonJob::Outcome outcome = job.run(plan.setup, [&](Runtime& rt, BatonJob& baton) { play_program(plan, rt, baton); });
  if (outcome.stuck) {
    std::fprintf(stderr, "DIST_FLOW_SEED=%llu: nothing goes on\n%s", static_cast<unsigned long long>(seed),
                 outcome.why.c_str());
    std::abort();
  }
  bool refused = false;
  for (const Ending& ending : outcome.endings) refused |= ending.error.find("option copies allows") != std::string::npos;
  if (plan.may_be_refused && refused) return;
  for (std::uint32_t rank = 0; rank < plan.ranks; ++rank)
    EXPECT_EQ(outcome.endings[rank].error, "") << "DIST_FLOW_SEED=" << seed << ", rank " << rank << " of " << plan.ranks;
}

/// How many ranks did not go through all of the flow, and how many of them know who died.
struct Told {
  unsigned ranks = 0;
  unsigned by_name = 0;
};

/// One rank is killed at some moment. The others come to the end with the right values, or are told.
void play_with_a_death(std::uint64_t seed, Told& told) {
  Plan plan = seed % 3 == 0 ? draw_with_cancels(seed) : draw(seed);
  std::mt19937_64 random(seed * 131 + 7);
  plan.ranks = plan.setup.ranks = std::max(plan.ranks, 2U);
  if (plan.may_be_refused) plan.setup.flow.copy_bytes = SIZE_MAX;
  // As sockets do: what was sent arrives though its sender has gone, and nobody reads a dead rank's memory.
  plan.setup.network.copies = true;
  plan.setup.network.remote_copy = false;
  plan.setup.network.deaths_are_seen_by_all = random() % 2 == 0;
  const auto victim = static_cast<std::uint32_t>(random() % plan.ranks);
  const auto after_ns = static_cast<std::int64_t>(random() % (std::uint64_t{1} << (8 + random() % 14)));
  if (from_environment("DIST_FLOW_VERBOSE", 0) != 0) {
    print(plan);
    std::printf("rank %u dies after %lld ns\n", victim, static_cast<long long>(after_ns));
    std::fflush(stdout);
  }
  BatonJob job(seed);
  std::vector<bool> played(plan.ranks, false);
  const BatonJob::Outcome outcome = job.run(plan.setup, [&](Runtime& rt, BatonJob& baton) {
    std::optional<Killer> killer;
    if (rt.rank() == victim) killer.emplace(rt, baton, after_ns);
    play_program(plan, rt, baton);
    played[rt.rank()] = true;
  });
  if (outcome.stuck) {
    std::fprintf(stderr, "DIST_FLOW_SEED=%llu, rank %u dies: nothing goes on\n%s", static_cast<unsigned long long>(seed), victim,
                 outcome.why.c_str());
    std::abort();
  }
  for (std::uint32_t rank = 0; rank < plan.ranks; ++rank) {
    const std::string& error = outcome.endings[rank].error;
    if (rank == victim || (played[rank] && error.empty())) continue;
    ++told.ranks;
    if (error.find(fmt::format("rank {}", victim)) != std::string::npos) ++told.by_name;
    EXPECT_THAT(error, testing::AnyOf(HasSubstr("died"), HasSubstr("ended"), HasSubstr("killed")))
        << "DIST_FLOW_SEED=" << seed << ", rank " << rank << " of " << plan.ranks << " when rank " << victim << " dies";
  }
}

class RandomDistFlow : public testing::TestWithParam<unsigned> {
 protected:
  /// Plays the seeds of this chunk, or the one that was asked for.
  static void play_seeds(std::uint64_t usual, const std::function<void(std::uint64_t)>& one) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    usual /= 10;
#endif
    const std::uint64_t count = from_environment("DIST_FLOW_COUNT", usual);
    std::uint64_t first = GetParam() * count + 1;
    if (from_environment("DIST_FLOW_FRESH", 0) != 0) {
      first = (std::uint64_t{std::random_device()()} << 20) + GetParam() * count;
      std::printf("seeds from %llu on\n", static_cast<unsigned long long>(first));
    }
    if (const std::uint64_t only = from_environment("DIST_FLOW_SEED", 0); only != 0) return one(only);
    for (std::uint64_t seed = first; seed < first + count && !HasFailure(); ++seed) one(seed);
  }
};

TEST_P(RandomDistFlow, GivesWhatSequentialExecutionGives) {
  play_seeds(400, [](std::uint64_t seed) { play(draw(seed)); });
}

TEST_P(RandomDistFlow, ThatIsCancelledEndsAtOnePositionWithItsValues) {
  play_seeds(200, [](std::uint64_t seed) { play(draw_with_cancels(seed)); });
}

TEST_P(RandomDistFlow, WhoseRanksPassOverWhatTheyMayGivesTheSame) {
  play_seeds(300, [](std::uint64_t seed) { play(with_skips(draw(seed))); });
}

TEST_P(RandomDistFlow, ThatIsPrunedAndCancelledEndsAtOnePosition) {
  play_seeds(100, [](std::uint64_t seed) { play(with_skips(draw_with_cancels(seed))); });
}

TEST_P(RandomDistFlow, ARankThatDiesEndsTheFlowOfTheOthers) {
  Told told;
  play_seeds(200, [&](std::uint64_t seed) { play_with_a_death(seed, told); });
  EXPECT_GE(told.by_name * 10, told.ranks * 9) << "of " << told.ranks;
}
INSTANTIATE_TEST_SUITE_P(Chunk, RandomDistFlow, testing::Range(0U, 5U));

}  // namespace
}  // namespace tandem::dist_test
