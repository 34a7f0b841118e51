// tandem/runtime/submit/data_registry.cpp: registers data, and frees unused data.
#include "tandem/runtime/submit/data_registry.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <functional>
#include <iterator>
#include <memory>
#include <utility>

#include "tandem/runtime/exec/log_lines.hpp"
#include "tandem/runtime/task/describe.hpp"
#include "tandem/base/exceptions.hpp"

namespace tandem::runtime {

namespace {
constexpr std::size_t kManyOrphans = 64;  ///< number from which on registration tries to free some
constexpr unsigned kLooks = 4;            ///< orphans that a registration looks at: more than are dropped meanwhile
}

/// Error for data of this size; empty: it may be registered.
std::string why_too_large(const Shape& shape, std::size_t ld, const Layout* layout) {
  constexpr std::size_t least_negative = SIZE_MAX / 2 + 1;
  std::string what;
  bool looks_negative = false;
  if (layout != nullptr) {
    if (layout->is_within(kMostDataBytes)) return {};
    what = fmt::format("extents {}, with strides {}", fmt::join(layout->extents(), " x "),
                       fmt::join(layout->strides(), ", "));
    looks_negative = std::ranges::any_of(layout->extents(), [](std::size_t size) { return size >= least_negative; });
  } else {
    if (shape.is_within(kMostDataBytes, ld)) return {};
    what = fmt::format("{} x {} elements", shape.rows, shape.cols);
    if (shape.is_within(kMostDataBytes)) what += fmt::format(" with leading dimension {}", ld);
    looks_negative = std::max(shape.rows, shape.cols) >= least_negative;
  }
  return fmt::format("{} of {} bytes each are more than the {} bytes that one piece of data can have{}", what,
                     shape.element_bytes, kMostDataBytes,
                     looks_negative ? "; a negative number that became unsigned looks like this" : "");
}

std::uint32_t DataRegistry::next_number() noexcept {
  static std::atomic<std::uint32_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

Handle* DataRegistry::add(std::string name, const Shape& shape, void* memory, std::size_t ld,
                          const std::type_info& type, const SourceLine& where, std::unique_ptr<const Layout> layout) {
  thread_.check("register data");
  if (const std::string why = why_too_large(shape, memory != nullptr ? ld : 0, layout.get()); !why.empty())
    throw UsageError(fmt::format("data '{}' (at {}): {}", name, describe(where), why));
  if (layout != nullptr && !layout->is_sound())
    throw UsageError(fmt::format(
        "data '{}' (at {}): the strides of its array put several elements in one place; each stride must be larger "
        "than what the dimensions with smaller ones span",
        name, describe(where)));
  if (shape.rows > 1 && shape.cols > 1 && ld < shape.rows && memory != nullptr)
    throw UsageError(fmt::format("data '{}' (at {}): its leading dimension {} is less than its {} rows", name,
                                 describe(where), ld, shape.rows));
  if (memory == nullptr && ld == SIZE_MAX)
    throw UsageError(fmt::format("data '{}' (at {}): a null pointer was given as its memory", name, describe(where)));
  auto handle = std::make_unique<Handle>();
  handle->name = std::move(name);
  handle->shape = shape;
  handle->type = &type;
  handle->registry = this;
  handle->registry_number.store(number_, std::memory_order_relaxed);
  handle->registered_at = where;
  handle->layout = std::move(layout);
  if (handle->layout != nullptr && memory == nullptr)
    handle->layout = std::make_unique<const Layout>(handle->layout->packed());
  if (memory_.node_count() > 1) handle->elsewhere = std::make_unique<Handle::Place[]>(memory_.node_count() - 1);
  if (memory_.is_limited()) handle->residence = std::make_unique<Residence>(memory_.node_count());
  if (memory != nullptr) {
    handle->home = Replica{memory, ld, false};
    handle->user_memory = true;
    handle->valid.store(1, std::memory_order_relaxed);
    handle->flow.has_value = true;
    check_memory(*handle);
  }
  handle->number = count_++;
  if (observer_.added) observer_.added(*handle);
  const std::size_t orphans = orphans_.size() + orphans_of_others_count_.load(std::memory_order_relaxed);
  if (orphans > kManyOrphans && !recording_) free_some_orphans();
  handles_.insert(handle.get());
  return handle.release();
}

/// Throws UsageError if other data has some of the memory.
void DataRegistry::check_memory(Handle& handle) {
  if (user_memory_.add(handle) == nullptr) return;
  take_from_others(false);  // the other data may have been dropped on another thread
  const Handle* const other = user_memory_.add(handle);
  if (other == nullptr) return;
  const bool same = other->home.pointer == handle.home.pointer && other->shape == handle.shape;
  throw UsageError(fmt::format(
      "{} is given {} {}; memory belongs to one piece of data at a time: use that one, or unregister it first",
      handle.described(), same ? "the memory of" : "memory that overlaps with that of", other->described()));
}

void DataRegistry::unregister(Handle& handle) {
  thread_.check("unregister data");
  check_owned("unregister", handle);
  // The value must be in the user's memory if nothing else keeps it. Without a value there is nothing to fetch.
  const bool wanted = handle.user_memory && handle.flow.has_value;
  if (!nobody_uses(handle) || (wanted && !handle.valid_on(0))) users_->wait_for_users(handle, wanted);
  // A failed value is not waited for, and must not reach memory that is the user's again.
  if (handle.user_memory && memory_.may_come_home(handle)) users_->wait_for_users(handle, false);
  // Only the flow's own references remain, which `let_go` drops.
  let_go(handle);
}

void DataRegistry::let_go(Handle& handle) noexcept {
  if (end_of_data_.let_go) end_of_data_.let_go(handle);
  if (observer_.removed) observer_.removed(handle);
  if (handle.user_memory) user_memory_.remove(handle);
  memory_.free_replicas(handle);
  handles_.erase(&handle);
  had_value_.erase(&handle);
  users_->forget(handle);
  handle.flow.forget();
  {
    std::lock_guard guard(end_mutex());
    handle.registry = nullptr;
    handle.registry_number.store(0, std::memory_order_relaxed);
  }
  handle.drop_reference();
}

void DataRegistry::drop_owner(Handle* handle) noexcept {
  std::uint32_t owners = handle->owners.load(std::memory_order_acquire);
  while (owners > 1)
    if (handle->owners.compare_exchange_weak(owners, owners - 1, std::memory_order_acq_rel, std::memory_order_acquire))
      return;
  // This is the last owner: no further owner can be made from it, except that a recorded graph may still take it over.
  DataRegistry* own = nullptr;
  {
    // While this is held, a handle that has a registry keeps it.
    const std::lock_guard guard(end_mutex());
    if (DataRegistry* const registry = handle->registry; registry != nullptr) {
      if (!registry->thread_.is_this()) {
        registry->orphans_of_others_.push_back(handle);
        registry->orphans_of_others_count_.store(registry->orphans_of_others_.size(), std::memory_order_relaxed);
        return;
      }
      own = registry;  // only this thread destroys it
    }
  }
  if (own != nullptr) own->end_on_submitting_thread(*handle);
  else handle->drop_reference();
}

/// The process's mutex, never destroyed: a thread may drop data while another destroys its runtime.
std::mutex& DataRegistry::end_mutex() noexcept {
  static std::mutex* const mutex = new std::mutex;
  return *mutex;
}

void DataRegistry::end_on_submitting_thread(Handle& handle) noexcept {
  const auto logged = [&](const auto& action) {
    try {
      action();
    } catch (const std::exception& error) {
      log_lines(log_, fmt::format("at the end of {}: ", handle.described()), error.what());
    }
  };
  logged([&] {
    if (end_of_data_.abandoned) end_of_data_.abandoned(handle);
  });
  if (!handle.user_memory) {
    give_up(handle);
    return orphans_.push_back(&handle);
  }
  logged([&] { unregister(handle); });
  handle.drop_reference();
}

/// The last owner of memory of Tandem's is gone. If later tasks may see the value, for a sum or for the parts of the
/// whole, it stays an ordinary value.
void DataRegistry::give_up(Handle& handle) noexcept {
  const bool is_divided = handle.division != nullptr || handle.is_part || handle.has_parts;
  if (handle.residence == nullptr || is_divided || handle.flow.kind == GroupKind::reducers) return;
  memory_.note_abandoned(handle);
  users_->note_dropped();
}

bool DataRegistry::check_invariants(TaskId last) const {
  return std::all_of(handles_.begin(), handles_.end(), [&](Handle* handle) { return check_handle(*handle, last); });
}

bool DataRegistry::check_handle(Handle& handle, TaskId last) const {
  if (!owns(handle) || handle.registry != this || handle.references.load() == 0) return false;
  const bool has_own_memory = handle.home.pointer != nullptr && !handle.home.owned;
  if ((handle.user_memory || handle.is_part) != has_own_memory) return false;
  const auto is_past = [last](const TaskRef& task) {
    return task.task == nullptr || (task.id != 0 && task.id <= last);
  };
  if (!is_past(handle.flow.writer) || !std::all_of(handle.flow.members.begin(), handle.flow.members.end(), is_past))
    return false;
  return (handle.valid.load() & ~Handle::kMoving) >> memory_.node_count() == 0;
}

/// Among many members the last one most likely runs, so it is checked first.
bool DataRegistry::nobody_uses(const Handle& handle) noexcept {
  const FlowState& flow = handle.flow;
  if (flow.kind == GroupKind::reducers || !has_ended(flow.writer)) return false;
  return std::all_of(std::reverse_iterator(flow.members.end()), std::reverse_iterator(flow.members.begin()),
                     [](const TaskRef& member) { return has_ended(member); });
}

/// Moves data that other threads have dropped to the orphans. Data over the user's memory is unregistered, which may
/// wait, unless `all` will be freed as it is.
void DataRegistry::take_from_others(bool all) {
  std::vector<Handle*> others;
  {
    const std::lock_guard guard(end_mutex());
    others = std::exchange(orphans_of_others_, {});
    orphans_of_others_count_.store(0, std::memory_order_relaxed);
  }
  while (!others.empty()) {
    Handle& handle = *others.back();
    if (!owns(handle) || !handle.user_memory || all) {
      if (owns(handle) && !handle.user_memory) give_up(handle);
      orphans_.push_back(&handle);
      others.pop_back();
      continue;
    }
    try {
      unregister(handle);
    } catch (...) {  // the others stay where they were
      const std::lock_guard guard(end_mutex());
      orphans_of_others_.insert(orphans_of_others_.end(), others.begin(), others.end());
      orphans_of_others_count_.store(orphans_of_others_.size(), std::memory_order_relaxed);
      throw;
    }
    others.pop_back();
    handle.drop_reference();
  }
}

bool DataRegistry::is_used(const Handle& orphan) noexcept {
  ++looked_at_;
  return owns(orphan) && !nobody_uses(orphan);
}

void DataRegistry::free_orphan(Handle& orphan) noexcept {
  if (owns(orphan)) let_go(orphan);
  orphan.drop_reference();
}

void DataRegistry::free_orphans(bool all) {
  take_from_others(all);
  next_orphan_ = 0;
  std::vector<Handle*> orphans = std::exchange(orphans_, {});  // the end of data may drop other data
  std::erase_if(orphans, [&](Handle* handle) {
    if (!all && is_used(*handle)) return false;
    free_orphan(*handle);
    return true;
  });
  orphans_.insert(orphans_.end(), orphans.begin(), orphans.end());
}

void DataRegistry::free_some_orphans() {
  take_from_others(false);
  for (unsigned looks = 0; looks < kLooks && !orphans_.empty(); ++looks) {
    if (next_orphan_ >= orphans_.size()) next_orphan_ = 0;
    Handle& orphan = *orphans_[next_orphan_];
    if (is_used(orphan)) {
      ++next_orphan_;
      continue;
    }
    orphans_[next_orphan_] = orphans_.back();
    orphans_.pop_back();
    free_orphan(orphan);
  }
}

void DataRegistry::unregister_all() {
  while (!handles_.empty()) unregister(**handles_.begin());
}

void DataRegistry::free_all() noexcept {
  free_orphans(true);
  while (!handles_.empty()) let_go(**handles_.begin());
  free_orphans(true);  // data that other threads have dropped meanwhile; no handle leads to this registry any more
}

void DataRegistry::refuse(const char* action, const Handle& handle, const SourceLine& where) const {
  throw UsageError(fmt::format(
      "cannot {} {}{}: {}", action, handle.described(), where ? fmt::format(" (at {})", describe(where)) : "",
      handle.registry == nullptr ? "it was unregistered before" : "it belongs to another runtime"));
}

bool DataRegistry::forget_recorded_tasks(Handle& handle, bool all) noexcept {
  ++looked_at_;
  const auto is_recorded = [](const TaskRef& ref) { return ref.task != nullptr && ref.task->recorded; };
  const auto is_over = [&](const TaskRef& ref) { return is_recorded(ref) && (all || has_ended(ref)); };
  FlowState& flow = handle.flow;
  if (is_over(flow.writer)) flow.writer = {};
  flow.members.erase_if(is_over);
  return is_recorded(flow.writer) || std::any_of(flow.members.begin(), flow.members.end(), is_recorded);
}

void DataRegistry::end_recording() noexcept {
  recording_ = false;
  for (const auto& [handle, had_value] : std::exchange(had_value_, {})) {
    ++looked_at_;
    handle->flow.has_value = had_value;
  }
}

}  // namespace tandem::runtime
