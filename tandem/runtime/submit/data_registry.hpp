// tandem/runtime/submit/data_registry.hpp: the data of a runtime, from registration to its end.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <typeinfo>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "tandem/base/log.hpp"
#include "tandem/runtime/data/handle.hpp"
#include "tandem/runtime/memory/memory.hpp"
#include "tandem/runtime/submit/submitting_thread.hpp"
#include "tandem/runtime/submit/user_memory.hpp"

namespace tandem::runtime {

/// What the registry needs from the flow of tasks.
class DataUsers {
 public:
  virtual ~DataUsers() = default;
  /// Waits for all tasks that use `handle`; with `wanted`, its value is then in the user's memory. May throw the
  /// exceptions of a wait.
  virtual void wait_for_users(Handle& handle, bool wanted) = 0;
  /// Called when the registry forgets `handle`.
  virtual void forget(Handle& handle) noexcept = 0;
  /// Called when the program has dropped data; submission may then wait.
  virtual void note_dropped() noexcept = 0;
};

/// Callbacks of the trace and the layer above.
struct DataObserver {
  std::function<void(const Handle&)> added;
  /// Called when the last use of the data has ended.
  std::function<void(Handle&)> removed;
};

/// Error text for data of this shape, or of this array, that is too large to be registered, with the numbers; empty: it
/// is not. `ld`: distance of its columns in the program's memory, in elements, or 0.
std::string why_too_large(const Shape& shape, std::size_t ld = 0, const Layout* layout = nullptr);

/// The registered data of one runtime.
///
/// Threads: the submitting thread calls everything but `drop_owner`, which any thread may call, also once the runtime
/// is gone.
///
/// Life of data without `unregister`: the last owner drops it. On the submitting thread the registry reports that
/// (`EndOfData::abandoned`) and keeps the handle as an *orphan* until no task uses it; data over the user's memory is
/// unregistered at once instead. On another thread the handle goes to a list under `end_mutex`, and the submitting
/// thread takes it from there.
///
/// With many orphans, each registration looks at the next few of them, in turn: its cost does not depend on how many
/// are in use, and each of N orphans is looked at once in N / `kLooks` registrations.
///
/// A handle loses its registry under `end_mutex`, so the last owner and the registry agree on which of them frees it.
/// The mutex is the process's: a registry may be destroyed while another thread looks at it through a handle.
class DataRegistry {
 public:
  DataRegistry(const SubmittingThread& thread, Memory& memory, base::Log& log, std::uint32_t number)
      : thread_(thread), memory_(memory), log_(log), number_(number) {}
  DataRegistry(const DataRegistry&) = delete;
  DataRegistry& operator=(const DataRegistry&) = delete;
  /// Sets the users before the first data.
  void connect(DataUsers& users) noexcept { users_ = &users; }

  /// A number, from 1, that no other registry of the process has.
  static std::uint32_t next_number() noexcept;

  /// Registers data. `memory` null: Tandem allocates it at the first write. `ld`: the distance of columns, in elements.
  /// `layout`: dimensions of an array, whose shape is one column. Throws UsageError, also when other data has some of
  /// the memory. The result belongs to its owners (`Handle::owners`, 1 at first).
  Handle* add(std::string name, const Shape& shape, void* memory, std::size_t ld, const std::type_info& type,
              const SourceLine& where, std::unique_ptr<const Layout> layout = nullptr);
  /// Waits for the tasks that use the data, brings the value to the user's memory, and forgets the data. Never throws
  /// for failed kernels.
  void unregister(Handle& handle);
  /// Whether the data was registered here, and still is. Compares numbers, since the handle's line that each submission
  /// reads has no room for another pointer.
  bool owns(const Handle& handle) const noexcept {
    return handle.registry_number.load(std::memory_order_relaxed) == number_;
  }
  /// Throws UsageError unless `owns`. `action` completes "cannot ...".
  void check_owned(const char* action, const Handle& handle, const SourceLine& where = {}) const {
    if (__builtin_expect(!owns(handle), 0)) refuse(action, handle, where);
  }
  /// Drops one owner of `handle`; the last one ends it. Any thread.
  static void drop_owner(Handle* handle) noexcept;

  /// Callbacks on the submitting thread. `abandoned`: the program has dropped the last reference, at this position of
  /// the flow. `let_go`: later, when no task uses the data any more.
  struct EndOfData {
    std::function<void(Handle&)> abandoned;
    std::function<void(Handle&)> let_go;
  };
  void on_end_of_data(EndOfData callbacks) { end_of_data_ = std::move(callbacks); }
  void set_observer(DataObserver observer) { observer_ = std::move(observer); }

  std::size_t count() const noexcept { return handles_.size(); }
  template <class Visit>
  void for_each(Visit visit) const {
    for (Handle* handle : handles_) visit(*handle);
  }
  /// Makes the flow forget ended recorded tasks as users of `handle`; with `all`, all recorded tasks. True: the flow
  /// names others. The data may be unregistered.
  bool forget_recorded_tasks(Handle& handle, bool all) noexcept;

  /// Begins a recording: data seems to be written by recorded tasks until the recording ends.
  void begin_recording() noexcept { recording_ = true; }
  /// Notes that `handle` gets or loses a value, which the end of a recording takes back.
  void note_value(Handle& handle) {
    if (recording_) had_value_.try_emplace(&handle, handle.flow.has_value);
  }
  void end_recording() noexcept;

  /// Checks that all registered data is as `Handle` and `FlowState` state: each is owned here and referred to, has its
  /// own memory if that is the user's, a value if a node has one, and names no task behind position `last` of the flow.
  /// By the submitting thread.
  bool check_invariants(TaskId last) const;

  /// Frees orphans that no task uses.
  void free_unused() { free_orphans(false); }
  /// Number of data looked at besides the one concerned: by registrations, recordings and ends of recorded graphs. For
  /// tests of their cost.
  std::uint64_t looked_at() const noexcept { return looked_at_; }
  /// Unregisters all data.
  void unregister_all();
  /// Frees all data as it is; nothing runs any more.
  void free_all() noexcept;

 private:
  [[noreturn]] void refuse(const char* action, const Handle& handle, const SourceLine& where) const;
  static std::mutex& end_mutex() noexcept;
  static bool nobody_uses(const Handle& handle) noexcept;
  void give_up(Handle& handle) noexcept;
  bool check_handle(Handle& handle, TaskId last) const;
  void end_on_submitting_thread(Handle& handle) noexcept;
  void take_from_others(bool all);
  void free_orphans(bool all);
  void free_some_orphans();
  bool is_used(const Handle& orphan) noexcept;
  void free_orphan(Handle& orphan) noexcept;
  void check_memory(Handle& handle);
  void let_go(Handle& handle) noexcept;

  const SubmittingThread& thread_;
  Memory& memory_;
  base::Log& log_;
  const std::uint32_t number_;
  DataUsers* users_ = nullptr;
  EndOfData end_of_data_;
  DataObserver observer_;
  std::uint32_t count_ = 0;  ///< number of data registered so far
  std::unordered_set<Handle*> handles_;
  std::vector<Handle*> orphans_;            ///< data without owners, over memory of Tandem's, to be freed when unused
  std::size_t next_orphan_ = 0;             ///< orphan that a registration looks at next
  std::uint64_t looked_at_ = 0;
  UserMemory user_memory_;
  bool recording_ = false;
  /// Whether data had a value before the present recording; only data for which the recording may change that.
  std::unordered_map<Handle*, bool> had_value_;
  std::vector<Handle*> orphans_of_others_;  ///< orphans whose last owner was on another thread; under `end_mutex`
  /// Size of `orphans_of_others_`; changed under `end_mutex`, a hint for others.
  std::atomic<std::size_t> orphans_of_others_count_{0};
};

}  // namespace tandem::runtime
