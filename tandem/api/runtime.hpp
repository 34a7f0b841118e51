// tandem/api/runtime.hpp: the runtime, with its data and its tasks.
#pragma once

#include <algorithm>
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
#include <tuple>
#include <typeinfo>
#include <utility>
#include <vector>

#include "tandem/api/acquired.hpp"
#include "tandem/api/codelet.hpp"
#include "tandem/api/data.hpp"
#include "tandem/api/parts.hpp"
#include "tandem/api/tiles.hpp"
#include "tandem/api/event.hpp"
#include "tandem/api/graph.hpp"
#include "tandem/api/options.hpp"
#include "tandem/api/own_codelets.hpp"
#include "tandem/api/range_call.hpp"
#include "tandem/api/serialize.hpp"
#include "tandem/dist/program_flow.hpp"
#include "tandem/runtime/worker/statistics.hpp"

// This header names the parts of a runtime and does not include them: it compiles in a third of the time
// (docs/decisions/). A program that uses `rt.trace()` includes tandem/trace.hpp.
namespace tandem::base {
class ThreadWatch;
class Config;
}  // namespace tandem::base
namespace tandem::comm {
class Endpoint;
}
namespace tandem::dist {
class Flow;
struct FlowOptions;
}  // namespace tandem::dist
namespace tandem::runtime {
class RuntimeCore;
struct CoreOptions;
struct World;
}  // namespace tandem::runtime
namespace tandem::trace {
class Session;
}

namespace tandem {

struct WorldResources;
class Trace;

using runtime::PrefetchReport;
using runtime::StatisticsReport;
using runtime::TimelineEvent;

/// Options of data, besides its name, shape and memory.
struct DataOptions {
  /// The rank that has the memory and runs the tasks that write the data. None: each rank has its own data, and tasks
  /// that write it run on every rank.
  std::optional<std::uint32_t> owner = {};
  /// For an object: an estimate of its bytes in a message, the same on all ranks. Option `copies` and the placement of
  /// tasks use the estimate; the real size may be larger or smaller. 0: the size of its type.
  std::size_t bytes = 0;
  std::source_location where = std::source_location::current();  ///< of the registration, for messages
};

/// Options of a task, besides the codelet and its arguments.
struct TaskOptions {
  int priority = 0;                          ///< higher first; also for the messages of its data
  std::string_view name = {};                ///< replaces the codelet's name in messages
  std::function<void()> callback = {};       ///< called on the worker when the kernel has ended without throwing
  std::vector<TaskRef> after = {};           ///< tasks of this rank that must end first, whatever data they use
  std::optional<std::uint32_t> on = {};      ///< the rank that runs it, instead of the owner of what it writes
  /// @name Only for traces and reports
  /// @{
  std::optional<std::int32_t> iteration = {};  ///< replaces that of `Runtime::iteration`
  double flops = 0;                            ///< floating-point operations of the kernel; 0: by its codelet
  std::uint64_t tag = 0;                       ///< a number of the program's own
  std::string_view parameters = {};            ///< a text of the program's own, such as "k=3 m=5"
  /// @}
  std::source_location where = std::source_location::current();  ///< for messages about a task without accesses
};

namespace internal {

template <class Argument>
inline constexpr bool is_options = std::is_same_v<std::remove_cvref_t<Argument>, TaskOptions>;
template <class... Arguments>
inline constexpr bool last_is_options = false;
template <class First, class... Others>
inline constexpr bool last_is_options<First, Others...> =
    is_options<std::tuple_element_t<sizeof...(Others), std::tuple<First, Others...>>>;

template <class Argument>
inline constexpr bool is_codelet = false;
template <class... Kernels>
inline constexpr bool is_codelet<Codelet<Kernels...>> = true;

/// Types that may be a task's own kernel: a lambda, another function object, a function.
template <class Argument>
concept Callable =
    (std::is_class_v<std::remove_cvref_t<Argument>> ||
     std::is_function_v<std::remove_pointer_t<std::decay_t<Argument>>>)&&!is_codelet<std::remove_cvref_t<Argument>> &&
    !is_access<Argument> && !is_options<Argument> &&
    !std::is_convertible_v<const std::decay_t<Argument>&, std::string_view>;

class ExitStatus;
struct PartOrder;
class RecordedParts;

/// Facts of a task for the flow of several ranks, before the task is filled. Lives during one `submit`.
struct FlowTask {
  std::span<dist::Use> uses;
  const TaskOptions* options = nullptr;
  bool reduces = false;
  bool looked = false;  ///< `skip_in_flow` has not skipped it
  dist::Wish wish = {};
};

/// Type in place of a task's own kernel, for tasks of a codelet.
struct NoKernel {};

}  // namespace internal

/// While it lives, submitted tasks belong to an iteration (`Runtime::iteration`). Used by the submitting thread; it
/// must not outlive the runtime.
class IterationScope {
 public:
  /// Sets the number at `place`, which the runtime uses for submitted tasks.
  IterationScope(std::int32_t& place, std::int32_t number) noexcept
      : place_(place), before_(std::exchange(place, number)) {}
  ~IterationScope() { place_ = before_; }
  IterationScope(const IterationScope&) = delete;
  IterationScope& operator=(const IterationScope&) = delete;

 private:
  std::int32_t& place_;
  const std::int32_t before_;
};

/// A memory of this process, from `Runtime::memory_nodes`.
struct MemoryNodeDescription {
  std::string name;               ///< name in messages
  std::size_t budget = 0;         ///< in bytes; 0: none
  std::vector<unsigned> workers;  ///< workers whose kernels find their data there
  bool is_storage = false;        ///< a file: values leave main memory for it, and no worker works there
};

/// Options of `parallel_for` and `map_reduce`.
struct RangeOptions {
  std::size_t grain = 0;  ///< indices per task; 0: about eight tasks per worker of the rank that has the most
  std::string_view name = "range";  ///< name of the tasks in messages, statistics and traces
};

/// The runtime: workers, scheduler and memory of this process. The thread that makes it submits, waits, and works while
/// it waits. Only that thread may call a member, unless the member's comment says otherwise. Mistakes in the use throw
/// `UsageError`. A kernel's exception cancels the tasks that depend on the kernel, and `wait` throws it again.
///
/// In a job (`tandem run`, `mpirun`, ...) several ranks go through one flow. Every rank makes the same calls in the
/// same order, except those whose comment says otherwise. Each rank runs the tasks that write the data that it owns.
/// `wait()` then waits for all ranks, and throws on every rank the failure that is earliest in the flow.
class Runtime {
 public:
  /// Takes options from the environment, tandem.toml and defaults. Throws StartError.
  explicit Runtime(const Options& options = {});
  /// Takes options also from `--tandem.NAME=VALUE` arguments, which are removed from argv. Throws StartError.
  Runtime(int& argc, char** argv, const Options& options = {});
  /// Runs in a world that the caller made (tandem/api/world.hpp): for tests and simulation.
  Runtime(std::unique_ptr<WorldResources> resources, runtime::World world, const runtime::CoreOptions& options);
  /// Runs in a world that the caller made, as one rank of several.
  Runtime(std::unique_ptr<WorldResources> resources, runtime::World world, const runtime::CoreOptions& options,
          std::unique_ptr<comm::Endpoint> endpoint, const dist::FlowOptions& flow_options,
          std::unique_ptr<trace::Session> trace = {});
  ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  /// @name Data in the user's memory
  /// @{

  /// Registers a vector, a span, a matrix, an array of several dimensions (`ArrayView`: a block of a field, a row-major
  /// matrix), or one trivially copyable value. Its memory must keep its address until the data is unregistered. On
  /// several ranks every rank registers the same data in the same order. Only the owner needs memory: the others give a
  /// span or matrix view of the same shape with a null pointer, or any memory, which is not used. Throws UsageError.
  ///
  /// Constant memory (`const std::vector<T>&`, `std::span<const T>`, `MatrixView<const T>`, `const T&`) makes data of
  /// kind `Vector<const T>`, `Matrix<const T>`, `const T`, which tasks can only read. One piece of memory belongs to
  /// one piece of data at a time: memory that overlaps with other data is refused.
  template <class T>
  Data<Vector<T>> data(std::string name, std::vector<T>& vector, const DataOptions& options) {
    return data(std::move(name), std::span<T>(vector), options);
  }
  template <class T>
  Data<Vector<const T>> data(std::string name, const std::vector<T>& vector, const DataOptions& options) {
    return data(std::move(name), std::span<const T>(vector), options);
  }
  // Refused, since the vector ends with the call.
  template <class T>
  void data(std::string name, const std::vector<T>&& vector, const DataOptions& options) = delete;
  template <class T>
  Data<Vector<T>> data(std::string name, std::span<T> span, const DataOptions& options) {
    return add<Vector<T>>(std::move(name), {span.size(), 1, sizeof(T)}, span.data(), span.size(), options);
  }
  template <class T>
  Data<Matrix<T>> data(std::string name, MatrixView<T> matrix, const DataOptions& options) {
    return add<Matrix<T>>(std::move(name), {matrix.rows, matrix.cols, sizeof(T)}, matrix.data, matrix.ld, options);
  }
  template <class T, std::size_t n>
  Data<Array<T, n>> data(std::string name, ArrayView<T, n> array, const DataOptions& options) {
    return Data<Array<T, n>>(
        add_data(std::move(name), {array.size(), 1, sizeof(T)}, memory_at(array.data, array.size()),
                 typeid(Array<T, n>), options, nullptr,
                 std::make_unique<const runtime::Layout>(array.extents, array.strides, sizeof(T))));
  }
  template <class T>
  Data<T> data(std::string name, T& object, const DataOptions& options) {
    return add<T>(std::move(name), {1, 1, sizeof(T)}, &object, 1, options);
  }
  template <class Memory>
  auto data(std::string name, Memory&& memory, std::source_location where = std::source_location::current()) {
    internal::check_memory<Memory>();
    return data(std::move(name), std::forward<Memory>(memory), DataOptions{.where = where});
  }
  /// Registers data without a name: messages call it "data 3", by the order of registration.
  template <class Memory>
    requires(!std::is_convertible_v<Memory&, std::string>)
  auto data(Memory&& memory, std::source_location where = std::source_location::current()) {
    internal::check_memory<Memory>();
    return data(std::string(), std::forward<Memory>(memory), DataOptions{.where = where});
  }
  template <class Memory>
    requires(!std::is_convertible_v<Memory&, std::string>)
  auto data(Memory&& memory, const DataOptions& options) {
    internal::check_memory<Memory>();
    return data(std::string(), std::forward<Memory>(memory), options);
  }

  /// Registers an object: a value of a type with a `Serialize`, which may change its size. Ranks that do not own it
  /// register an object of the same type too; Tandem does not use that one. Throws UsageError.
  template <class T>
  Data<Object<T>> object(std::string name, T& value, const DataOptions& options) {
    static_assert(!std::is_const_v<T>,
                  "an object is written by tasks, or replaced by what arrives: it cannot be const");
    return Data<Object<T>>(add_data(std::move(name), {1, 1, sizeof(T)}, memory_at(&value, 1), typeid(Object<T>),
                                    options, &internal::ObjectType<T>::ops));
  }
  /// Registers an object without options.
  template <class T>
  Data<Object<T>> object(std::string name, T& value, std::source_location where = std::source_location::current()) {
    return object(std::move(name), value, DataOptions{.where = where});
  }

  /// @}
  /// @name Data that Tandem allocates
  /// @{

  /// A vector of `count` elements, a matrix, one trivially copyable value, or an object. It has no value until a task
  /// writes it. On several ranks memory is allocated where a task writes the data, and where a value arrives.
  template <class T>
  Data<Vector<T>> vector(std::string name, std::size_t count, const DataOptions& options) {
    return allocate<Vector<T>>(std::move(name), {count, 1, sizeof(T)}, options);
  }
  template <class T>
  Data<Matrix<T>> matrix(std::string name, std::size_t rows, std::size_t cols, const DataOptions& options) {
    return allocate<Matrix<T>>(std::move(name), {rows, cols, sizeof(T)}, options);
  }
  /// An array of as many dimensions as `extents` has: `rt.array<double>("field", {100, 100, 50})`.
  template <class T, std::size_t n>
  Data<Array<T, n>> array(std::string name, const std::size_t (&extents)[n], const DataOptions& options) {
    static_assert(!std::is_const_v<T>, "data that Tandem allocates must be written first: its type cannot be const");
    const std::array<std::size_t, n> none{};
    const runtime::Layout layout = runtime::Layout(extents, none, sizeof(T)).packed();
    return Data<Array<T, n>>(add_data(std::move(name), {layout.count(), 1, sizeof(T)}, {}, typeid(Array<T, n>),
                                      options, nullptr, std::make_unique<const runtime::Layout>(layout)));
  }
  template <class T, std::size_t n>
  Data<Array<T, n>> array(std::string name, const std::size_t (&extents)[n],
                          std::source_location where = std::source_location::current()) {
    return array<T>(std::move(name), extents, DataOptions{.where = where});
  }
  template <class T>
  Data<T> scalar(std::string name, const DataOptions& options) {
    return allocate<T>(std::move(name), {1, 1, sizeof(T)}, options);
  }
  template <class T>
  Data<Object<T>> object(std::string name, const DataOptions& options) {
    return Data<Object<T>>(
        add_data(std::move(name), {1, 1, sizeof(T)}, {}, typeid(Object<T>), options, &internal::ObjectType<T>::ops));
  }
  template <class T>
  Data<Object<T>> object(std::string name, std::source_location where = std::source_location::current()) {
    return object<T>(std::move(name), DataOptions{.where = where});
  }
  template <class T>
  Data<Vector<T>> vector(std::string name, std::size_t count,
                         std::source_location where = std::source_location::current()) {
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

  /// A matrix in tiles, each of which is registered when it is first used here. On several ranks every rank makes it at
  /// the same place among its registrations, with the same grid; which tiles a rank uses is its own affair. Throws
  /// UsageError, also when `grid.owner` names a rank that does not exist.
  ///
  ///   auto a = rt.tiles<double>("A", {.rows = 100'000, .cols = 100'000, .tile_rows = 512, .tile_cols = 512});
  ///   rt.submit(fill, write(a(3, 1)));
  template <class T>
  Tiles<T> tiles(std::string name, TileGrid grid) {
    return Tiles<T>(*this, std::move(name), std::move(grid));
  }

  /// The memories of this process, main memory first. The index in the list is the number in `Context::memory_node`.
  std::vector<MemoryNodeDescription> memory_nodes() const;

  /// A hint that brings the present value of the data to a memory as soon as it exists, before tasks there need it.
  /// Tasks that write the data later wait until the copy has ended. The hint is dropped if the memory's budget leaves
  /// no room beside what tasks need sooner, while tasks with `commute` or `reduce` are under way, while the data is
  /// used in parts, and when the data has no value. `StatisticsReport::prefetches` counts. On several ranks any rank
  /// may call it alone, for a value that it has. Throws UsageError.
  ///
  ///   rt.prefetch(a, 1);  // to the memory of the first device
  template <class Kind>
  void prefetch(const Data<Kind>& data, unsigned memory_node,
                std::source_location where = std::source_location::current()) {
    static_assert(!internal::is_object<Kind>, "objects stay in main memory");
    prefetch_to(data.handle(), memory_node, where);
  }

  /// A hint that the program will not use the data soon, beyond the submitted tasks: where memory has a budget (option
  /// memory), it leaves before other data. Does nothing without a budget.
  template <class Kind>
  void wont_use(const Data<Kind>& data) {
    release_memory_of(data.handle(), false);
  }
  /// Makes the data leave memory that has a budget as soon as the submitted tasks have ended, so that there is room
  /// before others need it. Without a budget it does nothing. A task that is submitted later brings the data back.
  template <class Kind>
  void evict(const Data<Kind>& data) {
    release_memory_of(data.handle(), true);
  }

  /// @}
  /// @name Parts of data
  /// @{

  /// Divides a registered vector or matrix. See `Parts`. Throws UsageError, and OutOfMemory when option `memory` allows
  /// less than the whole and one part.
  ///
  ///   auto tiles = rt.parts(a, {.rows = 256, .cols = 256});
  ///   rt.submit(factorise, read_write(tiles(0, 0)));
  ///   rt.submit(print, read(a));  // after it
  template <class Kind>
  Parts<Kind> parts(const Data<Kind>& whole, Partition partition) {
    static_assert(internal::can_be_divided<Kind>, "vectors and matrices can be divided");
    internal::check_registered(whole.handle(), "divide");
    return Parts<Kind>(*this, whole, std::move(partition));
  }

  /// @}
  /// @name Tasks
  /// @{

  /// Submits a task. Arguments, in the order of the kernel's parameters: values, which are copied into the task, and
  /// accesses (`read(data)`, `write(data)`, ..., or of lists of data: `read(vector_of_data)`). A `TaskOptions` may come
  /// first or last. Throws UsageError. Costs no allocation.
  ///
  ///   rt.submit(axpy, 3.0, read(x), read_write(y));
  ///   rt.submit(axpy, 3.0, read(x), read_write(y), TaskOptions{.priority = 2});
  template <class... Kernels, class... Arguments>
  TaskRef submit(const Codelet<Kernels...>& codelet, Arguments&&... arguments) {
    if constexpr (internal::last_is_options<Arguments...>) {
      return with_options_first([&](const TaskOptions& options, auto&&... others) -> TaskRef {
        return submit(options, codelet, std::forward<decltype(others)>(others)...);
      }, std::forward<Arguments>(arguments)...);
    } else {
      return submit_of<Kernels...>(nullptr, codelet, {}, std::forward<Arguments>(arguments)...);
    }
  }
  /// Submits a task without arguments.
  template <class... Kernels>
  TaskRef submit(const Codelet<Kernels...>& codelet, internal::Here here = std::source_location::current()) {
    return submit_of<Kernels...>(nullptr, codelet, here.line);
  }
  /// Submits a task with options.
  template <class... Kernels, class... Arguments>
  TaskRef submit(const TaskOptions& options, const Codelet<Kernels...>& codelet, Arguments&&... arguments) {
    return submit_of<Kernels...>(&options, codelet, options.where, std::forward<Arguments>(arguments)...);
  }

  /// Submits a task with its own kernel: a lambda, which is copied into the task with what it captures. Without a name,
  /// the task is called by its source line. Statistics, traces and models count tasks by these names. Tasks of one
  /// lambda with more than 256 names count under the first one from there on.
  ///
  ///   rt.submit("scale", [](double a, std::span<double> x) { for (double& v : x) v *= a; }, 2.0, read_write(x));
  template <internal::Callable Kernel, class... Arguments>
  TaskRef submit(internal::TaskName name, Kernel&& kernel, Arguments&&... arguments) {
    if constexpr (internal::last_is_options<Arguments...>) {
      return with_options_first([&](const TaskOptions& options, auto&&... others) -> TaskRef {
        return submit_kernel(&options, name, std::forward<Kernel>(kernel), std::forward<decltype(others)>(others)...);
      }, std::forward<Arguments>(arguments)...);
    } else {
      return submit_kernel(nullptr, name, std::forward<Kernel>(kernel), std::forward<Arguments>(arguments)...);
    }
  }
  /// Submits a task with its own kernel and without a name.
  template <internal::Callable Kernel, class... Arguments>
  TaskRef submit(Kernel&& kernel, Arguments&&... arguments) {
    return submit(internal::TaskName(SourceLine()), std::forward<Kernel>(kernel),
                  std::forward<Arguments>(arguments)...);
  }
  /// Submits a task with its own kernel, without name and arguments.
  template <internal::Callable Kernel>
  TaskRef submit(Kernel&& kernel, internal::Here here = std::source_location::current()) {
    return submit_kernel(nullptr, internal::TaskName(here.line), std::forward<Kernel>(kernel));
  }
  /// Submits a task with its own kernel, a name and options.
  template <internal::Callable Kernel, class... Arguments>
  TaskRef submit(const TaskOptions& options, internal::TaskName name, Kernel&& kernel, Arguments&&... arguments) {
    return submit_kernel(&options, name, std::forward<Kernel>(kernel), std::forward<Arguments>(arguments)...);
  }
  /// Submits a task with its own kernel and options, without a name.
  template <internal::Callable Kernel, class... Arguments>
  TaskRef submit(const TaskOptions& options, Kernel&& kernel, Arguments&&... arguments) {
    return submit_kernel(&options, internal::TaskName(options.where), std::forward<Kernel>(kernel),
                         std::forward<Arguments>(arguments)...);
  }

  /// Makes tasks belong to this iteration of the program's outer loop, such as the column of a factorisation or a time
  /// step, until the returned object is destroyed, unless their options say another one. A recorded task belongs to the
  /// iteration in which it was recorded, if there was one, else to that of each replay. Only traces and reports use it.
  ///
  ///   for (int step = 0; step < steps; ++step) {
  ///     const auto iteration = rt.iteration(step);
  /// Throws UsageError for a number beyond 32 bits.
  [[nodiscard]] IterationScope iteration(std::int64_t number);

  /// @}
  /// @name Loops that leave out tasks of other ranks
  /// `for_tasks_of` calls these.
  /// @{

  /// Counts the next `tasks` tasks of the flow without submitting them. All ranks go through one flow, but a rank may
  /// skip tasks that do not concern it. It must submit
  /// (a) the tasks that it runs;
  /// (b) tasks that read or write data that it owns, or whose present version it has; and tasks that write data of
  ///     which it has a copy;
  /// (c) before a task here reads data, in this flow or a later one: the last task that wrote the data;
  /// (d) tasks with `reduce` accesses, and the next task that uses their data otherwise.
  ///
  /// Skipped tasks count in `position()`. A wrong number is a JobError at the next `wait()`. A rank that skips a task
  /// that it needs may wait for ever, or use an old value; option `check_pruning` finds such mistakes. After the end of
  /// a cancelled flow the call does nothing. On one rank, which runs all tasks, it throws UsageError unless `tasks` is
  /// 0. In a recording, it holds for each replay.
  void skip_tasks(std::uint64_t tasks);
  /// Whether this rank must submit a task with these accesses by rules (a), (b) or (d) of `skip_tasks`, as data is
  /// placed now. The task is assumed to run on a rank that owns data which the task writes. Rule (c) is not checked: it
  /// depends on later tasks.
  template <class... Accesses>
  bool concerned_by(const Accesses&... accesses) const {
    static_assert(((internal::is_access<Accesses> && !internal::is_list<Accesses>) && ...),
                  "concerned_by takes accesses: read(data), read_write(data), ...");
    const std::array<dist::Use, sizeof...(Accesses)> uses{dist::Use{accesses.handle, Accesses::mode}...};
    return flow_->concerns(uses);
  }
  /// Whether loops may skip tasks: there are several ranks, and option `prune` is on.
  bool prunes() const noexcept { return flow_->prunes(); }

  /// @}
  /// @name Waiting
  /// @{

  /// Waits for all tasks, on several ranks for those of all ranks; this thread runs tasks meanwhile. When kernels
  /// threw, it throws the exception of the kernel that is earliest in the flow. With devices the newest value of a
  /// datum may be in a device's memory then: `acquire` brings it to main memory.
  void wait();
  /// Waits for one task, or for the end of a replay. Throws if the task failed or was cancelled; `FlowCancelled` if it
  /// was cancelled with its flow.
  void wait(const TaskRef& task);
  /// Waits for one task of a replay; `task` is what `submit` returned while the graph was recorded. The first call for
  /// a task that others of the recording follow waits for the whole replay; in the replays after it such a call waits
  /// for the task alone. On several ranks it waits for this rank's tasks of the replay. Throws as `wait(task)`.
  void wait(const Replay& replay, const TaskRef& task);
  /// Waits for the tasks that use the data. Throws if no value of the data exists, because a task failed or was
  /// cancelled.
  template <class Kind>
  void wait(const Data<Kind>& data) {
    wait_for_data(data.handle());
  }

  /// Pauses the workers: none begins a task, and none runs one when this returns; they sleep, so that other code has
  /// their cores. Tasks may be submitted meanwhile, as many as option `window` says. A call that would wait for a task
  /// that has not ended throws UsageError and submits nothing, and other ranks wait for work that this one does not do.
  /// Without effect while they are paused.
  void pause();
  /// Lets the workers go on. Without effect when they are not paused. The end of the runtime begins with it.
  void resume();
  bool is_paused() const noexcept;  ///< whether it is between `pause` and `resume`

  /// @}
  /// @name Cancelling a flow
  /// @{

  /// Cancels the tasks of the flow that have not begun, for instance because an iteration has converged. Any thread may
  /// call it (this one, a kernel, a callback), and any number of ranks. The ranks agree on one position of the flow:
  /// tasks up to it run, and later tasks run on no rank. `wait()` returns as usual, and a new flow begins after it.
  ///
  /// On all ranks, data then has the values that the tasks up to that position left. One case is different: a later
  /// task was submitted to `write` data on a rank that did not have the value. This data has no value there. Until it
  /// is written, tasks that read it are cancelled, and waits for it throw `FlowCancelled`. Accesses by `acquire` and
  /// explicit messages are not tasks: they take place.
  void cancel() { flow_->cancel(); }
  /// Whether the flow is cancelled and this thread has reached its end. Then submits until the next `wait()` do nothing
  /// and return empty references, so a loop should end. The answer turns to true at the same place of the flow on every
  /// rank. `acquire` still returns data whose value is here, and throws `FlowCancelled` for other data. Throws JobError
  /// when another rank has died, or has left by an exception, before the flow's end.
  bool cancelled() { return flow_->cancelled(); }
  /// This thread's position in the flow. It grows with each operation, and is the same on all ranks at the same place.
  std::uint64_t position() const noexcept { return flow_->position(); }
  /// The position up to which tasks ran in the flow that the last `wait()` ended. A task has run if `position()` was at
  /// most this right after its submit, and has not run if `position()` was at least this before its submit. Nothing:
  /// that flow was not cancelled.
  std::optional<std::uint64_t> cancelled_at() const noexcept { return flow_->cancelled_at(); }

  /// @}
  /// @name The application's own access, and events
  /// @{

  /// Waits until the application may use the data with `read`, `write` or `read_write`, and returns a view of it. On
  /// several ranks every rank calls it, and each sees the value.
  template <AccessMode mode, class Kind>
  Acquired<typename Access<mode, Kind>::View> acquire(const Access<mode, Kind>& access) {
    static_assert(mode == AccessMode::read || mode == AccessMode::write || mode == AccessMode::read_write,
                  "the application acquires data with read, write or read_write");
    internal::HeldAccess held = begin_access(access.handle, mode, access.where);  // throws when there is no handle
    return view_of<mode, Kind>(std::move(held), *access.handle);
  }

  /// Acquires the data on another memory (`memory_nodes`): the view has the pointer of that memory, as its kernels get
  /// it. The processor may not reach a device's memory; then the pointer is for the device's own functions. Throws
  /// UsageError, and OutOfMemory.
  template <AccessMode mode, class Kind>
  Acquired<typename Access<mode, Kind>::View> acquire(const Access<mode, Kind>& access, unsigned memory_node) {
    static_assert(mode == AccessMode::read || mode == AccessMode::write || mode == AccessMode::read_write,
                  "the application acquires data with read, write or read_write");
    static_assert(!internal::is_object<Kind>, "objects stay in main memory");
    internal::HeldAccess held = begin_access(access.handle, mode, access.where, memory_node);
    return {std::move(held), internal::view_in<Kind>(access.handle->replica(memory_node), *access.handle)};
  }

  /// As `acquire`, only on the data's owner; the other ranks get nothing.
  template <AccessMode mode, class Kind>
  std::optional<Acquired<typename Access<mode, Kind>::View>> acquire_at_owner(const Access<mode, Kind>& access) {
    internal::HeldAccess held = begin_access_at_owner(access.handle, mode, access.where);
    if (held == nullptr) return {};
    return view_of<mode, Kind>(std::move(held), *access.handle);
  }

  /// An event that uses data. `start(event)` runs when the data is ready, on any thread, possibly before this call
  /// returns. It must not block; what it throws fails the event, as a kernel's exception fails its task. The operation
  /// that it starts later calls `readable` (and `released`) on the event, in any order. Without a `start` (an empty
  /// function) the program completes the event whenever it likes. Tasks that read the event's data wait for `readable`;
  /// tasks that write it wait for both. When a value that the event reads does not exist, because a kernel threw, the
  /// event does not start and completes by itself. It takes place on the rank where a task with these accesses would
  /// run.
  template <class... Accesses>
  Event event(std::string name, Release release, std::function<void(Event)> start, const Accesses&... accesses) {
    static_assert((internal::is_event_access<Accesses> && ...),
                  "an event takes accesses: read(data), write(data), read_write(data)");
    const std::array<dist::Use, sizeof...(Accesses)> uses{dist::Use{accesses.handle, Accesses::mode}...};
    SourceLine where;
    ((where = accesses.where), ...);
    return submit_event(std::move(name), release, std::move(start), uses, where);
  }

  /// @}
  /// @name Ranks
  /// On one rank `fetch`, `fetch_everywhere`, `migrate` and `flush` do nothing.
  /// @{

  std::uint32_t rank() const noexcept { return flow_->rank(); }  ///< rank of this process, from 0
  std::uint32_t size() const noexcept { return flow_->size(); }  ///< number of ranks
  /// The rank that owns the data; this rank if the data has no owner.
  template <class Kind>
  std::uint32_t owner_of(const Data<Kind>& data) {
    return flow_->owner_of(named(data.handle(), "look for the owner of"));
  }

  /// Options for new data with the same owner as `data`.
  template <class Kind>
  DataOptions beside(const Data<Kind>& data, std::source_location where = std::source_location::current()) {
    return options_beside(data.handle(), where);
  }

  /// Sends the present value to `rank` before a task there asks for it.
  template <class Kind>
  void fetch(const Data<Kind>& data, std::uint32_t rank, std::source_location where = std::source_location::current()) {
    fetch_to(data.handle(), rank, where);
  }
  /// Sends the present value to all ranks.
  template <class Kind>
  void fetch_everywhere(const Data<Kind>& data, std::source_location where = std::source_location::current()) {
    fetch_to(data.handle(), std::nullopt, where);
  }
  /// Makes `rank` the owner of the data: its value moves there, and tasks that write it run there.
  template <class Kind>
  void migrate(const Data<Kind>& data, std::uint32_t rank,
               std::source_location where = std::source_location::current()) {
    migrate_to(data.handle(), rank, where);
  }
  /// Frees the copies of the data on all ranks but its owner.
  template <class Kind>
  void flush(const Data<Kind>& data) {
    flush_copies(data.handle());
  }
  /// Sends the value, once it exists, to data of the same shape on another rank. That rank calls `receive` with this
  /// rank and the same tag. Only this rank calls `send`, and the data must have no owner. Sends of one value with one
  /// tag to several ranks are one broadcast, as for inferred messages; a recipient may read the value before it has
  /// forwarded it.
  template <class Kind>
  void send(const Data<Kind>& data, std::uint32_t to, std::uint64_t tag = 0, int priority = 0) {
    send_to(data.handle(), to, tag, priority);
  }
  /// Receives data that another rank has sent by `send`: tasks submitted later read the received value.
  template <class Kind>
  void receive(const Data<Kind>& data, std::uint32_t from, std::uint64_t tag = 0) {
    internal::check_writable<Kind>();
    receive_from(data.handle(), from, tag);
  }
  /// At the next `wait()`, every rank's `value` becomes the smallest value of all ranks, where 0 does not count.
  void agree_on_least(std::shared_ptr<std::atomic<std::uint64_t>> value) { flow_->agree_on_least(std::move(value)); }
  /// Sets the policy that chooses the rank of a task that writes data of several owners. By default it is the rank to
  /// which the fewest bytes must move. All ranks must set the same policy.
  void set_placement(dist::PlacementPolicy policy) { flow_->set_placement(std::move(policy)); }
  /// Counts of tasks and messages; zeros for a job of one rank.
  dist::FlowStatistics flow_statistics() const { return flow_->statistics(); }
  /// The flow of several ranks, or null.
  dist::Flow* flow() noexcept { return several_; }

  /// @}
  /// @name Loops over ranges
  /// @{

  /// Calls `body(i)` for each i in [begin, end), by tasks, and waits for them. They are not ordered with other tasks.
  /// On several ranks each rank calls it for the whole range. Throws what `body` threw for the lowest chunk. No call of
  /// `body` begins or goes on once this has returned or thrown.
  template <class Body>
  void parallel_for(std::size_t begin, std::size_t end, const Body& body, const RangeOptions& options = {}) {
    check_not_recording("run parallel_for");
    const auto call = std::make_shared<internal::RangeCall>();
    const internal::RangeCall::Guard guard(*call);
    const auto chunk = [call, &body](std::size_t first, std::size_t last) {
      const internal::RangeCall::Chunk running(*call);
      if (!running.may_run()) return;
      for (std::size_t i = first; i < last; ++i) body(i);
    };
    wait_for(submit_chunks(begin, end, options, chunk));
  }

  /// combine(... combine(combine(neutral, map(begin)), map(begin + 1)) ..., map(end - 1)), by tasks. Chunks are
  /// combined in order, so the result is the same for any number of workers as long as the grain is given. On several
  /// ranks each rank computes the whole range.
  template <class T, class Map, class Combine>
  T map_reduce(std::size_t begin, std::size_t end, T neutral, const Map& map, const Combine& combine,
               const RangeOptions& options = {}) {
    check_not_recording("run map_reduce");
    struct Part {  // in a struct, since a vector of bool has no separate elements
      T value;
    };
    std::vector<Part> partial(chunk_count(begin, end, options), Part{neutral});
    const std::size_t grain = grain_of(end - begin, options);
    const auto call = std::make_shared<internal::RangeCall>();
    const internal::RangeCall::Guard guard(*call);
    const auto chunk = [call, &partial, &neutral, &map, &combine, begin, grain](std::size_t first, std::size_t last) {
      const internal::RangeCall::Chunk running(*call);
      if (!running.may_run()) return;
      T sum = neutral;
      for (std::size_t i = first; i < last; ++i) sum = combine(sum, map(i));
      partial[(first - begin) / grain].value = std::move(sum);
    };
    wait_for(submit_chunks(begin, end, options, chunk));
    T sum = neutral;
    for (const Part& part : partial) sum = combine(sum, part.value);
    return sum;
  }

  /// @}
  /// @name Recorded flows
  /// @{

  /// Calls `flow` and records the tasks that it submits; none of them runs. On several ranks, the recording decides
  /// which rank runs each task. It knows all readers of a version before the first replay, so each broadcast has all
  /// its recipients. Tasks, `fetch`, `migrate`, `flush`, `send` and `receive` are recorded, and on one rank events with
  /// a `start`, which each replay calls; `wait`, `acquire`, `parallel_for`, `map_reduce` and `replay` throw UsageError.
  /// `submit` returns references to recorded tasks: for `TaskOptions::after` in the same recording, for changes of the
  /// graph, and for `wait(replay, task)`. After a `migrate`, the rest of the recording sees the new owner (`owner_of`);
  /// the data itself moves in each replay.
  Graph record(const std::function<void()>& flow);
  /// Submits all tasks of the graph, at a fraction of the cost. `wait` accepts the returned reference; on several ranks
  /// it then waits for this rank's tasks. Throws UsageError when data that the graph migrates has another owner than at
  /// the recording.
  Replay replay(Graph& graph);

  /// @}
  /// @name Options, statistics and trace
  /// @{

  unsigned worker_count() const noexcept;  ///< of this process, including the calling thread if it runs tasks
  /// Whether `tandem simulate` runs the program without its kernels, so that data has no values to decide by: a loop
  /// that ends when something converges makes a fixed number of steps instead. With `--execute` data has values, and
  /// this is false.
  bool is_simulated() const noexcept;
  /// The value of an option, as text: `option("sched")`. Throws UsageError for a name that does not exist.
  std::string option(std::string_view name) const;
  const base::Config& config() const noexcept { return *config_; }  ///< all options with their values
  /// The trace of this program, to which it may add its own events. `Trace` is in tandem/trace.hpp.
  Trace& trace() noexcept { return *trace_; }
  /// Counts and times of tasks: close while tasks run, exact after a `wait()`. The times need option `stats` or
  /// `timeline`.
  StatisticsReport statistics();
  /// All runs of kernels, ordered by start. Needs option `timeline`. Call it while no task runs, after a `wait()`.
  std::vector<TimelineEvent> timeline() const;

  runtime::RuntimeCore& core() noexcept { return *core_; }           ///< for the layers below, and tests
  WorldResources& resources() noexcept { return *resources_; }       ///< for the layers below, and tests
  /// @}

 private:
  template <class Kind>
  Data<Kind> add(std::string name, const runtime::Shape& shape, const void* memory, std::size_t ld,
                 const DataOptions& options) {
    static_assert(internal::can_be_data<Kind>);
    return Data<Kind>(add_data(std::move(name), shape, memory_at(memory, ld), typeid(Kind), options, nullptr));
  }
  template <class Kind>
  Data<Kind> allocate(std::string name, const runtime::Shape& shape, const DataOptions& options) {
    static_assert(internal::can_be_data<Kind>);
    static_assert(!internal::is_constant<Kind>,
                  "data that Tandem allocates must be written first: its type cannot be const");
    return Data<Kind>(add_data(std::move(name), shape, {}, typeid(Kind), options, nullptr));
  }
  template <AccessMode mode, class Kind>
  static Acquired<typename Access<mode, Kind>::View> view_of(internal::HeldAccess access,
                                                             const runtime::Handle& handle) {
    typename Access<mode, Kind>::View view = internal::view_in<Kind>(handle.home, handle);
    if constexpr (mode == AccessMode::write && internal::is_object<Kind>) view = std::remove_cvref_t<decltype(view)>();
    return {std::move(access), view};
  }

  template <AccessMode mode, class Kind>
  static void set_access(runtime::Task& task, unsigned index, const Access<mode, Kind>& access) noexcept {
    task.accesses()[index].set(access.handle, mode);
    task.where = access.where;
  }

  /// Calls `submit(options, others...)`, where the last of `arguments` are the options.
  template <class Submit, class... Arguments>
  static TaskRef with_options_first(const Submit& submit, Arguments&&... arguments) {
    constexpr std::size_t others = sizeof...(Arguments) - 1;
    const auto all = std::forward_as_tuple(std::forward<Arguments>(arguments)...);
    return [&]<std::size_t... i>(std::index_sequence<i...>) {
      return submit(std::get<others>(all),
                    std::forward<std::tuple_element_t<i, std::tuple<Arguments&&...>>>(std::get<i>(all))...);
    }(std::make_index_sequence<others>());
  }

  template <class... Kernels, class... Arguments>
  [[gnu::always_inline]] TaskRef submit_of(const TaskOptions* options, const Codelet<Kernels...>& codelet,
                                           const SourceLine& where, Arguments&&... arguments) {
    return submit_task<internal::TaskCode<internal::TypedCore<Kernels...>, std::decay_t<Arguments>...>>(
        options, codelet.core(), where, internal::NoKernel(), std::forward<Arguments>(arguments)...);
  }

  template <class Kernel, class... Arguments>
  TaskRef submit_kernel(const TaskOptions* options, const internal::TaskName& name, Kernel&& kernel,
                        Arguments&&... arguments) {
    using Own = std::decay_t<Kernel>;
    SourceLine line = name.where;
    [[maybe_unused]] const auto note_line = [&](const auto& argument) {
      if constexpr (internal::is_access<decltype(argument)>) line = argument.where;
    };
    (note_line(arguments), ...);
    using Code = internal::TaskCode<internal::OwnKernel<Own>, std::decay_t<Arguments>...>;
    static const internal::OwnCodelets codelets = [&] {
      constexpr bool is_one_kernel = std::is_class_v<Own>;  // many functions have one type
      return internal::OwnCodelets(is_one_kernel ? name.text : std::string_view(), is_one_kernel ? line : SourceLine());
    }();
    bool is_shared = false;
    const std::shared_ptr<runtime::CodeletCore>& codelet = codelets.of(name.text, line, is_shared);
    if (!is_shared || name.text.empty() || (options != nullptr && !options->name.empty())) [[likely]]
      return submit_task<Code>(options, codelet, line, std::forward<Kernel>(kernel),
                               std::forward<Arguments>(arguments)...);
    TaskOptions renamed = options != nullptr ? *options : TaskOptions{.where = {}};
    renamed.name = name.text;
    return submit_task<Code>(&renamed, codelet, line, std::forward<Kernel>(kernel),
                             std::forward<Arguments>(arguments)...);
  }

  /// `where` is the line of a task without data.
  template <class Code, class Kernel, class... Arguments>
  [[gnu::always_inline]] TaskRef submit_task(const TaskOptions* options,
                                             const std::shared_ptr<runtime::CodeletCore>& codelet,
                                             const SourceLine& where, Kernel&& kernel, Arguments&&... arguments) {
    if (__builtin_expect(several_ != nullptr, 0))
      return submit_in_flow<Code>(options, codelet, where, std::forward<Kernel>(kernel),
                                  std::forward<Arguments>(arguments)...);
    runtime::Task* const task = begin_task(codelet, Code::ops, access_count<Code>(*codelet, arguments...));
    if (task == nullptr) return {};
    fill_or_drop<Code>(*task, std::forward<Kernel>(kernel), std::forward<Arguments>(arguments)...);
    if constexpr (Code::kAccesses == 0 && Code::kLists == 0) task->where = where;
    return options != nullptr ? enter_task(*task, *options) : enter_task(*task);
  }

  /// On several ranks: nothing is filled before it is known that the task runs here.
  template <class Code, class Kernel, class... Arguments>
  TaskRef submit_in_flow(const TaskOptions* options, const std::shared_ptr<runtime::CodeletCore>& codelet,
                         const SourceLine& line, Kernel&& kernel, Arguments&&... arguments) {
    std::conditional_t<Code::kLists == 0, std::array<dist::Use, Code::kAccesses>, std::vector<dist::Use>> uses;
    if constexpr (Code::kLists != 0) uses.resize(access_count<Code>(*codelet, arguments...));
    SourceLine where = line;  // line of the last access, if there is one
    [[maybe_unused]] std::size_t index = 0;
    [[maybe_unused]] const auto note = [&](const auto& argument) {
      using Argument = std::remove_cvref_t<decltype(argument)>;
      if constexpr (internal::is_list<Argument>)
        for (std::size_t i = 0; i < argument.count; ++i) uses[index++] = {argument.first[i].handle(), Argument::mode};
      else if constexpr (internal::is_access<Argument>) uses[index++] = {argument.handle, Argument::mode};
      if constexpr (internal::is_access<Argument>) where = argument.where;
    };
    (note(arguments), ...);
    constexpr bool reduces = (false || ... || internal::reduces<Arguments>);
    const bool looks = !reduces && options == nullptr;
    if (looks && skip_in_flow(uses, where)) return {};
    internal::FlowTask call{
        .uses = uses, .options = options, .reduces = reduces, .looked = looks, .wish = {.where = where}};
    runtime::Task* const task = begin_in_flow(call, codelet, Code::ops);
    if (task == nullptr) return {};
    fill_or_drop<Code>(*task, std::forward<Kernel>(kernel), std::forward<Arguments>(arguments)...);
    if constexpr (Code::kAccesses == 0 && Code::kLists == 0) task->where = where;
    return enter_in_flow(call, *task);
  }

  template <class Code, class... Arguments>
  [[gnu::always_inline]] static unsigned access_count([[maybe_unused]] const runtime::CodeletCore& codelet,
                                                      [[maybe_unused]] const Arguments&... arguments) {
    if constexpr (Code::kLists == 0) return Code::kAccesses;
    else {
      std::size_t count = Code::kAccesses;
      SourceLine where;
      const auto add = [&](const auto& argument) {
        if constexpr (internal::is_list<decltype(argument)>) {
          count += argument.count;
          where = argument.where;
        }
      };
      (add(arguments), ...);
      internal::check_access_count(codelet.name, count, where);
      return static_cast<unsigned>(count);
    }
  }

  /// If the copy of a value throws, there is no task.
  template <class Code, class Kernel, class... Arguments>
  [[gnu::always_inline]] void fill_or_drop(runtime::Task& task, Kernel&& kernel, Arguments&&... arguments) {
    try {
      fill<Code>(task, std::forward<Kernel>(kernel), std::forward<Arguments>(arguments)...);
    } catch (...) {
      drop_unfilled(task);
      throw;
    }
  }

  template <class Code, class Kernel, class... Arguments>
  static void fill(runtime::Task& task, Kernel&& kernel, Arguments&&... arguments) {
    using Values = typename Code::Values;
    using Inner = typename Code::Inner;
    if constexpr (Code::kLists != 0) {
      [[maybe_unused]] std::size_t list = 0;
      const auto note = [&](const auto& argument) {
        if constexpr (internal::is_list<decltype(argument)>)
          Code::stored(task).lengths[list++] = static_cast<std::uint32_t>(argument.count);
      };
      (note(arguments), ...);
    }
    if constexpr (!std::is_same_v<Inner, Values>) {
      new (static_cast<void*>(&Code::inner(task)))
          Inner{values_of<Values>(internal::ValueIndices<Arguments...>(), std::forward<Arguments>(arguments)...),
                 std::forward<Kernel>(kernel)};
    } else if constexpr (std::tuple_size_v<Values> != 0) {
      new (static_cast<void*>(&Code::inner(task)))
          Values(values_of<Values>(internal::ValueIndices<Arguments...>(), std::forward<Arguments>(arguments)...));
    }
    [[maybe_unused]] unsigned index = 0;
    [[maybe_unused]] const auto set = [&](const auto& argument) {
      using Argument = std::remove_cvref_t<decltype(argument)>;
      if constexpr (internal::is_list<Argument>) {
        for (std::size_t i = 0; i < argument.count; ++i)
          task.accesses()[index++].set(argument.first[i].handle(), Argument::mode);
        task.where = argument.where;
      } else if constexpr (internal::is_access<Argument>) {
        set_access(task, index++, argument);
      }
    };
    (set(arguments), ...);
  }
  template <class Values, std::size_t... i, class... Arguments>
  [[gnu::always_inline]] static Values values_of(std::index_sequence<i...>, Arguments&&... arguments) {
    return Values(internal::argument_at<i>(std::forward<Arguments>(arguments)...)...);
  }

  // --- functions for parts
  friend class internal::PartPlan;
  void check_division(runtime::Handle& whole, const SourceLine& where);
  /// Throws OutOfMemory if the whole and such a part do not fit into main memory at once.
  void check_copies_fit(runtime::Handle& whole, std::size_t largest_part, const SourceLine& where);
  /// `shares`: the part lies in the memory of the whole, where that is.
  runtime::Handle* add_part(bool shares, std::string name, runtime::Handle& whole, const runtime::Shape& shape,
                            std::array<std::size_t, 2> first, const std::type_info& type,
                            const std::source_location& where);
  /// Submits the task, also behind the end of a flow.
  void order_parts(const internal::PartOrder& order);

  // --- functions for tiles
  friend class internal::TileRegistry;
  /// Reserves numbers; returns that of the first tile.
  std::uint32_t reserve_tiles(const internal::TileRegistry& tiles, std::size_t element_bytes);
  runtime::Handle* allocate_tile(std::string name, const runtime::Shape& shape, const std::type_info& type,
                                 const DataOptions& options, std::uint32_t number);

  // --- functions for the templates
  static runtime::Replica memory_at(const void* memory, std::size_t ld) { return {const_cast<void*>(memory), ld}; }
  /// Registers data in the program's memory; without `memory`, Tandem allocates it.
  runtime::Handle* add_data(std::string name, const runtime::Shape& shape, std::optional<runtime::Replica> memory,
                            const std::type_info& type, const DataOptions& options, const runtime::ObjectOps* object,
                            std::unique_ptr<const runtime::Layout> layout = nullptr);
  /// Begins a task that the caller fills; null: the flow was cancelled, and is over.
  runtime::Task* begin_task(const std::shared_ptr<runtime::CodeletCore>& codelet, const runtime::TaskOps& ops,
                            unsigned accesses);
  TaskRef enter_task(runtime::Task& task);
  TaskRef enter_task(runtime::Task& task, const TaskOptions& options);
  /// Notes a task without options on several ranks: true if it does not concern this rank.
  bool skip_in_flow(std::span<const dist::Use> uses, const SourceLine& where);
  /// As `begin_task`, on several ranks; null: the task does not run here.
  runtime::Task* begin_in_flow(internal::FlowTask& call, const std::shared_ptr<runtime::CodeletCore>& codelet,
                               const runtime::TaskOps& ops);
  TaskRef enter_in_flow(internal::FlowTask& call, runtime::Task& task);
  Event submit_event(std::string name, Release release, std::function<void(Event)> start,
                     std::span<const dist::Use> uses, const SourceLine& where);
  Event record_event(std::string name, Release release, std::function<void(Event)> start,
                     std::span<const dist::Use> uses, const SourceLine& where);
  Event record_event_in_flow(const std::string& name, Release release, const std::function<void(Event)>& start,
                             std::span<const dist::Use> uses, const SourceLine& where);
  std::shared_ptr<internal::EventState> enter_event(std::string name, Release release, std::function<void(Event)> start,
                                                    std::span<const dist::Use> uses, const SourceLine& where);
  internal::HeldAccess begin_access(runtime::Handle* handle, AccessMode mode, const SourceLine& where,
                                    unsigned node = 0);
  void check_node(const char* action, unsigned node) const;
  void prefetch_to(runtime::Handle* handle, unsigned node, const SourceLine& where);
  internal::HeldAccess begin_access_at_owner(runtime::Handle* handle, AccessMode mode, const SourceLine& where);
  void wait_for_data(runtime::Handle* handle);
  DataOptions options_beside(runtime::Handle* handle, const std::source_location& where);
  void fetch_to(runtime::Handle* handle, std::optional<std::uint32_t> rank, const SourceLine& where);
  void migrate_to(runtime::Handle* handle, std::uint32_t rank, const SourceLine& where);
  void flush_copies(runtime::Handle* handle);
  void release_memory_of(runtime::Handle* handle, bool now);
  void send_to(runtime::Handle* handle, std::uint32_t to, std::uint64_t tag, int priority);
  void receive_from(runtime::Handle* handle, std::uint32_t from, std::uint64_t tag);

  // --- other functions
  void check_options(const std::string& name, const DataOptions& options, const runtime::ObjectOps* object) const;
  bool is_over() { return flow_->is_over(); }
  void check_access_behind_end(runtime::Handle& handle, AccessMode mode);
  void check_divided_behind_end(const runtime::Handle& handle, AccessMode mode);
  void share_access(runtime::Handle& handle, AccessMode mode, const SourceLine& where);
  dist::Flow& own_flow(const char* action, runtime::Handle* handle);
  void set_options(const TaskOptions& options, runtime::Task& task);
  void drop_unfilled(runtime::Task& task) noexcept;
  void check_rank(const TaskOptions& options, runtime::Task& task);
  void say_once_that_nobody_owns_data();

  std::size_t grain_of(std::size_t count, const RangeOptions& options) const noexcept;
  std::size_t chunk_count(std::size_t begin, std::size_t end, const RangeOptions& options) const noexcept;
  /// Submits one task per chunk: `chunk(first, last)`.
  template <class Chunk>
  std::vector<TaskRef> submit_chunks(std::size_t begin, std::size_t end, const RangeOptions& options,
                                     const Chunk& chunk) {
    using Code = internal::TaskCode<internal::OwnKernel<Chunk>, std::size_t, std::size_t>;
    std::vector<TaskRef> tasks;
    if (begin >= end) return tasks;
    static const internal::OwnCodelets codelets({}, {});
    bool is_shared = false;  // then they count as tasks without a name
    const std::shared_ptr<runtime::CodeletCore>& codelet = codelets.of(options.name, {}, is_shared);
    const std::size_t grain = grain_of(end - begin, options);
    for (std::size_t first = begin; first < end; first += std::min(grain, end - first))
      tasks.push_back(
          submit_task<Code>(nullptr, codelet, SourceLine(), chunk, first, first + std::min(grain, end - first)));
    return tasks;
  }
  void wait_for(const std::vector<TaskRef>& tasks);
  void check_not_recording(const char* action) const;
  void start(const Options& program);
  void start_here(const Options& program);
  void start_virtually(const Options& program);
  void join_ranks(std::unique_ptr<comm::Endpoint> endpoint, const dist::FlowOptions& options);
  void connect_trace();
  void set_start(runtime::Task& task, bool counts_as_task, std::function<void(runtime::Task&)> start);
  void leave_to_parent() noexcept;

  std::unique_ptr<base::Config> config_;
  std::unique_ptr<WorldResources> resources_;
  std::unique_ptr<Trace> trace_;
  std::unique_ptr<runtime::RuntimeCore> core_;
  std::unique_ptr<dist::ProgramFlow> flow_;
  dist::Flow* several_ = nullptr;            ///< `flow_`, on several ranks
  /// Exit status of the program; null in a world that the caller made.
  std::unique_ptr<internal::ExitStatus> exit_status_;
  std::unique_ptr<base::ThreadWatch> company_;  ///< real world, with a BLAS in the program, until it has warned
  std::size_t data_count_ = 0;                   ///< number of data registered so far
  std::size_t owned_data_ = 0;                   ///< number of those with an owner
  internal::RecordedParts* recorded_parts_ = nullptr;  ///< partitions of the present recording
  std::uint64_t part_plans_ = 0;                 ///< number of partitions made
  bool ownerless_warning_due_ = true;            ///< on several ranks, until the first wait
};

}  // namespace tandem
