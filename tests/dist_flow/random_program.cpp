// tests/dist_flow/random_program.cpp: one rank's program of a plan.
#include "random_program.hpp"

#include <algorithm>
#include <stdexcept>

#include "random_oracle.hpp"
#include "random_submit.hpp"
#include "tandem/dist/flow.hpp"

namespace tandem::dist_test {
namespace {

/// One rank's program: goes through the plan and through the oracle's values side by side.
template <bool objects>
class Program {
 public:
  Program(const Plan& plan, Runtime& rt, DeterministicJob& job) : plan_(plan), rt_(rt), job_(job), oracle_(plan) {
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
      job_.maybe_yield();
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
  Data<Held<objects>> add(std::size_t datum) {
    if (plan_.allocated[datum]) return allocate(datum);
    const std::string name = name_of(datum);
    if constexpr (objects) return with_sum(rt_.object(name, memory_[datum], options(datum)));
    else return with_sum(rt_.data(name, memory_[datum], options(datum)));
  }
  Data<Held<objects>> allocate(std::size_t datum) {
    const std::string name = name_of(datum);
    if constexpr (objects) return with_sum(rt_.object<Values>(name, options(datum)));
    else return with_sum(rt_.vector<Word>(name, plan_.sizes[datum], options(datum)));
  }
  static std::string name_of(std::size_t datum) {
    std::string name = "d";
    return name += std::to_string(datum);
  }
  DataOptions options(std::size_t datum) const {
    DataOptions options{.owner = owners_[datum]};
    if (objects) options.bytes = std::max<std::size_t>(plan_.sizes[datum] * sizeof(Word), 1);
    return options;
  }
  static Data<Held<objects>> with_sum(Data<Held<objects>> data) {
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

  /// Only the wait says what has run: the oracle follows then.
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

  void check_flow() const {
    if (rt_.flow() != nullptr && !rt_.flow()->check_invariants())
      throw std::logic_error("after a wait, the flow's parts do not agree");
  }

  void wait_for_cancelled(std::size_t position) {
    rt_.wait();
    check_flow();
    const std::optional<std::uint64_t> end = rt_.cancelled_at();
    std::vector<bool> lost(data_.size(), false);
    for (const Played& played : played_) {
      const Operation& operation = plan_.operations[played.operation];
      const bool runs = operation.kind == Kind::replace ||
                        (!played.over && (!end || operation.kind != Kind::task || played.position <= *end));
      if (runs) oracle_.step(played.operation, operation);
      for (std::size_t i = 0; !runs && i < operation.data.size(); ++i)
        if (operation.kind == Kind::write_at_owner ||
            (operation.kind == Kind::task && operation.modes[i] == AccessMode::write))
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

  /// At rest. What a device has is looked at where it is, so that the flow goes on with the value there.
  bool is_value(std::size_t datum, const Values& expected) const {
    if constexpr (!objects) {
      runtime::Handle& handle = *data_[datum].handle();
      for (runtime::NodeIndex node = 1; node <= plan_.setup.devices && !handle.valid_on(0); ++node)
        if (handle.valid_on(node))
          return std::equal(expected.begin(), expected.end(), static_cast<const Word*>(handle.replica(node).pointer));
    }
    return memory_[datum] == expected;
  }

  void compare(const std::vector<bool>* but) {
    for (std::size_t i = 0; i < data_.size(); ++i) {
      const bool here = !owners_[i] || *owners_[i] == rt_.rank();
      const bool at_home = has_memory_[i] && (!plan_.owners[i] || owners_[i] == plan_.owners[i]);
      if (here && at_home && (but == nullptr || !(*but)[i]) && !is_value(i, *oracle_.value(i)))
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
      job_.maybe_yield();
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
    check_flow();
    // What has memory of the program's is on its owner now, there or on a device.
    for (std::size_t i = 0; i < data_.size(); ++i) {
      const bool here = !owners_[i] || *owners_[i] == rt_.rank();
      const bool at_home = has_memory_[i] && (!plan_.owners[i] || owners_[i] == plan_.owners[i]);
      if (here && at_home && oracle_.value(i) != nullptr && !is_value(i, *oracle_.value(i)))
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

  void submit(std::size_t position, const Operation& operation) {
    const bool skips = !plan_.skips.empty() && plan_.skips[rt_.rank()][position];
    for_tasks_of(rt_, 0, 1, [&](std::size_t) { return !skips; },
                 [&](std::size_t) { submit_task<objects>(rt_, data_, position, operation); });
  }

  const Plan& plan_;
  Runtime& rt_;
  DeterministicJob& job_;
  Oracle oracle_;
  std::vector<Values> memory_;
  std::vector<std::optional<std::uint32_t>> owners_;
  std::vector<bool> has_memory_;
  AllData<objects> data_;
  struct Played {
    std::size_t operation = 0;
    std::uint64_t position = 0;  ///< in the flow, after it
    bool over = false;           ///< the flow had ended before
  };
  std::vector<Played> played_;  ///< since the last wait
};

}  // namespace

void play_program(const Plan& plan, Runtime& rt, DeterministicJob& job) {
  if (plan.objects) Program<true>(plan, rt, job).play();
  else Program<false>(plan, rt, job).play();
}

}  // namespace tandem::dist_test
