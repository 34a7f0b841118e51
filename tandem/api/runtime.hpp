// tandem/api/runtime.hpp: what users hold in their hands: the runtime, its data, its tasks.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <source_location>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tandem/api/codelet.hpp"
#include "tandem/api/data.hpp"
#include "tandem/api/options.hpp"
#include "tandem/api/serialize.hpp"
#include "tandem/api/trace.hpp"
#include "tandem/api/world.hpp"
#include "tandem/base/blas_threads.hpp"
#include "tandem/dist/flow.hpp"
#include "tandem/runtime/record/graph.hpp"

namespace tandem {

using runtime::StatisticsReport;
using runtime::TaskRef;
using runtime::TimelineEvent;

/// What a program may say of data beside its name, shape and memory.
struct DataOptions {
  /// The rank that has the memory and runs the tasks that write the data. None: each rank has the data for itself, and tasks that
  /// write it run on every rank.
  std::optional<std::uint32_t> owner = {};
  /// Of an object: about how many bytes it takes when it travels, the same on all ranks. Option `copies` and the placement of
  /// tasks count with it; what it really takes may be more or less. 0: the size of its type.
  std::size_t bytes = 0;
  std::source_location where = std::source_location::current();
};

/// What a submit may say of its task beside the codelet and its arguments.
struct TaskOptions {
  int priority = 0;                          ///< higher first; also of the messages that bring what the task sees
  std::string_view name = {};                ///< instead of the codelet's, in messages
  std::function<void()> callback = {};       ///< called on the worker when the kernel has ended without throwing
  std::vector<TaskRef> after = {};           ///< tasks of this rank that come first, whatever data they use
  std::optional<std::uint32_t> on = {};      ///< the rank that runs it, instead of the owner of what it writes
  std::source_location where = std::source_location::current();
};

/// The application's own access to data: data stays as it is for the tasks around until this goes, or `release` is called.
template <class View>
class Acquired {
 public:
  Acquired(std::unique_ptr<runtime::ApplicationAccess> access, View view) : access_(std::move(access)), view_(view) {}
  Acquired(Acquired&&) noexcept = default;
  ~Acquired() { release(); }

  auto& operator*() noexcept { return view_; }
  auto* operator->() noexcept { return &view_; }
  void release() noexcept {
    if (access_ != nullptr) access_->runtime->release(*access_);
    access_.reset();
  }

 private:
  std::unique_ptr<runtime::ApplicationAccess> access_;
  View view_;
};

/// A node of the graph that something outside completes: a message, a device.
class Event {
 public:
  /// Tasks that read what the event writes may start. Any thread; once.
  void readable(std::exception_ptr failure = nullptr) {
    if (core_ != nullptr) core_->complete(tasks_.readable, std::move(failure));
  }
  /// Tasks that overwrite it may start too. Any thread; once, for events made with `Release::separate`.
  void released() {
    if (core_ != nullptr) core_->complete(tasks_.released);
  }

  TaskRef task() const noexcept { return tasks_.readable; }
  /// False: it takes place on another rank, or came after the end of a cancelled flow.
  bool is_here() const noexcept { return core_ != nullptr; }

 private:
  friend class Runtime;
  runtime::RuntimeCore* core_ = nullptr;
  runtime::RuntimeCore::EventTasks tasks_;
};

enum class Release { with_readable, separate };

/// A recorded flow. Must go before its runtime.
class Graph {
 public:
  /// Of all ranks.
  std::size_t task_count() const noexcept { return recording_ != nullptr ? recording_->task_count() : graph_->task_count() - 1; }

  /// Other values for a recorded task, in the replays to come. As many, and of the types, that were submitted. Nothing happens on
  /// ranks that do not run it.
  template <class... Values>
  void set_values(const TaskRef& task, Values&&... values) {
    using Tuple = std::tuple<std::decay_t<Values>...>;
    runtime::Task* const changed = change(task);
    if (changed == nullptr) return;
    runtime::Task& model = *changed;
    if (model.ops->value_types == nullptr || *model.ops->value_types != typeid(Tuple))
      throw UsageError(
          "set_values: the number or the types of the values differ from those that were submitted; convert them first");
    *static_cast<Tuple*>(model.values()) = Tuple(std::forward<Values>(values)...);
  }
  /// Of the task; messages keep the priority that was recorded.
  void set_priority(const TaskRef& task, int priority) {
    if (runtime::Task* const model = change(task)) model->priority = priority;
  }
  /// `to` takes the place of `from`, of the same type and shape, in the replays to come.
  template <class Kind>
  void rebind(const Data<Kind>& from, const Data<Kind>& to) {
    if (from.handle() == nullptr || to.handle() == nullptr) throw UsageError("rebind: an empty Data object");
    if (recording_ != nullptr) recording_->rebind(*from.handle(), *to.handle());
    else graph_->rebind(*from.handle(), *to.handle());
  }

 private:
  friend class Runtime;
  runtime::Task* change(const TaskRef& task) { return recording_ != nullptr ? recording_->change(task) : &graph_->change(task); }

  std::unique_ptr<runtime::RecordedGraph> graph_;
  std::unique_ptr<dist::Recording> recording_;  ///< instead, on several ranks
};

/// Options of `parallel_for` and `map_reduce`.
struct RangeOptions {
  std::size_t grain = 0;  ///< indices per task; 0: about eight tasks per worker
  std::string_view name = "range";
};

/// The runtime: workers, scheduler and memory of this process. The thread that makes it submits, waits, and works while it waits;
/// all members belong to that thread but where they say otherwise. Mistakes in the use throw `UsageError`; a kernel's exception
/// cancels what depends on it and is thrown again by `wait`.
///
/// As a rank of a job (`tandem run`, `mpirun`, ...) it is one of several that go through one flow: every rank makes the same
/// calls in the same order, but for those that say otherwise, and each runs the tasks that write the data that it owns. Then
/// `wait()` waits for all ranks, and throws on every rank the failure that is earliest in the flow.
class Runtime {
 public:
  /// From the environment, tandem.toml and defaults.
  explicit Runtime(const Options& options = {});
  /// From `--tandem.NAME=VALUE` arguments too, which are removed from argv.
  Runtime(int& argc, char** argv, const Options& options = {});
  /// In a world of the caller's: tests, simulation.
  Runtime(std::unique_ptr<Ground> ground, runtime::World world, const runtime::CoreOptions& options);
  /// The same as one rank of several.
  Runtime(std::unique_ptr<Ground> ground, runtime::World world, const runtime::CoreOptions& options,
          std::unique_ptr<comm::Endpoint> endpoint, const dist::FlowOptions& flow_options,
          std::unique_ptr<trace::Session> trace = {});
  ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  // --- data over the user's memory, which must stay where it is until the data is unregistered; of data with an owner that other
  // ranks register too, with the same shape and no memory, or memory that is not looked at
  template <class T>
  Data<Vector<T>> data(std::string name, std::vector<T>& vector, const DataOptions& options) {
    return data(std::move(name), std::span<T>(vector), options);
  }
  template <class T>
  Data<Vector<T>> data(std::string name, std::span<T> span, const DataOptions& options) {
    return add<Vector<T>>(std::move(name), {span.size(), 1, sizeof(T)}, span.data(), span.size(), options);
  }
  template <class T>
  Data<Matrix<T>> data(std::string name, MatrixView<T> matrix, const DataOptions& options) {
    return add<Matrix<T>>(std::move(name), {matrix.rows, matrix.cols, sizeof(T)}, matrix.data, matrix.ld, options);
  }
  template <class T>
  Data<T> data(std::string name, T& object, const DataOptions& options) {
    return add<T>(std::move(name), {1, 1, sizeof(T)}, &object, 1, options);
  }
  template <class Memory>
  auto data(std::string name, Memory&& memory, std::source_location where = std::source_location::current()) {
    return data(std::move(name), std::forward<Memory>(memory), DataOptions{.where = where});
  }

  /// An object of the user's, which may change its size; how it travels says `Serialize<T>`. Of one with an owner that other
  /// ranks register too their object is not looked at.
  template <class T>
  Data<Object<T>> object(std::string name, T& value, const DataOptions& options) {
    static_assert(!std::is_const_v<T>, "an object is written by tasks, or replaced by what arrives: it cannot be const");
    return Data<Object<T>>(register_data(std::move(name), {1, 1, sizeof(T)}, &value, 1, typeid(Object<T>), options,
                                         &internal::ObjectType<T>::ops));
  }
  template <class T>
  Data<Object<T>> object(std::string name, T& value, std::source_location where = std::source_location::current()) {
    return object(std::move(name), value, DataOptions{.where = where});
  }

  // --- data that Tandem allocates; it has no value until a task writes it
  template <class T>
  Data<Vector<T>> vector(std::string name, std::size_t count, const DataOptions& options) {
    return allocate<Vector<T>>(std::move(name), {count, 1, sizeof(T)}, options);
  }
  template <class T>
  Data<Matrix<T>> matrix(std::string name, std::size_t rows, std::size_t cols, const DataOptions& options) {
    return allocate<Matrix<T>>(std::move(name), {rows, cols, sizeof(T)}, options);
  }
  template <class T>
  Data<T> scalar(std::string name, const DataOptions& options) {
    return allocate<T>(std::move(name), {1, 1, sizeof(T)}, options);
  }
  template <class T>
  Data<Object<T>> object(std::string name, const DataOptions& options) {
    return Data<Object<T>>(allocate_data(std::move(name), {1, 1, sizeof(T)}, typeid(Object<T>), options,
                                         &internal::ObjectType<T>::ops));
  }
  template <class T>
  Data<Object<T>> object(std::string name, std::source_location where = std::source_location::current()) {
    return object<T>(std::move(name), DataOptions{.where = where});
  }
  template <class T>
  Data<Vector<T>> vector(std::string name, std::size_t count, std::source_location where = std::source_location::current()) {
    return vector<T>(std::move(name), count, DataOptions{.where = where});
  }
  template <class T>
  Data<Matrix<T>> matrix(std::string name, std::size_t rows, std::size_t cols,
                         std::source_location where = std::source_location::current()) {
    return matrix<T>(std::move(name), rows, cols, DataOptions{.where = where});
  }
  template <class T>
  Data<T> scalar(std::string name, std::source_location where = std::source_location::current()) {
    return scalar<T>(std::move(name), DataOptions{.where = where});
  }

  // --- tasks
  /// Submits a task: arguments are values (copied) and accesses, in the order of the kernel's parameters.
  template <class... Kernels, class... Arguments>
  TaskRef submit(const Codelet<Kernels...>& codelet, Arguments&&... arguments) {
    if (__builtin_expect(flow_ != nullptr, 0))
      return submit_in_flow(nullptr, codelet, std::forward<Arguments>(arguments)...);
    if (core_->is_over()) return {};
    runtime::Task& task = fill(codelet, std::forward<Arguments>(arguments)...);
    return core_->submit(task);
  }
  template <class... Kernels, class... Arguments>
  TaskRef submit(const TaskOptions& options, const Codelet<Kernels...>& codelet, Arguments&&... arguments) {
    if (__builtin_expect(flow_ != nullptr, 0))
      return submit_in_flow(&options, codelet, std::forward<Arguments>(arguments)...);
    if (core_->is_over()) return {};
    runtime::Task& task = fill(codelet, std::forward<Arguments>(arguments)...);
    return submit_with(options, task);
  }

  // --- loops that are pruned to a rank; `for_tasks_of` (tandem/api/for_tasks_of.hpp) calls these
  /// This rank does not submit the next `tasks` tasks of the flow. All ranks together go through one flow, but each may leave out
  /// tasks that do not concern it. It must submit
  /// (a) the tasks that it runs;
  /// (b) those that see data which it owns or of which it has the present version, and those that write such data, or data of
  ///     which it has a copy;
  /// (c) before a task here sees data, in this flow or a later one: the last task that wrote it;
  /// (d) those with `reduce` accesses, and the next one that uses their data otherwise.
  /// Positions of the flow are those that they would be: a wrong number is a JobError at the next `wait()`. Whoever leaves out
  /// what it needs may wait for ever, or use an old value; option `check_pruning` finds that. When the flow is cancelled and
  /// over, nothing. On one rank, which runs all tasks, UsageError unless `tasks` is 0. In a recording, of each replay.
  void pass_over(std::uint64_t tasks) {
    if (flow_ != nullptr) flow_->pass_over(tasks);
    else if (tasks > 0 && !core_->is_over()) refuse_pass_over();
  }
  /// As things are, rules (a), (b) or (d) want this rank to submit a task with these accesses, if it runs where data is that it
  /// writes. What rule (c) wants is not known before it comes.
  template <class... Accesses>
  bool concerned_by(const Accesses&... accesses) const {
    static_assert((internal::is_access<Accesses> && ...), "concerned_by takes accesses: read(data), read_write(data), ...");
    if (flow_ == nullptr) return true;
    const std::array<dist::Use, sizeof...(Accesses)> uses{dist::Use{accesses.handle, Accesses::mode}...};
    return flow_->concerns(uses);
  }
  /// Whether loops are to be pruned: there are several ranks, and option `prune` does not say no.
  bool prunes() const noexcept { return flow_ != nullptr && flow_->prunes(); }

  /// Waits for all tasks. Throws what the kernel threw that is earliest in the flow.
  void wait();
  /// Waits for one task, or for the end of a replay. Throws if it failed or was cancelled; with the flow, a `FlowCancelled`.
  void wait(const TaskRef& task) { core_->wait(task); }
  /// Waits for the tasks that use the data. Throws if its value could not be made.
  template <class Kind>
  void wait(const Data<Kind>& data) {
    core_->wait(named(data.handle(), "wait for"));
  }

  // --- the end of a flow before its end
  /// What has not begun of the flow is not needed any more: an iteration has converged. Any thread: this one, a kernel, a
  /// callback; on one rank, or on several. All tasks up to one position of the flow run, and those behind it on no rank. `wait()`
  /// returns as usual, and a new flow begins after it.
  ///
  /// Data has the values that the tasks up to that position left, on all ranks. Only where a task behind it was submitted to
  /// `write` data afresh on a rank that did not have its value there is none: until it is written, tasks that see it are
  /// cancelled, and waits throw `FlowCancelled`. Accesses by `acquire` and explicit messages are no tasks: they take place.
  void cancel() {
    if (flow_ != nullptr) flow_->cancel();
    else core_->cancel();
  }
  /// The flow is cancelled, and this thread has come to the end of it: what it submits until the next `wait()` is nothing, and
  /// references to it are empty. Loops end when they see it; every rank sees it at the same place. `acquire` still gives what
  /// is here, and throws `FlowCancelled` for other data. Throws a JobError when another rank has died, or has left by an
  /// exception, before the flow's end.
  bool cancelled() { return flow_ != nullptr ? flow_->cancelled() : core_->is_over(); }
  /// How far this thread has come in the flow; alike on all ranks. It grows with each operation.
  std::uint64_t position() const noexcept { return flow_ != nullptr ? flow_->position() : core_->last_id(); }
  /// Where the flow was cancelled that the last `wait()` has ended: what was submitted before `position()` went beyond has run,
  /// what was submitted when `position()` had come there has not. Nothing: it was not cancelled.
  std::optional<std::uint64_t> cancelled_at() const noexcept {
    return flow_ != nullptr ? flow_->cancelled_at() : core_->cancelled_at();
  }

  /// Waits until the data may be used so, and lends it to the application. With `read`, `write` or `read_write`.
  template <AccessMode mode, class Kind>
  Acquired<typename Access<mode, Kind>::View> acquire(const Access<mode, Kind>& access) {
    static_assert(mode == AccessMode::read || mode == AccessMode::write || mode == AccessMode::read_write,
                  "the application acquires data with read, write or read_write");
    if (is_over()) check_access_behind_end(named(access.handle, "acquire"), mode);
    else if (flow_ != nullptr) share_access(named(access.handle, "acquire"), mode, access.where);
    auto granted = core_->acquire(named(access.handle, "acquire"), mode, access.where);
    if (flow_ != nullptr) flow_->entered();
    return lend<mode, Kind>(std::move(granted), *access.handle);
  }

  /// As `acquire`, on the data's owner alone; the other ranks get nothing.
  template <AccessMode mode, class Kind>
  std::optional<Acquired<typename Access<mode, Kind>::View>> acquire_at_owner(const Access<mode, Kind>& access) {
    if (flow_ == nullptr) return acquire(access);
    if (flow_->is_over()) {
      if (owner_of(named(access.handle, "acquire")) == rank()) return acquire(access);
      return {};
    }
    dist::Use use{&named(access.handle, "acquire"), mode};
    const bool here = flow_->enter({&use, 1}, {.on = owner_of(*access.handle), .where = access.where, .is_task = false});
    if (!here) return {};
    auto granted = core_->acquire(*access.handle, mode, access.where);
    flow_->entered();
    return lend<mode, Kind>(std::move(granted), *access.handle);
  }

  /// An event that uses data: `start(event)` runs when the data is ready for it, maybe before this returns, on any thread, and
  /// must not block; whoever it set going calls `readable` (and `released`) on the event, in any order. Readers of what it writes
  /// wait for the former, writers for both. When what it reads does not exist, because a kernel threw, it does not start and
  /// completes by itself. It takes place on the rank where a task with these accesses would run.
  template <class... Accesses>
  Event event(std::string name, Release release, std::function<void(Event)> start, const Accesses&... accesses) {
    static_assert((internal::is_event_access<Accesses> && ...),
                  "an event takes accesses: read(data), write(data), read_write(data)");
    if (is_over()) return {};
    if (flow_ != nullptr) {
      std::array<dist::Use, sizeof...(Accesses)> uses{dist::Use{accesses.handle, Accesses::mode}...};
      if (!flow_->enter(uses, {})) return {};
    }
    runtime::Task& task = core_->begin_event(std::move(name), sizeof...(Accesses));
    [[maybe_unused]] unsigned index = 0;
    (set_access(task, index++, accesses), ...);
    auto event = std::make_shared<Event>();
    event->core_ = core_.get();
    const bool counts_as_task = start != nullptr;  // else somebody completes it in any case
    set_start(task, counts_as_task,
              [event, start = std::move(start)](runtime::Task& ready) { Runtime::start_event(*event, start, ready); });
    core_->submit_event(task, release == Release::separate, event->tasks_);
    if (flow_ != nullptr) flow_->entered();
    return *event;
  }

  // --- ranks
  std::uint32_t rank() const noexcept { return flow_ != nullptr ? flow_->rank() : 0; }
  std::uint32_t size() const noexcept { return flow_ != nullptr ? flow_->size() : 1; }
  /// The rank that owns the data; this one where each has it for itself.
  template <class Kind>
  std::uint32_t owner_of(const Data<Kind>& data) {
    return owner_of(named(data.handle(), "look for the owner of"));
  }

  /// For data that lies where `data` does.
  template <class Kind>
  DataOptions beside(const Data<Kind>& data, std::source_location where = std::source_location::current()) {
    DataOptions options{.where = where};
    if (flow_ != nullptr && is_owned(named(data.handle(), "lay data beside"))) options.owner = owner_of(*data.handle());
    return options;
  }

  /// Sends the present value to `rank` before a task there asks for it.
  template <class Kind>
  void fetch(const Data<Kind>& data, std::uint32_t rank, std::source_location where = std::source_location::current()) {
    if (flow_ != nullptr) flow_->fetch(named(data.handle(), "fetch"), rank, 0, where);
  }
  /// Sends the present value to all ranks.
  template <class Kind>
  void fetch_everywhere(const Data<Kind>& data, std::source_location where = std::source_location::current()) {
    if (flow_ != nullptr) flow_->fetch(named(data.handle(), "fetch"), dist::kEverywhere, 0, where);
  }
  /// `rank` owns the data from here on: its value moves there, and tasks that write it run there.
  template <class Kind>
  void migrate(const Data<Kind>& data, std::uint32_t rank, std::source_location where = std::source_location::current()) {
    if (flow_ != nullptr) flow_->migrate(named(data.handle(), "migrate"), rank, where);
  }
  /// Ranks that have copies of the data, and do not own it, forget them, which frees memory.
  template <class Kind>
  void flush(const Data<Kind>& data) {
    if (flow_ != nullptr) flow_->flush(named(data.handle(), "flush"));
  }
  /// Sends the value, once it is there, to data of the same shape on another rank, where `receive` names this rank and the same
  /// tag. Called on this rank alone, on data that each rank has for itself. Sends of one value with one tag to several ranks are
  /// one broadcast, as those that are inferred, and may be read there before it was forwarded.
  template <class Kind>
  void send(const Data<Kind>& data, std::uint32_t to, std::uint64_t tag = 0, int priority = 0) {
    own_flow("send", data.handle()).send(*data.handle(), to, tag, priority);
  }
  /// The other end of `send`: tasks after it see what is received.
  template <class Kind>
  void receive(const Data<Kind>& data, std::uint32_t from, std::uint64_t tag = 0) {
    own_flow("receive", data.handle()).receive(*data.handle(), from, tag);
  }
  /// At the next `wait()`, every rank's `value` becomes the least of all ranks' that is not 0; it must live until then.
  void agree_on_least(std::atomic<std::uint64_t>& value) {
    if (flow_ != nullptr) flow_->agree_on_least(&value);
  }
  /// Who runs tasks that write data of several owners; instead of the rank that needs the fewest bytes moved. The same on all
  /// ranks.
  void set_placement(dist::PlacementPolicy policy) {
    if (flow_ != nullptr) flow_->set_placement(std::move(policy));
  }
  /// What has travelled; zeros for a job of one rank.
  dist::FlowStatistics flow_statistics() const { return flow_ != nullptr ? flow_->statistics() : dist::FlowStatistics{}; }
  /// The flow of several ranks, or null.
  dist::Flow* flow() noexcept { return flow_.get(); }

  // --- conveniences
  /// Calls `body(i)` for each i in [begin, end), by tasks, and waits for them.
  template <class Body>
  void parallel_for(std::size_t begin, std::size_t end, const Body& body, const RangeOptions& options = {}) {
    const Codelet codelet(std::string(options.name), [&body](std::size_t first, std::size_t last) {
      for (std::size_t i = first; i < last; ++i) body(i);
    });
    std::vector<TaskRef> tasks;
    for_each_chunk(begin, end, options,
                   [&](std::size_t first, std::size_t last) { tasks.push_back(submit(codelet, first, last)); });
    wait_for(tasks);
  }

  /// combine(... combine(combine(neutral, map(begin)), map(begin + 1)) ..., map(end - 1)), by tasks. Chunks are combined in
  /// order, so the result is the same for any number of workers as long as the grain is given.
  template <class T, class Map, class Combine>
  T map_reduce(std::size_t begin, std::size_t end, T neutral, const Map& map, const Combine& combine,
               const RangeOptions& options = {}) {
    std::vector<T> partial(chunk_count(begin, end, options), neutral);
    const Codelet codelet(std::string(options.name), [&](std::size_t first, std::size_t last, T* result) {
      T sum = neutral;
      for (std::size_t i = first; i < last; ++i) sum = combine(sum, map(i));
      *result = sum;
    });
    std::vector<TaskRef> tasks;
    for_each_chunk(begin, end, options, [&](std::size_t first, std::size_t last) {
      tasks.push_back(submit(codelet, first, last, &partial[tasks.size()]));
    });
    wait_for(tasks);
    T sum = neutral;
    for (const T& part : partial) sum = combine(sum, part);
    return sum;
  }

  // --- recorded graphs
  /// Runs `flow`, which submits; nothing runs, and the flow is kept. On several ranks, it is settled here who runs each task, and
  /// all readers of a version are known before the first is submitted: broadcasts are whole. Tasks, `fetch`, `migrate`, `flush`,
  /// `send` and `receive` are kept; `wait`, `acquire` and events throw UsageError. What is migrated has its next owner from there
  /// on in the recording (`owner_of`), and moves in each replay.
  Graph record(const std::function<void()>& flow);
  /// Submits all tasks of the graph, at a fraction of the cost. Returns a reference that can be waited for, on several ranks for
  /// this one's tasks. Throws UsageError when data that the graph migrates has another owner than when it was recorded.
  TaskRef replay(Graph& graph);

  // --- what is known
  unsigned worker_count() const noexcept { return static_cast<unsigned>(core_->world().workers.size()); }
  const base::Config& config() const noexcept { return *config_; }
  /// What is recorded of this program, and what it records itself.
  Trace& trace() noexcept { return *trace_; }
  /// Counts and times; times only with option `stats` or `timeline`.
  StatisticsReport statistics() { return core_->statistics(); }
  /// Each run of a kernel, by start, with option `timeline`. Between waits.
  std::vector<TimelineEvent> timeline() const { return core_->timeline(); }
  runtime::RuntimeCore& core() noexcept { return *core_; }
  Ground& ground() noexcept { return *ground_; }

 private:
  template <class Kind>
  Data<Kind> add(std::string name, const runtime::Shape& shape, void* memory, std::size_t ld, const DataOptions& options) {
    return Data<Kind>(register_data(std::move(name), shape, memory, ld, typeid(Kind), options, nullptr));
  }
  template <class Kind>
  Data<Kind> allocate(std::string name, const runtime::Shape& shape, const DataOptions& options) {
    return Data<Kind>(allocate_data(std::move(name), shape, typeid(Kind), options, nullptr));
  }
  template <AccessMode mode, class Kind>
  static Acquired<typename Access<mode, Kind>::View> lend(std::unique_ptr<runtime::ApplicationAccess> granted,
                                                          const runtime::Handle& handle) {
    typename Access<mode, Kind>::View view = DataTraits<Kind>::view(handle.home, handle.shape);
    if constexpr (mode == AccessMode::write && internal::is_object<Kind>) view = std::remove_cvref_t<decltype(view)>();
    return {std::move(granted), view};
  }
  runtime::Handle* register_data(std::string name, const runtime::Shape& shape, void* memory, std::size_t ld,
                                 const std::type_info& type, const DataOptions& options, const runtime::ObjectOps* object);
  runtime::Handle* allocate_data(std::string name, const runtime::Shape& shape, const std::type_info& type,
                                 const DataOptions& options, const runtime::ObjectOps* object);
  void check_options(const std::string& name, const DataOptions& options, const runtime::ObjectOps* object) const;
  static bool is_owned(runtime::Handle& handle) noexcept { return dist::place_of(handle).owner != dist::kEverywhere; }
  std::uint32_t owner_of(runtime::Handle& handle) const;
  bool is_over() { return flow_ != nullptr ? flow_->is_over() : core_->is_over(); }
  void check_access_behind_end(runtime::Handle& handle, AccessMode mode);
  void share_access(runtime::Handle& handle, AccessMode mode, const SourceLine& where);
  dist::Flow& own_flow(const char* action, runtime::Handle* handle);
  [[noreturn]] static void refuse_pass_over();

  static runtime::Handle& named(runtime::Handle* handle, const char* action) {
    if (handle == nullptr)
      throw UsageError(std::string("cannot ") + action + " an empty Data object; give it data that was registered");
    return *handle;
  }

  template <AccessMode mode, class Kind>
  static void set_access(runtime::Task& task, unsigned index, const Access<mode, Kind>& access) noexcept {
    task.accesses()[index].set(access.handle, mode);
    task.where = access.where;
  }

  void set_options(const TaskOptions& options, runtime::Task& task) {
    task.priority = options.priority;
    if (!task.where) task.where = options.where;
    if (!options.name.empty()) core_->extra_of(task).name = options.name;
    if (options.callback) core_->extra_of(task).callback = options.callback;
  }
  TaskRef submit_with(const TaskOptions& options, runtime::Task& task) {
    set_options(options, task);
    if (options.after.empty()) return core_->submit(task);
    return core_->submit_after(task, options.after.data(), options.after.size());
  }

  /// On several ranks: nothing is filled before it is known that the task runs here.
  template <class... Kernels, class... Arguments>
  TaskRef submit_in_flow(const TaskOptions* options, const Codelet<Kernels...>& codelet, Arguments&&... arguments) {
    constexpr std::size_t count = (std::size_t{0} + ... + static_cast<std::size_t>(internal::is_access<Arguments>));
    std::array<dist::Use, count> uses;
    [[maybe_unused]] std::size_t index = 0;
    [[maybe_unused]] const auto note = [&](const auto& argument) {
      if constexpr (internal::is_access<decltype(argument)>)
        uses[index++] = {argument.handle, std::remove_cvref_t<decltype(argument)>::mode};
    };
    (note(arguments), ...);
    const bool placed = (options != nullptr && options->on) || __builtin_expect(flow_->looks_closely(), 0);
    if (!placed && flow_->passes_by(uses)) return {};
    if (flow_->is_over()) return {};
    dist::Recording* const recording = flow_->recording();
    dist::Wish wish;
    [[maybe_unused]] const auto note_line = [&](const auto& argument) {
      if constexpr (internal::is_access<decltype(argument)>) wish.where = argument.where;
    };
    (note_line(arguments), ...);
    if (options != nullptr) {
      wish.on = options->on;
      wish.priority = options->priority;
    }
    if (recording != nullptr) {
      const std::uint32_t executor = flow_->executor_of(uses, wish);
      runtime::Task* model = nullptr;
      if (executor == rank() || executor == dist::kEverywhere) {
        model = &fill(codelet, std::forward<Arguments>(arguments)...);
        if (options != nullptr) set_options(*options, *model);
      }
      const TaskRef ref =
          recording->add(uses, wish, executor, model, options != nullptr ? options->after : std::vector<TaskRef>());
      if (flow_->is_skipping()) recording->note_skipped();
      return ref;
    }
    constexpr bool reduces = (false || ... || internal::reduces<Arguments>);
    if constexpr (reduces) flow_->share_reductions(uses, wish);
    if (!flow_->enter(uses, wish)) return {};
    runtime::Task& task = fill(codelet, std::forward<Arguments>(arguments)...);
    if constexpr (reduces)
      for (unsigned i = 0; i < count; ++i) task.accesses()[i].rebind(uses[i].handle);
    const TaskRef ref = options != nullptr ? submit_with(*options, task) : core_->submit(task);
    flow_->entered();
    return ref;
  }

  template <class... Kernels, class... Arguments>
  runtime::Task& fill(const Codelet<Kernels...>& codelet, Arguments&&... arguments) {
    using Code = internal::TaskCode<internal::TypedCore<Kernels...>, std::decay_t<Arguments>...>;
    runtime::Task& task = core_->begin(codelet.core(), Code::ops, Code::kAccesses);
    if constexpr (Code::kHasValues) {
      new (static_cast<void*>(&Code::values(task)))
          typename Code::Values(std::tuple_cat(value_of(std::forward<Arguments>(arguments))...));
    }
    [[maybe_unused]] unsigned index = 0;
    [[maybe_unused]] const auto set = [&](const auto& argument) {
      if constexpr (internal::is_access<decltype(argument)>) set_access(task, index++, argument);
    };
    (set(arguments), ...);
    return task;
  }
  template <class Argument>
  static auto value_of(Argument&& argument) {
    if constexpr (internal::is_access<Argument>) return std::tuple<>();
    else return std::tuple<std::decay_t<Argument>>(std::forward<Argument>(argument));
  }

  std::size_t grain_of(std::size_t count, const RangeOptions& options) const noexcept;
  std::size_t chunk_count(std::size_t begin, std::size_t end, const RangeOptions& options) const noexcept;
  template <class Submit>
  void for_each_chunk(std::size_t begin, std::size_t end, const RangeOptions& options, const Submit& submit_chunk) {
    if (begin >= end) return;
    const std::size_t grain = grain_of(end - begin, options);
    for (std::size_t first = begin; first < end; first += std::min(grain, end - first))
      submit_chunk(first, first + std::min(grain, end - first));
  }
  void wait_for(const std::vector<TaskRef>& tasks);
  void start(const runtime::Emulation& emulation);
  void connect_trace();
  void set_start(runtime::Task& task, bool counts_as_task, std::function<void(runtime::Task&)> start);
  static void start_event(Event event, const std::function<void(Event)>& start, runtime::Task& ready);

  std::unique_ptr<base::Config> config_;
  std::unique_ptr<Ground> ground_;
  std::unique_ptr<Trace> trace_;
  std::unique_ptr<runtime::RuntimeCore> core_;
  std::unique_ptr<dist::Flow> flow_;         ///< beyond one rank
  std::unique_ptr<base::CompanyWatch> company_;  ///< real world, with a BLAS in the program, until it has warned
};

}  // namespace tandem
