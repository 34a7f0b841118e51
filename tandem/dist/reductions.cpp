// tandem/dist/reductions.cpp: shares of sums, and the tree of tasks that gathers them.
#include "tandem/dist/reductions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <utility>
#include <vector>

#include "tandem/base/exceptions.hpp"
#include "tandem/dist/flow.hpp"
#include "tandem/dist/place.hpp"
#include "tandem/dist/placement.hpp"
#include "tandem/dist/pruning.hpp"
#include "tandem/dist/recording.hpp"
#include "tandem/runtime/exec/kernel_call.hpp"
#include "tandem/runtime/runtime_core.hpp"
#include "tandem/runtime/task/describe.hpp"
#include "tandem/runtime/task/main_memory_codelet.hpp"

namespace tandem::dist {

using runtime::Handle;
using runtime::KernelCall;
using runtime::Task;
using runtime::TaskOps;

namespace {

constexpr TaskOps kStart{.invoke = [](KernelCall& call) {
  const Handle& share = *call.task.accesses()[0].handle();
  const runtime::Replica memory = call.memory(0);
  share.reduction->init(memory.pointer, memory.ld, share.shape);
}, .always = true};

constexpr TaskOps kGather{.invoke = [](KernelCall& call) {
  const Handle& into = *call.task.accesses()[0].handle();
  const runtime::Replica sum = call.memory(0), more = call.memory(1);
  into.reduction->combine(sum.pointer, sum.ld, more.pointer, more.ld, into.shape);
}, .always = true};

/// Functions of `handle`'s reduction for a share of it, which may live longer: functions of arrays look at the handle.
std::unique_ptr<runtime::Reduction> reduction_for_share(Handle& handle) {
  handle.references.fetch_add(1, std::memory_order_relaxed);
  const std::shared_ptr<Handle> kept(&handle, [](Handle* last) { last->drop_reference(); });
  auto reduction = std::make_unique<runtime::Reduction>();
  reduction->init = [kept, init = handle.reduction->init](auto&&... call) { init(call...); };
  reduction->combine = [kept, combine = handle.reduction->combine](auto&&... call) { combine(call...); };
  return reduction;
}

}  // namespace

Reductions::Reductions(runtime::RuntimeCore& core, Flow& flow, const Placement& placement, const Pruning& pruning,
                       Recording* recording)
    : core_(core), flow_(flow), placement_(placement), pruning_(pruning), recording_(recording) {}
Reductions::~Reductions() = default;

void Reductions::DropOwner::operator()(Handle* handle) const noexcept { runtime::DataRegistry::drop_owner(handle); }

// --- tasks that add

void Reductions::share(std::span<Use> uses, Wish& wish) {
  for (const Use& use : uses)
    if (use.handle == nullptr || !core_.data().owns(*use.handle)) return;  // refused when it is entered
  for (const Use& use : uses)
    if (pruning_.is_skipping() && use.mode == AccessMode::reduce)
      pruning_.refuse_skip("has a reduce access to", *use.handle, wish.where);
  const std::uint32_t executor = placement_.executor_of(uses, wish, recording_);
  if (executor == kEverywhere) return;
  wish.on = executor;
  for (const Use& use : uses)
    if (use.mode != AccessMode::reduce && use.mode != AccessMode::scratch) settle(*use.handle);
  for (Use& use : uses) {
    if (use.mode != AccessMode::reduce) continue;
    const std::uint32_t owner = owner_of(*use.handle, recording_);
    Place& place = place_of(*use.handle);
    // A recording changes no data; whether there is a value is seen by the gathering task of each replay.
    if (recording_ == nullptr && pruning_.may_have_missed(place)) place.unwritten = false;
    const bool has_value = recording_ != nullptr || !place.unwritten;
    if (owner != executor && owner != kEverywhere && has_value && use.handle->reduction != nullptr)
      use.handle = &share_of(*use.handle, executor, wish);
  }
  for (const Use& use : uses)
    if (use.mode != AccessMode::reduce && use.mode != AccessMode::scratch && is_open(*use.handle))
      throw UsageError(fmt::format("a task{} names {} twice, once with mode reduce; name it once",
                                   wish.where ? fmt::format(" (at {})", runtime::describe(wish.where)) : "",
                                   use.handle->described()));
}

Handle& Reductions::share_of(Handle& handle, std::uint32_t rank, const Wish& wish) {
  static const std::shared_ptr<runtime::CodeletCore> start = runtime::make_cpu_codelet("start a share");
  const auto [found, is_new] = sums_.try_emplace(place_of(handle).id, Sum{&handle, {}, wish.priority, wish.where});
  Sum& sum = found->second;
  if (is_new && recording_ == nullptr) place_of(handle).reducing = true;
  sum.priority = std::max(sum.priority, wish.priority);
  OwnedHandle& share = sum.shares[rank];
  if (share != nullptr) return *share;
  share = take_share(handle, rank);
  const Use use{share.get(), AccessMode::write};
  submit(start, kStart, {&use, 1}, {.on = rank, .priority = wish.priority, .where = wish.where, .is_task = false});
  return *share;
}

Reductions::OwnedHandle Reductions::take_share(Handle& handle, std::uint32_t rank) {
  auto spare = spare_.extract({place_of(handle).id, rank});
  return spare.empty() ? make_share(handle, rank) : std::move(spare.mapped());
}

Reductions::OwnedHandle Reductions::make_share(Handle& handle, std::uint32_t rank) {
  OwnedHandle share(core_.data().add(
      "share of " + handle.name, handle.shape, nullptr, handle.shape.rows, *handle.type, handle.registered_at,
      handle.layout != nullptr ? std::make_unique<const runtime::Layout>(*handle.layout) : nullptr));
  share->object = handle.object;
  share->typical_bytes = handle.typical_bytes;
  core_.memory().settle_home(*share);
  share->reduction = reduction_for_share(handle);
  flow_.add(*share, rank, false);
  return share;
}

// --- the tree that gathers

void Reductions::gather(Handle& handle) {
  static const std::shared_ptr<runtime::CodeletCore> gather = runtime::make_cpu_codelet("gather shares");
  if (pruning_.is_skipping())
    pruning_.refuse_skip("is the first one after tasks with reduce accesses that uses", handle, {});
  auto found = sums_.extract(place_of(handle).id);
  Sum& sum = found.mapped();
  if (recording_ == nullptr) place_of(handle).reducing = false;
  std::vector<Handle*> parts{&handle};
  for (const auto& [rank, share] : sum.shares) parts.push_back(share.get());
  for (std::size_t stride = 1; stride < parts.size(); stride *= 2)
    for (std::size_t i = 0; i + stride < parts.size(); i += 2 * stride) {
      const Use uses[] = {{parts[i], AccessMode::read_write}, {parts[i + stride], AccessMode::read}};
      submit(gather, kGather, uses,
             {.on = owner_of(*parts[i], recording_), .priority = sum.priority, .where = sum.where, .is_task = false});
    }
  if (recording_ == nullptr) return;
  for (auto& [rank, share] : sum.shares) spare_.emplace(std::pair(place_of(handle).id, rank), std::move(share));
}

void Reductions::gather_all() {
  while (!sums_.empty()) gather(*sums_.begin()->second.handle);
}

void Reductions::forget(Handle& handle) { sums_.erase(place_of(handle).id); }

/// Submits a task at this point of the flow, or of each replay.
void Reductions::submit(const std::shared_ptr<runtime::CodeletCore>& codelet, const TaskOps& ops,
                        std::span<const Use> uses, const Wish& wish) {
  const bool is_here = recording_ != nullptr ? wish.on == flow_.rank() : flow_.enter(uses, wish);
  Task* task = nullptr;
  if (is_here) {
    task = &core_.submission().begin(codelet, ops, static_cast<unsigned>(uses.size()));
    for (unsigned slot = 0; slot < uses.size(); ++slot) task->accesses()[slot].set(uses[slot].handle, uses[slot].mode);
    task->priority = wish.priority;
    task->where = wish.where;
  }
  if (recording_ != nullptr) {
    recording_->add(uses, wish, task);
  } else if (is_here) {
    core_.submission().submit(*task);
    flow_.entered();
  }
}

}  // namespace tandem::dist
