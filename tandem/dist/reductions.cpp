// tandem/dist/reductions.cpp: shares of sums, and the tree of tasks that gathers them.
#include "tandem/dist/reductions.hpp"

#include <algorithm>
#include <utility>

#include "tandem/dist/flow.hpp"
#include "tandem/dist/place.hpp"
#include "tandem/dist/placement.hpp"
#include "tandem/dist/pruning.hpp"
#include "tandem/runtime/exec/kernel_call.hpp"
#include "tandem/runtime/runtime_core.hpp"

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

std::shared_ptr<runtime::CodeletCore> make_codelet(const char* name) {
  auto codelet = std::make_shared<runtime::CodeletCore>(name);
  codelet->devices.push_back(DeviceKind::cpu);
  return codelet;
}

}  // namespace

Reductions::Reductions(runtime::RuntimeCore& core, Flow& flow, const Placement& placement, const Pruning& pruning)
    : core_(core), flow_(flow), placement_(placement), pruning_(pruning) {}
Reductions::~Reductions() = default;

void Reductions::DropOwner::operator()(Handle* handle) const noexcept { runtime::DataRegistry::drop_owner(handle); }

std::vector<Reductions::Shares>::iterator Reductions::find(const Handle& handle) {
  return std::find_if(shares_.begin(), shares_.end(), [&](const Shares& known) { return known.handle == &handle; });
}

void Reductions::share(std::span<Use> uses, Wish& wish) {
  for (const Use& use : uses)
    if (use.handle == nullptr || !core_.data().owns(*use.handle)) return;  // `Flow::enter` throws
  for (const Use& use : uses)
    if (pruning_.is_skipping() && use.mode == AccessMode::reduce)
      pruning_.refuse_skip("has a reduce access to", *use.handle, wish.where);
  const std::uint32_t executor = placement_.executor_of(uses, wish, nullptr);
  if (executor == kEverywhere) return;
  wish.on = executor;
  for (Use& use : uses) {
    if (use.mode != AccessMode::reduce) continue;
    Place& place = place_of(*use.handle);
    const bool adds_here = place.owner == executor || place.owner == kEverywhere;
    if (pruning_.may_have_missed(place)) place.unwritten = false;
    if (!adds_here && !place.unwritten && use.handle->reduction != nullptr) use.handle = &share_of(*use.handle, executor, wish);
  }
}

Handle& Reductions::share_of(Handle& handle, std::uint32_t rank, const Wish& wish) {
  static const std::shared_ptr<runtime::CodeletCore> start = make_codelet("start a share");
  auto shares = find(handle);
  if (shares == shares_.end()) {
    place_of(handle).reducing = true;
    shares = shares_.insert(shares_.end(), Shares{&handle, {}, wish.priority});
  }
  shares->priority = std::max(shares->priority, wish.priority);
  for (const OwnedHandle& known : shares->of_ranks)
    if (place_of(*known).owner == rank) return *known;
  OwnedHandle share(core_.data().add("share of " + handle.name, handle.shape, nullptr, handle.shape.rows, *handle.type,
                                   handle.registered_at,
                                   handle.layout != nullptr ? std::make_unique<const runtime::Layout>(*handle.layout) : nullptr));
  share->object = handle.object;
  share->typical_bytes = handle.typical_bytes;
  core_.memory().settle_home(*share);
  share->reduction = std::make_unique<runtime::Reduction>(*handle.reduction);
  flow_.add(*share, rank, false);
  const Use use{share.get(), AccessMode::write};
  if (flow_.enter({&use, 1}, {.on = rank, .priority = wish.priority, .where = wish.where, .is_task = false})) {
    Task& task = core_.submission().begin(start, kStart, 1);
    task.accesses()[0].set(share.get(), AccessMode::write);
    task.priority = wish.priority;
    task.where = wish.where;
    core_.submission().submit(task);
    flow_.entered();
  }
  return *shares->of_ranks.emplace_back(std::move(share));
}

void Reductions::gather(Handle& handle) {
  static const std::shared_ptr<runtime::CodeletCore> gather = make_codelet("gather shares");
  if (pruning_.is_skipping())
    pruning_.refuse_skip("is the first one after tasks with reduce accesses that uses", handle, {});
  const auto found = find(handle);
  const Shares shares = std::move(*found);
  shares_.erase(found);
  place_of(handle).reducing = false;
  std::vector<Handle*> sums{&handle};
  for (const OwnedHandle& share : shares.of_ranks) sums.push_back(share.get());
  for (std::size_t stride = 1; stride < sums.size(); stride *= 2) {
    for (std::size_t i = 0; i + stride < sums.size(); i += 2 * stride) {
      const Use uses[] = {{sums[i], AccessMode::read_write}, {sums[i + stride], AccessMode::read}};
      if (!flow_.enter(uses, {.on = place_of(*sums[i]).owner, .priority = shares.priority, .is_task = false})) continue;
      Task& task = core_.submission().begin(gather, kGather, 2);
      for (unsigned slot = 0; slot < 2; ++slot) task.accesses()[slot].set(uses[slot].handle, uses[slot].mode);
      task.priority = shares.priority;
      core_.submission().submit(task);
      flow_.entered();
    }
  }
}

void Reductions::gather_all() {
  while (!shares_.empty()) gather(*shares_.front().handle);
}

void Reductions::forget(Handle& handle) {
  std::erase_if(shares_, [&](const Shares& shares) { return shares.handle == &handle; });
}

}  // namespace tandem::dist
