// tests/random_flow/player.cpp: worlds, submissions, and kernels of random flows.
#include "player.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <span>
#include <stdexcept>
#include <tuple>
#include <utility>

#include "fake_device.hpp"
#include "tandem/api/test_support.hpp"
#include "tandem/api/world.hpp"
#include "tandem/runtime/memory/spill_file.hpp"
#include "tandem/runtime/runtime_core.hpp"

namespace tandem::random_flow {

namespace {

using ValueTuple = std::tuple<Values>;

/// Takes part in the guards while a kernel runs: once for each datum, as writer if it writes.
class Guarded {
 public:
  Guarded(Guards& guards, const std::vector<Use>& uses, const std::vector<unsigned>& numbers) : guards_(guards) {
    for (std::size_t i = 0; i < uses.size(); ++i) {
      if (uses[i].mode == AccessMode::scratch || uses[i].mode == AccessMode::reduce) continue;
      auto at = std::find_if(held_.begin(), held_.end(), [&](const auto& held) { return held.first == numbers[i]; });
      if (at == held_.end()) at = held_.insert(held_.end(), {numbers[i], false});
      at->second = at->second || makes_value(uses[i].mode);
    }
    for (const auto& [number, writes] : held_) writes ? guards_.begin_writing(number) : guards_.begin_reading(number);
  }
  ~Guarded() {
    for (const auto& [number, writes] : held_) writes ? guards_.end_writing(number) : guards_.end_reading(number);
  }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;

 private:
  Guards& guards_;
  std::vector<std::pair<unsigned, bool>> held_;
};

Player* player_of(const runtime::KernelCall& call);

/// A codelet that knows who plays.
struct PlayedCore final : runtime::CodeletCore {
  PlayedCore(std::string codelet_name, Player& the_player) : CodeletCore(std::move(codelet_name)), player(the_player) {}
  Player& player;
};

Player* player_of(const runtime::KernelCall& call) {
  return &static_cast<const PlayedCore&>(*call.task.codelet).player;
}

void invoke(runtime::KernelCall& call) {
  const Values& values = std::get<0>(*static_cast<ValueTuple*>(call.task.values()));
  Player& player = *player_of(call);
  std::vector<Cells> cells;
  std::vector<unsigned> numbers;
  for (unsigned i = 0; i < call.task.access_count; ++i) {
    cells.push_back(Player::cells_of(call.memory(i), call.shape(i)));
    numbers.push_back(Player::number_of(*call.task.accesses()[i].handle()));
  }
  player.check_worker(call);
  player.check_private_copies(call, values.spec->uses);
  if (values.tag != "tag of " + values.spec->label)
    throw std::logic_error("the values of " + values.spec->label + " are damaged");
  const Guarded guarded(player.guards(), values.spec->uses, numbers);
  player.note_run(*values.spec);
  compute(values.spec->uses, values.factor, values.fault, values.spec->label, cells);
}

void destroy_values(runtime::Task& task) noexcept { static_cast<ValueTuple*>(task.values())->~ValueTuple(); }

void copy_values(runtime::Task& from, runtime::Task& to, bool construct) {
  if (!construct) destroy_values(to);
  new (to.values()) ValueTuple(*static_cast<ValueTuple*>(from.values()));
}

const runtime::TaskOps kOps{.invoke = &invoke,
                            .destroy_values = &destroy_values,
                            .copy_values = &copy_values,
                            .value_types = &typeid(ValueTuple),
                            .value_bytes = sizeof(ValueTuple),
                            .value_alignment = alignof(ValueTuple)};

Cells seen(const Word& word) { return {const_cast<Word*>(&word), 1, 1, 1}; }
Cells seen(std::span<const Word> span) { return {const_cast<Word*>(span.data()), span.size(), 1, span.size()}; }
Cells seen(MatrixView<const Word> view) { return {const_cast<Word*>(view.data), view.rows, view.cols, view.ld}; }

}  // namespace

namespace {

/// Spreads the workers over main memory and further NUMA nodes, each with the budget of main memory. Memory of the
/// program's lies on any of them.
void add_numa_nodes(runtime::World& world, unsigned workers, unsigned count) {
  std::vector<runtime::NodeIndex> nodes{0};
  while (nodes.size() < count) {
    const auto place = static_cast<unsigned>(nodes.size());
    nodes.push_back(world.add_memory({.kind = runtime::NodeKind::numa, .name = fmt::format("NUMA node {}", place),
                                      .budget = world.machine.nodes[0].budget, .numa_node = place},
                                     runtime::make_main_memory(), runtime::make_processor_copier()));
  }
  for (unsigned worker = 0; worker < workers; ++worker) world.machine.workers[worker].node = nodes[worker % count];
  world.numa_node_of = [count](const void*, std::size_t bytes) { return bytes / sizeof(Word) % (count + 1); };
}

/// Has no memory left for some of those who ask, drawn from a seed.
class RefusingMemory final : public runtime::MemoryNode {
 public:
  explicit RefusingMemory(std::uint64_t seed) : drawn_(seed) {}
  std::string name() const override { return "memory that refuses"; }
  void* allocate(std::size_t bytes) override {
    const std::uint64_t drawn = drawn_.fetch_add(0x9e3779b97f4a7c15ULL);
    return (drawn ^ drawn >> 31) % 4 == 0 ? nullptr : memory_->allocate(bytes);
  }
  void release(void* memory, std::size_t bytes) noexcept override { memory_->release(memory, bytes); }

 private:
  const std::unique_ptr<runtime::MemoryNode> memory_ = runtime::make_main_memory();
  std::atomic<std::uint64_t> drawn_;
};

std::unique_ptr<runtime::MemoryNode> device_memory(const FlowSetup& setup, unsigned device) {
  if (setup.refuses_memory) return std::make_unique<RefusingMemory>(setup.seed + device);
  return runtime::make_main_memory();
}

}  // namespace

std::string FlowSetup::described() const {
  return fmt::format(
      "RANDOM_FLOW_SEED={} ({}, {} workers, {} devices of depth {} and stretch {}{}{}{}, {}, window {}, {} tasks per "
      "step, the caller {}, {} bytes per device, {} bytes of main memory, {} NUMA nodes)",
      seed, threads ? "threads" : "event loop", workers, devices, depth, stretch, device_faults ? " that fail" : "",
      devices_at_home ? " in main memory" : "", refuses_memory ? " whose memory refuses" : "", sched, window,
      tasks_per_step, caller_works ? "works" : "does not work", device_bytes, main_bytes, numa_nodes);
}

void Guards::begin_reading(unsigned datum) {
  if (users_[datum].fetch_add(1) < 0) broken_.fetch_add(1);
}

void Guards::begin_writing(unsigned datum) {
  int free = 0;
  if (!users_[datum].compare_exchange_strong(free, kWriting)) broken_.fetch_add(1);
}

Player::Player(const FlowSetup& setup) : setup_(setup) {
  auto resources = test::test_resources();
  runtime::World world;
  runtime::CoreOptions options;
  if (setup.threads) {
    const auto config =
        test::test_config({.workers = setup.workers,
                           .sched = setup.sched,
                           .more = {{"bind", "false"}, {"caller", setup.caller_works ? "true" : "false"}}});
    world = make_real_world(config, *resources);
    options.poll_for_ns = setup.seed % 3 == 0 ? 0 : 20'000;
    network_ = std::make_unique<ThreadNetwork>(setup.seed);
    for (unsigned i = 0; i < setup.devices; ++i)
      world.machine.workers.push_back(
          {DeviceKind::user,
           world.add_memory(
               {.kind = runtime::NodeKind::device, .name = fmt::format("memory {}", i), .budget = setup.device_bytes},
               device_memory(setup, i), std::make_unique<NetworkCopier>(*network_))});
    world.machine.nodes[0].budget = setup.main_bytes;
    if (setup.main_bytes != 0) {
      const runtime::MachineNode storage{.kind = runtime::NodeKind::storage, .name = "storage"};
      if (setup.devices == 0 || setup.seed % 2 == 0) {
        auto [file, copier] = runtime::make_spill_file(testing::TempDir()).value();
        world.add_memory(storage, std::move(file), std::move(copier));
      } else {
        world.add_memory(storage, runtime::make_main_memory(), std::make_unique<NetworkCopier>(*network_));
      }
    }
  } else {
    world = make_test_world({.seed = setup.seed,
                             .workers = setup.workers,
                             .sched = setup.sched,
                             .devices = setup.devices,
                             .device_bytes = setup.device_bytes,
                             .main_bytes = setup.main_bytes},
                            *resources);
    world.caller_works = setup.caller_works;
    network_ = std::make_unique<LoopNetwork>(*resources->loop);
  }
  if (setup.numa_nodes > 1) add_numa_nodes(world, setup.workers, setup.numa_nodes);
  if (setup.depth != 0)
    for (unsigned i = 0; i < setup.devices; ++i) {
      world.set_device(setup.workers + i, make_device(i));
      if (setup.devices_at_home) world.machine.workers[setup.workers + i].node = 0;
    }
  options.window = setup.window;
  options.device_stretch = setup.stretch;
  options.tasks_per_step = setup.tasks_per_step;
  options.seed = setup.seed;
  // All whose duration is known count as memory-bound.
  if (setup.seed % 3 == 1)
    options.memory_gate = {.most = 1 + static_cast<unsigned>(setup.seed / 3 % 2), .most_beside_messages = 1};
  // Policies that look ahead take memory into account, and limit tasks by that.
  if (setup.seed % 3 != 0)
    options.memory_shares = {.core_bytes_per_ns = 1e-3, .stream_bytes_per_ns = 1e-3, .of_cores = {1, 1, 0.6},
                             .beside_messages = {1, 0.7, 0.4}, .of_streams = {1, 0.8, 0.3}};
  runtime_ = std::make_unique<Runtime>(std::move(resources), std::move(world), options);

  for (const char* name : {"cpu", "some_worker", "cpu_or_device", "device"}) {
    codelets_.push_back(std::make_shared<PlayedCore>(name, *this));
    if (codelets_.size() != 4) codelets_.back()->devices.push_back(DeviceKind::cpu);
    if (codelets_.size() >= 3) codelets_.back()->devices.push_back(DeviceKind::user);
    codelets_.back()->plain = codelets_.size() == 1;
  }
  codelets_[1]->can_run = [count = setup.workers](const WorkerDescription& worker) {
    return worker.device == DeviceKind::cpu && (worker.worker % 2 == 1 || count == 1);
  };
}

Player::~Player() { end(); }

void Player::end() {
  runtime_.reset();
  network_.reset();
}

void Player::breathe(unsigned most) {
  if (!setup_.threads) runtime_->resources().loop->step_some(most);
}

/// It is one that the codelet's predicate agrees to.
void Player::check_worker(const runtime::KernelCall& call) const {
  const auto& can_run = call.task.codelet->can_run;
  if (can_run && !can_run({call.worker, call.worker < setup_.workers ? DeviceKind::cpu : DeviceKind::user}))
    throw std::logic_error("a worker that cannot run it");
}

/// A device adds to copies in its own memory.
void Player::check_private_copies(const runtime::KernelCall& call, const std::vector<Use>& uses) const {
  for (unsigned i = 0; i < uses.size(); ++i)
    if (uses[i].mode == AccessMode::reduce &&
        (call.worker >= setup_.workers) != (call.task.accesses()[i].handle()->private_copy != nullptr))
      throw std::logic_error("a private copy of another kind");
}

void Player::note_run(TaskSpec& spec) {
  spec.runs.fetch_add(1, std::memory_order_relaxed);
  if (!setup_.threads) order_.push_back(spec.number);
}

runtime::Handle* Player::handle_of(const AnyData& data) {
  return std::visit([](const auto& typed) { return typed.handle(); }, data);
}

AnyData Player::add(const PlayedDatum& datum, unsigned number) {
  const std::string name = std::to_string(number);
  const auto init = [](auto&& view) {
    const Cells cells = seen(view);
    for (std::size_t i = 0; i < cells.size(); ++i) cells[i] = 0;
  };
  const auto combine = [](auto&& into, const auto& from) {
    const Cells to = seen(into);
    const Cells source = seen(from);
    for (std::size_t i = 0; i < to.size(); ++i) to[i] += source[i];
  };
  switch (datum.kind) {
    case DatumKind::scalar: {
      auto data = datum.owned ? runtime_->scalar<Word>(name) : runtime_->data(name, (*datum.memory)[0]);
      data.reduction(init, combine);
      return data;
    }
    case DatumKind::vector: {
      auto data = datum.owned ? runtime_->vector<Word>(name, datum.rows)
                              : runtime_->data(name, std::span<Word>(datum.memory->data(), datum.rows));
      data.reduction(init, combine);
      return data;
    }
    case DatumKind::matrix: break;
  }
  auto data = datum.owned
                  ? runtime_->matrix<Word>(name, datum.rows, datum.cols)
                  : runtime_->data(name, MatrixView<Word>{datum.memory->data(), datum.rows, datum.cols, datum.ld});
  data.reduction(init, combine);
  return data;
}

/// Both ways to hear of ends, several depths, and the first of two devices may be lost.
std::unique_ptr<Device> Player::make_device(unsigned number) {
  const DeviceManner manner{
      .depth = 1 + (setup_.depth - 1 + number) % 4,
      .wakes = (setup_.seed + number) % 2 == 0,
      .lost_after = setup_.device_faults && setup_.devices == 2 && number == 0 ? 1 + setup_.seed % 20 : 0,
      .in_order = setup_.stretch > 1,
      .times = setup_.seed % 5 < 3,
      .main_memory_is_limited = setup_.main_bytes != 0};
  return std::make_unique<FakeDevice>(
      *network_, number, manner, setup_.seed + number, [](const DeviceTask& task) -> FakeDevice::Plan {
        TaskSpec& spec = *std::get<0>(*static_cast<ValueTuple*>(task.task().values())).spec;
        return {.fault = spec.device_fault,
                .label = spec.label,
                .fails_anyway = spec.fails_on_devices(),
                .runs_behind_broken = &spec.runs_behind_broken};
      });
}

TaskRef Player::submit(TaskSpec& spec, const std::vector<runtime::Handle*>& handles,
                       const std::vector<TaskRef>& after) {
  runtime::RuntimeCore& core = runtime_->core();
  runtime::Task& task = core.submission().begin(codelets_[static_cast<std::size_t>(spec.where)], kOps,
                                                static_cast<unsigned>(handles.size()));
  new (task.values()) ValueTuple(Values{&spec, spec.factor, spec.fault, "tag of " + spec.label});
  for (unsigned i = 0; i < handles.size(); ++i) task.accesses()[i].set(handles[i], spec.uses[i].mode);
  task.priority = spec.priority;
  if (spec.with_callback) {
    core.submission().extra_of(task).callback = [&spec] {
      spec.callbacks.fetch_add(1, std::memory_order_relaxed);
      if (spec.fault == Fault::callback) throw Thrown(spec.label);
    };
  }
  if (after.empty()) return core.submission().submit(task);
  return core.submission().submit_after(task, after.data(), after.size());
}

bool Player::can_be_typed(const std::vector<Use>& uses) {
  if (uses.size() == 1) return true;
  return uses.size() == 2 && uses[0].mode == AccessMode::read && uses[1].mode != AccessMode::read &&
         uses[1].mode != AccessMode::scratch;
}

template <class... Accesses>
TaskRef Player::submit_with(TaskSpec& spec, const std::vector<TaskRef>& after, const Accesses&... accesses) {
  static const auto kernel = [](Player* player, TaskSpec* task, Word factor, const std::string& tag, auto&&... views) {
    std::vector<unsigned> numbers;
    for (const Use& use : task->uses) numbers.push_back(use.datum);
    if (tag != "tag of " + task->label) throw std::logic_error("the values of " + task->label + " are damaged");
    const Guarded guarded(player->guards(), task->uses, numbers);
    player->note_run(*task);
    const Cells cells[] = {seen(views)...};
    compute(task->uses, factor, task->fault, task->label, cells);
  };
  TaskOptions options;
  options.priority = spec.priority;
  options.name = spec.label;
  options.after = after;
  if (spec.with_callback) {
    options.callback = [&spec] {
      spec.callbacks.fetch_add(1, std::memory_order_relaxed);
      if (spec.fault == Fault::callback) throw Thrown(spec.label);
    };
  }
  // The codelet goes before its task runs.
  const Codelet codelet("typed", kernel);
  return runtime_->submit(options, codelet, this, &spec, spec.factor, "tag of " + spec.label, accesses...);
}

TaskRef Player::submit_typed(TaskSpec& spec, const std::vector<const AnyData*>& data,
                             const std::vector<TaskRef>& after) {
  const auto with_last = [&](AccessMode mode, const auto& last, const auto&... first) {
    switch (mode) {
      case AccessMode::write: return submit_with(spec, after, first..., write(last));
      case AccessMode::read_write: return submit_with(spec, after, first..., read_write(last));
      case AccessMode::commute: return submit_with(spec, after, first..., commute(last));
      case AccessMode::reduce: return submit_with(spec, after, first..., reduce(last));
      default: break;
    }
    if constexpr (sizeof...(first) == 0) {
      if (mode == AccessMode::read) return submit_with(spec, after, read(last));
      return submit_with(spec, after, scratch(last));
    }
    throw std::logic_error("not for typed submission");
  };
  const AccessMode mode = spec.uses.back().mode;
  if (data.size() == 1) return std::visit([&](const auto& last) { return with_last(mode, last); }, *data[0]);
  return std::visit([&](const auto& first, const auto& last) { return with_last(mode, last, read(first)); }, *data[0],
                    *data[1]);
}

template <class... Accesses>
TaskRef Player::start_event(TaskSpec& spec, Release release, unsigned manner,
                            const std::vector<runtime::Handle*>& handles, const Accesses&... accesses) {
  struct Progress {
    std::atomic<int> missing{2};
    const Word* place = nullptr;   ///< of what was written, between the two completions
    std::vector<Word> written = {};
  };
  const auto start = [this, &spec, release, manner, handles](Event event) mutable {
    note_run(spec);
    for (std::size_t i = 0; i < handles.size(); ++i)
      makes_value(spec.uses[i].mode) ? guards_.begin_writing(spec.uses[i].datum)
                                     : guards_.begin_reading(spec.uses[i].datum);
    const auto progress = std::make_shared<Progress>();
    // The first completion leaves what was written readable, the last one gives it up.
    const auto leave_written = [this, &spec, progress] {
      const bool last = progress->missing.fetch_sub(1) == 1;
      for (const Use& use : spec.uses)
        if (makes_value(use.mode) && last) guards_.end_reading(use.datum);
    };
    auto readable = [this, &spec, release, handles, event, leave_written, progress]() mutable {
      std::exception_ptr failure;
      try {
        std::vector<Cells> cells;
        for (runtime::Handle* handle : handles) cells.push_back(cells_of(handle->home, handle->shape));
        compute(spec.uses, spec.factor, spec.fault, spec.label, cells);
        progress->place = cells[0].data;
        for (std::size_t i = 0; i < cells[0].size(); ++i) progress->written.push_back(cells[0][i]);
      } catch (...) {
        failure = std::current_exception();
      }
      for (const Use& use : spec.uses)
        makes_value(use.mode) ? guards_.write_to_read(use.datum) : guards_.end_reading(use.datum);
      leave_written();
      if (release == Release::with_readable) leave_written();
      event.readable(failure);
    };
    auto released = [this, event, handles, leave_written, progress]() mutable {
      if (progress->place != nullptr) {  // until here it is where it was, and as it was
        const Cells now = cells_of(handles[0]->home, handles[0]->shape);
        bool is_same = now.data == progress->place;
        for (std::size_t i = 0; is_same && i < now.size(); ++i) is_same = now[i] == progress->written[i];
        if (!is_same) guards_.note_broken();
      }
      leave_written();
      event.released();
    };
    const bool at_once = manner % 4 == 0;
    if (at_once) readable();
    else network_->post(std::move(readable));
    if (release == Release::separate) network_->post(std::move(released));
  };
  return runtime_->event(spec.label, release, start, accesses...).task();
}

TaskRef Player::submit_event(TaskSpec& spec, const std::vector<const AnyData*>& data, Release release,
                             unsigned manner) {
  std::vector<runtime::Handle*> handles;
  for (const AnyData* datum : data) handles.push_back(handle_of(*datum));
  const auto with = [&](const auto& first, const auto&... more) {
    switch (spec.uses[0].mode) {
      case AccessMode::read: return start_event(spec, release, manner, handles, read(first), more...);
      case AccessMode::write: return start_event(spec, release, manner, handles, write(first), more...);
      default: return start_event(spec, release, manner, handles, read_write(first), more...);
    }
  };
  if (data.size() == 1) return std::visit([&](const auto& first) { return with(first); }, *data[0]);
  return std::visit([&](const auto& first, const auto& second) { return with(first, read(second)); }, *data[0],
                    *data[1]);
}

}  // namespace tandem::random_flow
