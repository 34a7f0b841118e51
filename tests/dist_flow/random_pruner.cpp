// tests/dist_flow/random_pruner.cpp: draws which tasks of a plan each rank skips, by the rules of `dist::Flow::skip`.
#include <algorithm>
#include <optional>
#include <random>
#include <utility>

#include "random_plan.hpp"

namespace tandem::dist_test {
namespace {

/// Which tasks each rank may skip, by the rules alone: goes through the flow once, with all that moves.
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
        if (recorded != plan.recorded.end()) end_recorded_sums();
      }
      position += length - 1;
    }
  }

  /// Of the tasks that `rank` wishes to skip, those that it may: none is the last to write what the rank sees later.
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
    bool reducing = false;           ///< ranks have shares of it
    bool recorded_reducing = false;  ///< in a replay: shares that belong to the recording
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
    const bool recorded = std::exchange(data_[datum].recorded_reducing, false);
    if (!std::exchange(data_[datum].reducing, false) && !recorded) return;
    write(datum, data_[datum].owner);
    step.gathered.push_back(datum);
  }
  /// A replay gathers all of its shares.
  void end_recorded_sums() {
    Step step{.gathered = {}, .written = {}, .seen = {}};
    for (unsigned datum = 0; datum < data_.size(); ++datum)
      if (data_[datum].recorded_reducing) gather(datum, step);
    steps_.push_back(std::move(step));
  }
  std::size_t bytes_of(unsigned datum) const {
    const std::size_t bytes = plan_.sizes[datum] * sizeof(Word);
    return plan_.objects ? std::max<std::size_t>(bytes, 1) : bytes;
  }
  std::uint32_t executor_of(const Operation& operation) const {
    if (operation.on) return *operation.on;
    std::vector<std::uint32_t> owners, of_sums, of_inputs;
    for (std::size_t i = 0; i < operation.data.size(); ++i) {
      const AccessMode mode = operation.modes[i];
      const std::uint32_t owner = data_[operation.data[i]].owner;
      if (owner == kAll && mode != AccessMode::read) return kAll;
      auto& of_mode = mode == AccessMode::read ? of_inputs : mode == AccessMode::reduce ? of_sums : owners;
      if (owner != kAll) of_mode.push_back(owner);
    }
    if (owners.empty() && of_sums.empty()) return data_[operation.data[0]].owner;
    if (owners.empty()) {
      owners = of_inputs;
      owners.insert(owners.end(), of_sums.begin(), of_sums.end());
    }
    std::uint32_t best = owners[0];
    std::size_t least = SIZE_MAX;
    for (const std::uint32_t rank : owners) {
      std::size_t moved = 0;
      for (std::size_t i = 0; i < operation.data.size(); ++i) {
        const std::uint32_t owner = data_[operation.data[i]].owner;
        const bool once = operation.modes[i] == AccessMode::read || operation.modes[i] == AccessMode::write;
        const bool moves = owner != rank && owner != kAll && operation.modes[i] != AccessMode::reduce;
        if (moves) moved += bytes_of(operation.data[i]) * (once ? 1 : 2);
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
    Step step{.operation = position,
              .may_be_skipped = operation.kind == Kind::task,
              .gathered = {},
              .written = {},
              .seen = {}};
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

  /// In a replay shares belong to the recording: what uses the data itself gathers the others.
  void go_through_task(const Operation& operation, Step& step, bool recorded) {
    const std::uint32_t executor = executor_of(operation);
    for (std::size_t i = 0; i < operation.data.size(); ++i) {
      const unsigned datum = operation.data[i];
      const bool adds = operation.modes[i] == AccessMode::reduce;
      if (!adds) gather(datum, step);
      if (!adds || !recorded || data_[datum].owner != executor) continue;
      if (!std::exchange(data_[datum].reducing, false)) continue;
      write(datum, data_[datum].owner);
      step.gathered.push_back(datum);
    }
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
      if (mode == AccessMode::reduce && place.owner != executor && place.owner != kAll) {
        (recorded ? place.recorded_reducing : place.reducing) = true;
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

  /// An operation that `rank` wants to skip, and that is the last to write something before the rank sees it.
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

}  // namespace

Plan with_skips(Plan plan) {
  std::mt19937_64 random(plan.seed * 211 + 3);
  if (plan.may_be_refused) plan.setup.flow.copy_bytes = SIZE_MAX;
  plan.may_be_refused = false;
  // Behind the end of a cancelled flow nothing migrates, and who owns what is not known before.
  if (plan.cancels)
    std::erase_if(plan.operations, [](const Operation& operation) { return operation.kind == Kind::migrate; });
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

}  // namespace tandem::dist_test
