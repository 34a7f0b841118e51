// tandem/dist/copies.cpp: keeps and drops copies, and counts their memory.
#include "tandem/dist/copies.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "tandem/dist/data_table.hpp"
#include "tandem/dist/datum.hpp"
#include "tandem/dist/place.hpp"
#include "tandem/runtime/runtime_core.hpp"
#include "tandem/runtime/task/describe.hpp"

namespace tandem::dist {

using runtime::Handle;
using runtime::Task;

Copies::Copies(runtime::RuntimeCore& core, DataTable& table, std::uint32_t ranks)
    : core_(core), table_(table), ranks_(ranks) {}

void Copies::set_budget(std::size_t bytes) {
  budget_.set(bytes);
  if (bytes != SIZE_MAX) kept_bytes_ = bytes / kKeptPart / (ranks_ - 1);
}

// --- the sender

bool Copies::recipient_has(Datum& datum, const Place& place, std::uint32_t recipient) {
  if (keeps_all()) {
    if (datum.recipients.contains(recipient)) return true;
    datum.recipients.add(recipient);
    return false;
  }
  const auto dropped = [&](std::uint32_t id) {
    if (Datum* const other = table_.find(id)) other->recipients.remove(recipient);
  };
  datum.recipients.add(recipient);
  return kept(kept_at_, recipient).use(place.id, datum.handle.travel_bytes(), dropped);
}

void Copies::forget_recipients(Datum& datum, const Place& place) {
  if (!keeps_all())
    for (auto& [rank, copies] : kept_at_)
      if (datum.recipients.contains(rank)) copies.forget(place.id);
  datum.recipients.clear();
}

// --- the receiver

bool Copies::is_here(Handle& handle) {
  const Place& place = place_of(handle);
  if (keeps_all()) return place.copied;
  const auto dropped = [&](std::uint32_t id) {
    if (Handle* const other = table_.handle(id)) to_drop_.push_back(other);
  };
  KeptCopies& copies = kept(kept_from_, place.holder);
  // Another use of the same task has dropped it, so the sender sends it again.
  if (place.copied && !copies.contains(place.id)) {
    std::erase(to_drop_, &handle);
    drop(handle);
  }
  return copies.use(place.id, handle.travel_bytes(), dropped);
}

runtime::TaskRef Copies::reserve(Handle& handle) {
  const std::size_t bytes = handle.travel_bytes();
  table_.datum_of(handle).reserved = true;
  if (budget_.try_reserve(bytes)) return {};
  runtime::EventTasks room;
  core_.events().submit(core_.events().begin("memory for " + handle.name, 0), false, room);
  budget_.reserve_later(bytes, [this, node = room.readable] { core_.events().complete(node); });
  return room.readable;
}

void Copies::check_budget(std::span<const Need> needs, const Wish& wish) {
  if (keeps_all()) return;
  std::size_t needed = 0;
  std::size_t beside = 0;
  for (const auto& [rank, copies] : kept_from_) beside += copies.bytes();
  for (const Need& need : needs) {
    const Place& place = place_of(*need.handle);
    if (!need.sees || !place.copied) continue;
    const std::size_t bytes = need.handle->travel_bytes();
    if (place.datum->reserved) needed += bytes;
    if (kept(kept_from_, place.holder).contains(place.id)) beside -= bytes;
  }
  const std::size_t budget = budget_.bytes();
  if (needed + beside <= budget) return;
  throw UsageError(
      fmt::format("a task{} sees {} bytes of other ranks' data at once, {} bytes are kept for later tasks, and option "
                  "copies allows {} bytes "
                  "in all; give it {} or more",
                  wish.where ? fmt::format(" (at {})", runtime::describe(wish.where)) : "", needed, beside, budget,
                  kKeptPart * needed));
}

void Copies::become_value(Handle& handle) {
  Place& place = place_of(handle);
  if (!keeps_all()) kept(kept_from_, place.holder).forget(place.id);
  std::erase(to_drop_, &handle);
  place.copied = false;
  if (std::exchange(place.datum->reserved, false)) budget_.give_back_in_turn(handle.travel_bytes());
}

void Copies::drop_copy(Handle& handle) {
  Place& place = place_of(handle);
  if (!keeps_all()) kept(kept_from_, place.holder).forget(place.id);
  place.copied = false;
  drop(handle);
}

void Copies::drop_overwritten(Handle& handle) {
  std::erase(to_drop_, &handle);
  drop_copy(handle);
}

void Copies::drop(Handle& handle) {
  if (handle.stays()) return;
  core_.submission().trace().emit<trace::Type::data_dropped>(handle.number);
  struct Drop {
    Copies& copies;
    Handle& handle;
    bool reserved;
    runtime::EventTasks event;
  };
  Datum& datum = table_.datum_of(handle);
  auto* dropped = new Drop{*this, handle, std::exchange(datum.reserved, false), {}};
  Task& task = core_.events().begin("drop " + handle.name, 1);
  task.accesses()[0].set(&handle, AccessMode::write);
  task.extra->memory = runtime::EventMemory::none;
  task.extra->context = dropped;
  task.extra->on_ready = [](Task&, void* context) {
    const std::unique_ptr<Drop> what(static_cast<Drop*>(context));
    runtime::RuntimeCore& core = what->copies.core_;
    core.memory().free_replicas(what->handle);
    if (what->reserved) what->copies.budget_.give_back(what->handle.travel_bytes());
    core.events().complete(what->event.readable);
  };
  core_.events().submit(task, false, dropped->event);
  handle.flow.has_value = false;
}

void Copies::before_submit() {
  if (!to_drop_.empty()) core_.submission().window().postpone(true);
}

void Copies::drop_unkept() {
  for (Handle* handle : std::exchange(to_drop_, {})) drop_copy(*handle);
  core_.submission().window().postpone(false);
}

bool Copies::check_invariants(std::uint32_t rank) const {
  std::size_t reserved = 0;
  for (const auto& [id, datum] : table_.travelled()) {
    const Place& place = place_of(datum->handle);
    if (datum->reserved) reserved += datum->handle.travel_bytes();
    if (place.copied && place.holder == rank) return false;
    if (datum->reserved && !place.copied) return false;
    if (keeps_all() || !place.copied) continue;
    const auto from = kept_from_.find(place.holder);
    if (from == kept_from_.end() || !from->second.contains(id)) return false;
  }
  const auto is_right = [](const auto& entry) { return entry.second.check_invariants(); };
  return to_drop_.empty() && budget_.waiting() == 0 && budget_.reserved() == reserved &&
         std::all_of(kept_from_.begin(), kept_from_.end(), is_right) &&
         std::all_of(kept_at_.begin(), kept_at_.end(), is_right);
}

void Copies::forget(Handle& handle) {
  // Copies that both ends keep stay, since ranks forget data at different moments.
  const Place& place = place_of(handle);
  if (place.datum != nullptr && place.datum->reserved) budget_.give_back(handle.travel_bytes());
  std::erase(to_drop_, &handle);
}

}  // namespace tandem::dist
