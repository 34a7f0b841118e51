// tests/random_flow/random_flow.cpp: draws a flow, plays it on both sides, compares.
#include "random_flow.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "tandem/device.hpp"
#include "tandem/runtime/runtime_core.hpp"
#include "tandem/runtime/sched/placing/placer.hpp"

namespace tandem::random_flow {

namespace {

/// What the flow does, line by line, with RANDOM_FLOW_VERBOSE=1.
template <class... Args>
void say(fmt::format_string<Args...> format, Args&&... args) {
  static const bool verbose = std::getenv("RANDOM_FLOW_VERBOSE") != nullptr;
  if (verbose) fmt::print(stderr, "{}\n", fmt::format(format, std::forward<Args>(args)...));
}

std::string described(const TaskSpec& spec, const std::vector<Use>& uses, Failure* failure) {
  std::string text = spec.label;
  for (const Use& use : uses) text += fmt::format(" {}({})", name_of(use.mode), use.datum);
  if (spec.fault != Fault::none) text += " throws";
  if (spec.fails_on_devices()) text += " fails on devices";
  if (failure != nullptr) text += " -> " + failure->label;
  return text;
}

template <class Container>
std::vector<runtime::Handle*> handles_of(const Container& data, const std::vector<Use>& uses) {
  std::vector<runtime::Handle*> handles;
  for (const Use& use : uses) handles.push_back(Player::handle_of(data[use.datum].data));
  return handles;
}

}  // namespace

namespace {
constexpr unsigned kMostRows = 5;
constexpr unsigned kMostCols = 4;
constexpr unsigned kLargestBytes = kMostRows * kMostCols * sizeof(Word);
}  // namespace

FlowSetup draw_setup(std::uint64_t seed, bool threads) {
  std::mt19937_64 random(seed * 2 + (threads ? 1 : 0));
  const auto draw = [&](unsigned below) { return static_cast<unsigned>(random() % below); };
  static const char* const kSchedulers[] = {"lws", "prio", "eager", "random"};
  static const std::uint64_t kWindows[] = {1, 2, 3, 17, 64, 32'768, 32'768};
  FlowSetup setup;
  setup.seed = seed;
  setup.threads = threads;
  setup.workers = 1 + draw(5);
  setup.devices = draw(2) == 0 ? 1 + draw(2) : 0;
  setup.sched = kSchedulers[draw(4)];
  setup.window = kWindows[draw(7)];
  setup.tasks_per_step = draw(2) == 0 ? 1 : 1 + draw(200);
  setup.caller_works = draw(5) != 0;
  if (setup.devices != 0 && draw(4) != 0) {
    setup.depth = 1 + draw(4);
    setup.device_faults = draw(2) == 0;
  }
  // Two of the largest data fit, and not all others beside them.
  if (setup.devices != 0 && draw(2) == 0) setup.device_bytes = 2 * kLargestBytes + draw(kLargestBytes);
  if (draw(4) == 0) setup.main_bytes = 2 * kLargestBytes + draw(kLargestBytes);
  static const char* const kPlacing[] = {"dm", "dmda", "dmdas", "heteroprio", "darts", "plan", "dmdar"};
  if (setup.devices != 0 && draw(2) == 0) setup.sched = kPlacing[draw(std::size(kPlacing))];
  if (setup.workers > 1 && (setup.main_bytes == 0 ? draw(3) : setup.seed % 3) == 0) {
    setup.numa_nodes = 2 + draw(std::min(setup.workers - 1, 2U));
    if (draw(2) == 0) setup.sched = kPlacing[draw(std::size(kPlacing))];
  }
  if (setup.depth != 0 && seed / 2 % 3 != 0) setup.stretch = 2 + static_cast<unsigned>(seed % 13);
  setup.devices_at_home = setup.depth != 0 && setup.device_bytes == 0 && draw(4) == 0;
  setup.refuses_memory = threads && setup.depth != 0 && !setup.device_faults && !setup.devices_at_home && seed % 3 == 0;
  return setup;
}

RandomFlow::RandomFlow(const FlowSetup& setup)
    : setup_(setup), random_(setup.seed), random_of_parts_(setup.seed * 769 + 5), player_(setup) {
  const unsigned count = 2 + draw(5);
  for (unsigned i = 0; i < count; ++i) slots_.push_back(add_datum(nullptr, nullptr));
}

Outcome RandomFlow::play(unsigned length) {
  Outcome outcome;
  try {
    for (unsigned left = length; left > 0; --left) {
      step(left);
      if (chance(50)) player_.breathe(6);
    }
    finish();
  } catch (const Mistake& found) {
    outcome.mistake = found.text;
  } catch (const std::exception& error) {
    outcome.mistake = fmt::format("unexpected exception: {}", error.what());
  }
  if (player_.guards().broken() != 0)
    outcome.mistake += fmt::format("; {} forbidden overlaps", player_.guards().broken());
  held_scalar_.reset();
  held_vector_.reset();
  graphs_.clear();
  player_.end();
  outcome.order = player_.order();
  return outcome;
}

void RandomFlow::step(unsigned left) {
  if (hold_left_ != 0) {
    if (--hold_left_ == 0 || left == 1) return release_held();
    return submit_kernel();
  }
  if (setup_.seed % 4 < 2 && random_of_parts_() % 30 == 0) return divide();
  const unsigned what = draw(1000);
  if (what < 620) submit_kernel();
  else if (what < 680) submit_event();
  else if (what < 720) acquire(false);
  else if (what < 740) acquire(true);
  else if (what < 755) wait_for_all();
  else if (what < 785) wait_for_task();
  else if (what < 810) wait_for_data();
  else if (what < 830) register_again();
  else if (what < 850) replace_data();
  else if (what < 870) copy_handles();
  else if (what < 890) record();
  else if (what < 965) replay();
  else if (what < 995) change_graph();
  else drop_graph();
}

// --- data

unsigned RandomFlow::add_datum(std::vector<Word>* memory, const PlayedDatum* like) {
  PlayedDatum datum;
  if (like != nullptr) {
    datum = PlayedDatum{like->kind, like->rows, like->cols, like->ld, like->owned, true, nullptr, {}};
  } else {
    datum.kind = static_cast<DatumKind>(draw(3));
    if (datum.kind != DatumKind::scalar) datum.rows = setup_.limited() ? kMostRows : draw(kMostRows + 1);
    if (datum.kind == DatumKind::matrix) datum.cols = setup_.limited() ? kMostCols : draw(kMostCols + 1);
    datum.ld = datum.rows + (datum.kind == DatumKind::matrix ? draw(3) : 0);
    datum.owned = chance(setup_.main_bytes != 0 ? 80 : 35);
  }
  if (datum.owned) {
    datum.ld = datum.rows;
  } else if (memory == nullptr) {
    memory = &memories_.emplace_back(std::max<std::size_t>(1, datum.ld * datum.cols));
    for (Word& word : *memory) word = random_();
  }
  datum.memory = memory;
  const unsigned number = model_.add(datum.rows, datum.cols, !datum.owned);
  if (!datum.owned) {
    const Cells view = model_.datum(number).view();
    for (std::size_t i = 0; i < view.size(); ++i) view[i] = datum.home()[i];
  }
  datum.data = player_.add(datum, number);
  data_.push_back(std::move(datum));
  return number;
}

void RandomFlow::register_again() {
  const auto at = draw(static_cast<unsigned>(slots_.size()));
  const unsigned number = slots_[at];
  PlayedDatum& datum = data_[number];
  if (datum.owned) return;
  say("unregister {}", number);
  model_.throws(nullptr);
  model_.close(number);
  std::visit([](auto& data) { data.unregister(); }, datum.data);
  datum.registered = false;
  if (model_.datum(number).poison == nullptr) compare(number, datum.home(), "after unregister");
  slots_[at] = add_datum(datum.memory, &datum);
}

void RandomFlow::replace_data() {
  const auto at = draw(static_cast<unsigned>(slots_.size()));
  const unsigned number = slots_[at];
  PlayedDatum& datum = data_[number];
  say("drop {}", number);
  if (!datum.owned) {
    model_.throws(nullptr);
    model_.close(number);
    datum.registered = false;
  }
  datum.data = AnyData();  // the last owner goes, but for recorded graphs
  if (!datum.owned && model_.datum(number).poison == nullptr)
    compare(number, datum.home(), "after its last handle went");
  slots_[at] = add_datum(nullptr, nullptr);
}

void RandomFlow::copy_handles() {
  PlayedDatum& datum = data_[pick_slot()];
  std::visit(
      [](auto& data) {
        auto copy = data;
        const auto second = copy;
        data = std::move(copy);
      },
      datum.data);
}

// --- tasks

std::vector<bool> RandomFlow::values_now() const {
  std::vector<bool> values;
  for (unsigned number = 0; number < data_.size(); ++number) values.push_back(model_.datum(number).has_value);
  return values;
}

std::vector<Use> RandomFlow::draw_uses(const std::vector<bool>& has_value) {
  std::vector<Use> uses;
  const unsigned count = chance(4) ? 0 : setup_.limited() ? 1 + draw(2) : chance(8) ? 4 + draw(2) : 1 + draw(3);
  for (unsigned i = 0; i < count; ++i) {
    const unsigned number = pick_slot();
    AccessMode mode = static_cast<AccessMode>(draw(6));
    if (!has_value[number] && mode != AccessMode::scratch) mode = AccessMode::write;
    const auto simple = [](AccessMode m) {
      return m == AccessMode::read || m == AccessMode::write || m == AccessMode::read_write;
    };
    bool fits = true;
    for (const Use& use : uses) {
      if (use.datum != number) continue;
      // Twice in one task: with simple modes only, and not both to write without a value.
      fits = fits && simple(use.mode) && simple(mode) && has_value[number] && chance(30);
    }
    if (fits) uses.push_back({mode, number});
  }
  return uses;
}

TaskSpec& RandomFlow::draw_task(const std::vector<Use>& uses, const std::string& label, bool recorded) {
  TaskSpec& spec = specs_.emplace_back();
  spec.number = static_cast<unsigned>(specs_.size() - 1);
  spec.label = label;
  spec.uses = uses;
  spec.factor = random_();
  spec.priority = static_cast<int>(draw(7)) - 3;
  spec.with_callback = chance(15);
  spec.where = static_cast<Where>(chance(recorded ? 80 : setup_.depth != 0 ? 40 : 70) ? 0 : draw(4));
  if ((setup_.devices == 0 || setup_.refuses_memory) && spec.where == Where::device) spec.where = Where::cpu_or_device;
  if (setup_.device_faults && spec.where >= Where::cpu_or_device &&
      chance(spec.where == Where::cpu_or_device ? 40
             : setup_.stretch > 1               ? 15
                                                : 5))
    spec.device_fault = static_cast<DeviceFault>(1 + draw(3));
  // Meanwhile a copy in a limited main memory may leave, and the task would fail.
  if (setup_.main_bytes != 0 && spec.device_fault == DeviceFault::broken && !spec.fails_on_devices())
    spec.device_fault = DeviceFault::refused_later;
  if (chance(5))
    spec.fault = chance(50) ? Fault::before : spec.with_callback && !recorded ? Fault::callback : Fault::halfway;
  return spec;
}

std::vector<RandomFlow::Done> RandomFlow::draw_predecessors(Failure** failure) {
  std::vector<Done> predecessors;
  if (done_.empty() || !chance(12)) return predecessors;
  for (unsigned count = 1 + draw(3); count > 0; --count) {
    const auto reach = std::min<unsigned>(static_cast<unsigned>(done_.size()), chance(80) ? 8 : 1000);
    predecessors.push_back(done_[done_.size() - 1 - draw(reach)]);
    *failure = Model::earliest(*failure, model_.end_of(predecessors.back().key));
  }
  return predecessors;
}

void RandomFlow::submit_kernel() {
  const std::vector<Use> uses = draw_uses(values_now());
  TaskSpec& spec = draw_task(uses, fmt::format("t{}", specs_.size()), false);
  const bool is_typed = Player::can_be_typed(uses) && chance(30);
  if (is_typed) spec.where = Where::cpu;
  Failure* after = nullptr;
  std::vector<TaskRef> refs;
  for (const Done& done : draw_predecessors(&after)) refs.push_back(done.ref);
  const unsigned key = ++keys_;
  Failure* end = model_.run(spec, uses, spec.factor, spec.fault, after);
  model_.note_end(key, end);
  say("{} key {} after {}", described(spec, uses, end), key, after != nullptr ? after->label : "");
  TaskRef ref;
  if (is_typed) {
    std::vector<const AnyData*> data;
    for (const Use& use : uses) data.push_back(&data_[use.datum].data);
    ref = player_.submit_typed(spec, data, refs);
  } else {
    ref = player_.submit(spec, handles_of(data_, uses), refs);
  }
  done_.push_back({ref, key});
}

void RandomFlow::submit_event() {
  const std::vector<bool> values = values_now();
  std::vector<Use> uses{{static_cast<AccessMode>(draw(3)), pick_slot()}};
  if (!values[uses[0].datum]) uses[0].mode = AccessMode::write;
  const unsigned second = pick_slot();
  if (chance(40) && second != uses[0].datum && values[second]) uses.push_back({AccessMode::read, second});
  TaskSpec& spec = draw_task(uses, fmt::format("e{}", specs_.size()), false);
  spec.with_callback = false;
  spec.where = Where::cpu;
  if (spec.fault == Fault::callback) spec.fault = Fault::halfway;
  const unsigned key = ++keys_;
  Failure* end = model_.run(spec, uses, spec.factor, spec.fault, nullptr);
  model_.note_end(key, end);
  say("event {} key {}", described(spec, uses, end), key);
  std::vector<const AnyData*> data;
  for (const Use& use : uses) data.push_back(&data_[use.datum].data);
  const bool separate = setup_.main_bytes == 0 ? chance(50) : spec.factor % 2 == 0;
  const Release release = separate && makes_value(uses[0].mode) ? Release::separate : Release::with_readable;
  done_.push_back({player_.submit_event(spec, data, release, draw(8)), key});
}

// --- the application's own accesses, and waits

void RandomFlow::expect(Failure* failure, const char* what, const std::function<void()>& action) {
  const std::string expected = failure != nullptr ? failure->label : "nothing";
  say("{} -> {}", what, expected);
  std::string thrown = "nothing";
  try {
    action();
  } catch (const Thrown& error) {
    thrown = error.what();
  } catch (const DeviceError& error) {  // "task ... on fake 1: t7"
    thrown = std::string(error.what());
    thrown = thrown.substr(thrown.rfind(": ") + 2);
  }
  if (thrown != expected) throw mistake(fmt::format("{} threw {} instead of {}", what, thrown, expected));
}

void RandomFlow::acquire(bool hold) {
  const unsigned number = pick_slot();
  PlayedDatum& datum = data_[number];
  Model::Datum& model = model_.datum(number);
  // The window must have room for the tasks that wait for what is held.
  hold = hold && setup_.main_bytes == 0 && setup_.window >= 64 && datum.kind != DatumKind::matrix;
  if (hold || !model.has_value || chance(30)) {
    say("acquire to write {}", number);
    model_.overwrite(number);
    std::visit(
        [&](auto& data) {
          auto access = player_.runtime().acquire(write(data));
          const Word fresh = random_();
          const auto cells = Player::cells_of(data.handle()->home, data.handle()->shape);
          for (std::size_t i = 0; i < cells.size(); ++i) cells[i] = fresh + i;
          for (std::size_t i = 0; i < cells.size(); ++i) model.view()[i] = fresh + i;
          if (!hold) return;
          hold_left_ = 2 + draw(4);
          using Held = std::decay_t<decltype(data)>;
          if constexpr (std::is_same_v<Held, Data<Word>>) held_scalar_.emplace(std::move(access));
          else if constexpr (std::is_same_v<Held, Data<Vector<Word>>>) held_vector_.emplace(std::move(access));
        },
        datum.data);
    return;
  }
  const bool change = chance(40);
  Failure* failure = model_.see(number);
  say("acquire {}", number);
  expect(failure, "acquire", [&] {
    std::visit(
        [&](auto& data) {
          if (!change) {
            auto access = player_.runtime().acquire(read(data));
            return compare(number, Player::cells_of(data.handle()->home, data.handle()->shape), "while acquired");
          }
          auto access = player_.runtime().acquire(read_write(data));
          const auto cells = Player::cells_of(data.handle()->home, data.handle()->shape);
          compare(number, cells, "while acquired");
          if (cells.size() != 0) model.view()[0] = cells[0] += 7;
        },
        datum.data);
  });
}

void RandomFlow::release_held() {
  hold_left_ = 0;
  held_scalar_.reset();
  held_vector_.reset();
}

void RandomFlow::wait_for_all() {
  Failure* failure = model_.wait_all();
  expect(failure, "wait()", [&] { player_.runtime().wait(); });
  compare_counts();
}

void RandomFlow::wait_for_task() {
  if (done_.empty()) return;
  const auto reach = std::min<unsigned>(static_cast<unsigned>(done_.size()), 12);
  const Done done = done_[done_.size() - 1 - draw(reach)];
  say("wait for key {}", done.key);
  Failure* failure = model_.throws(model_.end_of(done.key));
  expect(failure, "wait(task)", [&] { player_.runtime().wait(done.ref); });
}

void RandomFlow::wait_for_data() {
  const unsigned number = pick_slot();
  PlayedDatum& datum = data_[number];
  Model::Datum& model = model_.datum(number);
  if (!model.has_value) {
    say("wait for unwritten {}", number);
    model_.throws(nullptr);
    std::visit([&](auto& data) { player_.runtime().wait(data); }, datum.data);
    return;
  }
  Failure* failure = model_.see(number);
  say("wait for datum {}", number);
  expect(failure, "wait(data)", [&] { std::visit([&](auto& data) { player_.runtime().wait(data); }, datum.data); });
  if (failure == nullptr && !datum.owned) compare(number, datum.home(), "after wait(data)");
}

// --- recorded graphs

void RandomFlow::record() {
  if (graphs_.size() >= 3) return drop_graph();
  say("record");
  model_.throws(nullptr);
  model_.close_all();
  auto played = std::make_unique<PlayedGraph>();
  const unsigned recording = recordings_++;
  std::vector<bool> values = values_now();
  if (chance(30)) values.assign(values.size(), true);  // replayed only when there are values by then
  // What the runtime cannot know to have a value must be written first, in the recording too.
  for (unsigned number = 0; number < values.size(); ++number)
    values[number] = values[number] && model_.datum(number).has_value;
  played->graph = player_.runtime().record([&] {
    for (unsigned count = 1 + draw(12); count > 0; --count) {
      RecordedTask& task = played->tasks.emplace_back();
      task.uses = draw_uses(values);
      for (const Use& use : task.uses)
        if (makes_value(use.mode)) values[use.datum] = true;
      task.spec = &draw_task(task.uses, fmt::format("g{}.{}", recording, played->tasks.size() - 1), true);
      if (task.spec->fault == Fault::callback) task.spec->fault = Fault::before;
      task.factor = task.spec->factor;
      task.fault = task.spec->fault;
      std::vector<TaskRef> refs;
      if (played->tasks.size() > 1 && chance(15)) {
        task.after.push_back(draw(static_cast<unsigned>(played->tasks.size() - 1)));
        refs.push_back(played->tasks[task.after[0]].ref);
      }
      task.ref = player_.submit(*task.spec, handles_of(data_, task.uses), refs);
    }
  });
  graphs_.push_back(std::move(played));
}

bool RandomFlow::can_replay(const PlayedGraph& graph) const {
  std::vector<bool> values = values_now();
  for (const RecordedTask& task : graph.tasks) {
    for (const Use& use : task.uses) {
      if (!data_[use.datum].registered) return false;
      if ((sees_value(use.mode) || use.mode == AccessMode::reduce) && !values[use.datum]) return false;
    }
    for (const Use& use : task.uses)
      if (makes_value(use.mode)) values[use.datum] = true;
  }
  return true;
}

void RandomFlow::replay() {
  if (graphs_.empty()) return;
  PlayedGraph& played = *graphs_[draw(static_cast<unsigned>(graphs_.size()))];
  if (!can_replay(played)) return;
  model_.throws(nullptr);
  const auto close_used = [&] {
    Failure* failure = nullptr;
    for (const RecordedTask& task : played.tasks)
      for (const Use& use : task.uses)
        if (use.mode != AccessMode::scratch) failure = Model::earliest(failure, model_.close(use.datum));
    return failure;
  };
  close_used();
  Failure* any = nullptr;
  std::vector<Failure*> ends;
  for (RecordedTask& task : played.tasks) {
    Failure* after = nullptr;
    for (const unsigned before : task.after) after = Model::earliest(after, ends[before]);
    // A combination inside the recording that fails counts for the whole replay.
    for (const Use& use : task.uses)
      if (use.mode != AccessMode::reduce && use.mode != AccessMode::scratch)
        any = Model::earliest(any, model_.close(use.datum));
    ends.push_back(model_.run(*task.spec, task.uses, task.factor, task.fault, after));
    say("  replayed {}", described(*task.spec, task.uses, ends.back()));
    any = Model::earliest(any, ends.back());
  }
  any = Model::earliest(any, close_used());
  const unsigned key = ++keys_;
  say("  replay has key {} -> {}", key, any != nullptr ? any->label : "");
  model_.note_end(key, any);
  done_.push_back({player_.runtime().replay(played.graph), key});
}

void RandomFlow::change_graph() {
  if (graphs_.empty()) return;
  PlayedGraph& played = *graphs_[draw(static_cast<unsigned>(graphs_.size()))];
  RecordedTask& task = played.tasks[draw(static_cast<unsigned>(played.tasks.size()))];
  const unsigned what = draw(3);
  if (what == 0) {
    task.factor = random_();
    if (chance(30)) task.fault = task.fault == Fault::none && chance(30) ? Fault::before : Fault::none;
    Player::change(played.graph, task.ref, Values{task.spec, task.factor, task.fault, "tag of " + task.spec->label});
  } else if (what == 1) {
    played.graph.set_priority(task.ref, static_cast<int>(draw(9)) - 4);
  } else {
    const auto used = [&](unsigned number) {
      for (const RecordedTask& other : played.tasks)
        for (const Use& use : other.uses)
          if (use.datum == number) return use.mode != AccessMode::scratch ? 1 : 2;
      return 0;
    };
    const auto only_scratch = [&](unsigned number) {
      for (const RecordedTask& other : played.tasks)
        for (const Use& use : other.uses)
          if (use.datum == number && use.mode != AccessMode::scratch) return false;
      return true;
    };
    if (task.uses.empty()) return;
    const unsigned from = task.uses[0].datum;
    if (Player::handle_of(data_[from].data) == nullptr || only_scratch(from)) return;
    for (const unsigned to : slots_) {
      const PlayedDatum& a = data_[from];
      const PlayedDatum& b = data_[to];
      if (used(to) != 0 || a.kind != b.kind || a.rows != b.rows || a.cols != b.cols) continue;
      switch (a.kind) {
        case DatumKind::scalar: played.graph.rebind(std::get<0>(a.data), std::get<0>(b.data)); break;
        case DatumKind::vector: played.graph.rebind(std::get<1>(a.data), std::get<1>(b.data)); break;
        case DatumKind::matrix: played.graph.rebind(std::get<2>(a.data), std::get<2>(b.data)); break;
      }
      for (RecordedTask& other : played.tasks)
        for (Use& use : other.uses)
          if (use.datum == from) use.datum = to;
      return;
    }
  }
}

void RandomFlow::drop_graph() {
  if (graphs_.empty()) return;
  model_.throws(nullptr);
  graphs_.erase(graphs_.begin() + draw(static_cast<unsigned>(graphs_.size())));
}

// --- comparison

void RandomFlow::compare(unsigned number, const Cells& cells, const char* when) {
  const Cells expected = model_.datum(number).view();
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (cells[i] == expected[i]) continue;
    throw mistake(fmt::format("datum {} {}: element {} of {} is {} instead of {}", number, when, i, expected.size(),
                              cells[i], expected[i]));
  }
}

void RandomFlow::compare_counts() {
  for (const TaskSpec& spec : specs_) {
    if (spec.runs.load() < spec.expected_runs || spec.runs.load() > spec.expected_runs + spec.runs_behind_broken.load())
      throw mistake(fmt::format("{} ran {} times instead of {}", spec.label, spec.runs.load(), spec.expected_runs));
    if (spec.callbacks.load() != spec.expected_callbacks)
      throw mistake(fmt::format("the callback of {} ran {} times instead of {}", spec.label, spec.callbacks.load(),
                                spec.expected_callbacks));
  }
}

void RandomFlow::finish() {
  release_held();
  wait_for_all();
  for (const unsigned number : slots_) {
    if (!model_.datum(number).has_value) continue;
    Failure* failure = model_.see(number);
    expect(failure, "acquire at the end", [&] {
      std::visit(
          [&](auto& data) {
            auto access = player_.runtime().acquire(read(data));
            compare(number, Player::cells_of(data.handle()->home, data.handle()->shape), "at the end");
          },
          data_[number].data);
    });
  }
  if (player_.runtime().core().executor().queues().size() != 0) throw mistake("tasks are left in the queues");
  if (const auto* const placer = player_.runtime().core().executor().placer()) {
    if (!placer->check_invariants()) throw mistake("the loads of workers do not add up");
    for (const std::uint32_t tasks : placer->charged())
      if (tasks != 0) throw mistake("a worker is charged with tasks that have ended");
  }
  if (chance(50)) return;
  // Users' data comes home when the runtime goes.
  graphs_.clear();
  player_.end();
  for (const unsigned number : slots_) {
    const PlayedDatum& datum = data_[number];
    if (!datum.owned && model_.datum(number).poison == nullptr)
      compare(number, datum.home(), "after the runtime's end");
  }
}

}  // namespace tandem::random_flow
