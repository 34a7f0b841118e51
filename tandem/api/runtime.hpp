// tandem/api/runtime.hpp: what users hold in their hands: the runtime, its data, its tasks.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <source_location>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tandem/api/codelet.hpp"
#include "tandem/api/data.hpp"
#include "tandem/api/options.hpp"
#include "tandem/api/world.hpp"
#include "tandem/base/blas_threads.hpp"
#include "tandem/runtime/record/graph.hpp"

namespace tandem {

using runtime::StatisticsReport;
using runtime::TaskRef;
using runtime::TimelineEvent;

/// What a submit may say of its task beside the codelet and its arguments.
struct TaskOptions {
  int priority = 0;                          ///< higher first
  std::string_view name = {};                ///< instead of the codelet's, in messages
  std::function<void()> callback = {};       ///< called on the worker when the kernel has ended without throwing
  std::vector<TaskRef> after = {};           ///< tasks that come first, whatever data they use
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
  void readable(std::exception_ptr failure = nullptr) { core_->complete(tasks_.readable, std::move(failure)); }
  /// Tasks that overwrite it may start too. Any thread; once, for events made with `Release::separate`.
  void released() { core_->complete(tasks_.released); }

  TaskRef task() const noexcept { return tasks_.readable; }

 private:
  friend class Runtime;
  runtime::RuntimeCore* core_ = nullptr;
  runtime::RuntimeCore::EventTasks tasks_;
};

enum class Release { with_readable, separate };

/// A recorded flow. Must go before its runtime.
class Graph {
 public:
  std::size_t task_count() const noexcept { return graph_->task_count() - 1; }

  /// Other values for a recorded task, in the replays to come. As many, and of the types, that were submitted.
  template <class... Values>
  void set_values(const TaskRef& task, Values&&... values) {
    using Tuple = std::tuple<std::decay_t<Values>...>;
    runtime::Task& model = graph_->change(task);
    if (model.ops->value_types == nullptr || *model.ops->value_types != typeid(Tuple))
      throw UsageError(
          "set_values: the number or the types of the values differ from those that were submitted; convert them first");
    *static_cast<Tuple*>(model.values()) = Tuple(std::forward<Values>(values)...);
  }
  void set_priority(const TaskRef& task, int priority) { graph_->change(task).priority = priority; }
  /// `to` takes the place of `from`, of the same type and shape, in the replays to come.
  template <class Kind>
  void rebind(const Data<Kind>& from, const Data<Kind>& to) {
    if (from.handle() == nullptr || to.handle() == nullptr) throw UsageError("rebind: an empty Data object");
    graph_->rebind(*from.handle(), *to.handle());
  }

 private:
  friend class Runtime;
  std::unique_ptr<runtime::RecordedGraph> graph_;
};

/// Options of `parallel_for` and `map_reduce`.
struct RangeOptions {
  std::size_t grain = 0;  ///< indices per task; 0: about eight tasks per worker
  std::string_view name = "range";
};

/// The runtime: workers, scheduler and memory of this process. The thread that makes it submits, waits, and works while it waits;
/// all members belong to that thread but where they say otherwise. Mistakes in the use throw `UsageError`; a kernel's exception
/// cancels what depends on it and is thrown again by `wait`.
class Runtime {
 public:
  /// From the environment, tandem.toml and defaults.
  explicit Runtime(const Options& options = {});
  /// From `--tandem.NAME=VALUE` arguments too, which are removed from argv.
  Runtime(int& argc, char** argv, const Options& options = {});
  /// In a world of the caller's: tests, simulation.
  Runtime(std::unique_ptr<Ground> ground, runtime::World world, const runtime::CoreOptions& options);
  ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  // --- data over the user's memory, which must stay where it is until the data is unregistered
  template <class T>
  Data<Vector<T>> data(std::string name, std::vector<T>& vector, std::source_location where = std::source_location::current()) {
    return data(std::move(name), std::span<T>(vector), where);
  }
  template <class T>
  Data<Vector<T>> data(std::string name, std::span<T> span, std::source_location where = std::source_location::current()) {
    return add<Vector<T>>(std::move(name), {span.size(), 1, sizeof(T)}, span.data(), span.size(), where);
  }
  template <class T>
  Data<Matrix<T>> data(std::string name, MatrixView<T> matrix, std::source_location where = std::source_location::current()) {
    return add<Matrix<T>>(std::move(name), {matrix.rows, matrix.cols, sizeof(T)}, matrix.data, matrix.ld, where);
  }
  template <class T>
  Data<T> data(std::string name, T& object, std::source_location where = std::source_location::current()) {
    return add<T>(std::move(name), {1, 1, sizeof(T)}, &object, 1, where);
  }

  // --- data that Tandem allocates; it has no value until a task writes it
  template <class T>
  Data<Vector<T>> vector(std::string name, std::size_t count, std::source_location where = std::source_location::current()) {
    return allocate<Vector<T>>(std::move(name), {count, 1, sizeof(T)}, where);
  }
  template <class T>
  Data<Matrix<T>> matrix(std::string name, std::size_t rows, std::size_t cols,
                         std::source_location where = std::source_location::current()) {
    return allocate<Matrix<T>>(std::move(name), {rows, cols, sizeof(T)}, where);
  }
  template <class T>
  Data<T> scalar(std::string name, std::source_location where = std::source_location::current()) {
    return allocate<T>(std::move(name), {1, 1, sizeof(T)}, where);
  }

  // --- tasks
  /// Submits a task: arguments are values (copied) and accesses, in the order of the kernel's parameters.
  template <class... Kernels, class... Arguments>
  TaskRef submit(const Codelet<Kernels...>& codelet, Arguments&&... arguments) {
    runtime::Task& task = fill(codelet, std::forward<Arguments>(arguments)...);
    return core_->submit(task);
  }
  template <class... Kernels, class... Arguments>
  TaskRef submit(const TaskOptions& options, const Codelet<Kernels...>& codelet, Arguments&&... arguments) {
    runtime::Task& task = fill(codelet, std::forward<Arguments>(arguments)...);
    task.priority = options.priority;
    if (!task.where) task.where = options.where;
    if (!options.name.empty()) core_->extra_of(task).name = options.name;
    if (options.callback) core_->extra_of(task).callback = options.callback;
    if (options.after.empty()) return core_->submit(task);
    return core_->submit_after(task, options.after.data(), options.after.size());
  }

  /// Waits for all tasks. Throws what the kernel threw that is earliest in the flow.
  void wait();
  /// Waits for one task, or for the end of a replay. Throws if it failed or was cancelled.
  void wait(const TaskRef& task) { core_->wait(task); }
  /// Waits for the tasks that use the data. Throws if its value could not be made.
  template <class Kind>
  void wait(const Data<Kind>& data) {
    core_->wait(named(data.handle(), "wait for"));
  }

  /// Waits until the data may be used so, and lends it to the application. With `read`, `write` or `read_write`.
  template <AccessMode mode, class Kind>
  Acquired<typename Access<mode, Kind>::View> acquire(const Access<mode, Kind>& access) {
    static_assert(mode == AccessMode::read || mode == AccessMode::write || mode == AccessMode::read_write,
                  "the application acquires data with read, write or read_write");
    auto granted = core_->acquire(named(access.handle, "acquire"), mode, access.where);
    return {std::move(granted), DataTraits<Kind>::view(access.handle->home, access.handle->shape)};
  }

  /// An event that uses data: `start(event)` runs when the data is ready for it, maybe before this returns, on any thread, and
  /// must not block; whoever it set going calls `readable` (and `released`) on the event, in any order. Readers of what it writes
  /// wait for the former, writers for both. When what it reads does not exist, because a kernel threw, it does not start and
  /// completes by itself.
  template <class... Accesses>
  Event event(std::string name, Release release, std::function<void(Event)> start, const Accesses&... accesses) {
    static_assert((internal::is_event_access<Accesses> && ...),
                  "an event takes accesses: read(data), write(data), read_write(data)");
    runtime::Task& task = core_->begin_event(std::move(name), sizeof...(Accesses));
    [[maybe_unused]] unsigned index = 0;
    (set_access(task, index++, accesses), ...);
    auto event = std::make_shared<Event>();
    event->core_ = core_.get();
    set_start(task, [event, start = std::move(start)](runtime::Task& ready) { Runtime::start_event(*event, start, ready); });
    core_->submit_event(task, release == Release::separate, event->tasks_);
    return *event;
  }

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
  /// Runs `flow`, which submits; nothing runs, and the flow is kept.
  Graph record(const std::function<void()>& flow);
  /// Submits all tasks of the graph, at a fraction of the cost. Returns a reference that can be waited for.
  TaskRef replay(Graph& graph) { return graph.graph_->replay(); }

  // --- what is known
  unsigned worker_count() const noexcept { return static_cast<unsigned>(core_->world().workers.size()); }
  const base::Config& config() const noexcept { return *config_; }
  /// Counts and times; times only with option `stats` or `timeline`.
  StatisticsReport statistics() { return core_->statistics(); }
  /// Each run of a kernel, by start, with option `timeline`. Between waits.
  std::vector<TimelineEvent> timeline() const { return core_->timeline(); }
  runtime::RuntimeCore& core() noexcept { return *core_; }
  Ground& ground() noexcept { return *ground_; }

 private:
  template <class Kind>
  Data<Kind> add(std::string name, const runtime::Shape& shape, void* memory, std::size_t ld, const std::source_location& where) {
    // Empty data may have no address: give it one, so that it is not taken for data that Tandem shall allocate.
    static char nothing;
    if (memory == nullptr && shape.bytes() == 0) memory = &nothing;
    return Data<Kind>(core_->add_data(std::move(name), shape, memory, memory == nullptr ? SIZE_MAX : ld, typeid(Kind), where));
  }
  template <class Kind>
  Data<Kind> allocate(std::string name, const runtime::Shape& shape, const std::source_location& where) {
    return Data<Kind>(core_->add_data(std::move(name), shape, nullptr, shape.rows, typeid(Kind), where));
  }

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
  void start();
  static void set_start(runtime::Task& task, std::function<void(runtime::Task&)> start);
  static void start_event(Event event, const std::function<void(Event)>& start, runtime::Task& ready);

  std::unique_ptr<base::Config> config_;
  std::unique_ptr<Ground> ground_;
  std::unique_ptr<runtime::RuntimeCore> core_;
  std::unique_ptr<base::CompanyWatch> company_;  ///< real world, with a BLAS in the program, until it has warned
};

}  // namespace tandem
