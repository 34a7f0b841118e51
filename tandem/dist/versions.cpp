// tandem/dist/versions.cpp: sends, receives and new versions, derived from the flow.
#include "tandem/dist/versions.hpp"

#include <algorithm>
#include <mutex>
#include <utility>

#include "tandem/base/narrow.hpp"
#include "tandem/dist/copies.hpp"
#include "tandem/dist/data_table.hpp"
#include "tandem/dist/datum.hpp"
#include "tandem/dist/place.hpp"
#include "tandem/dist/pruning.hpp"
#include "tandem/dist/transfers.hpp"
#include "tandem/runtime/runtime_core.hpp"

namespace tandem::dist {

using runtime::Handle;
using runtime::Task;

Versions::Versions(runtime::RuntimeCore& core, comm::Endpoint& endpoint, Transfers& transfers, DataTable& table,
                   Copies& copies, const Pruning& pruning)
    : core_(core),
      transfers_(transfers),
      table_(table),
      copies_(copies),
      pruning_(pruning),
      rank_(endpoint.rank().value()),
      size_(endpoint.size()),
      channel_(endpoint.channel("tandem.dist.data")) {}

// --- the current version travels

void Versions::bring(Handle& handle, std::uint32_t executor, Purpose purpose, int priority,
                     const runtime::CodeletCore* reader) {
  const Place& place = place_of(handle);
  if (place.owner == kEverywhere || executor == place.holder) return;
  if (place.holder != rank_) {
    if (executor == rank_ || executor == kEverywhere) receive(handle, purpose, priority, reader);
    return;
  }
  recipients_.clear();
  add_recipients(executor, priority);
  send(handle, {});
}

void Versions::bring_recorded(std::span<RecordedSending> sendings) {
  while (!sendings.empty()) {
    Handle& handle = *sendings.front().handle;
    std::shared_ptr<comm::BroadcastPlan>& plan = sendings.front().plan;
    std::size_t count = 0;
    recipients_.clear();
    for (; count < sendings.size() && sendings[count].handle == &handle; ++count) {
      const RecordedSending& sending = sendings[count];
      if (place_of(handle).holder != rank_)
        bring(handle, sending.recipient, Purpose::copy, sending.priority, sending.reader);
      else if (sending.recipient != rank_) add_recipients(sending.recipient, sending.priority);
    }
    if (place_of(handle).owner != kEverywhere && !recipients_.empty()) {
      if (plan == nullptr) plan = std::make_shared<comm::BroadcastPlan>();
      send(handle, plan);
    }
    sendings = sendings.subspan(count);
  }
}

void Versions::add_recipients(std::uint32_t executor, int priority) {
  if (executor != kEverywhere) return recipients_.push_back({base::Rank(executor), priority});
  for (std::uint32_t step = 1; step < size_; ++step)
    recipients_.push_back({base::Rank((rank_ + step) % size_), priority});
}

/// Sends to those of `recipients_` that do not have the version.
void Versions::send(Handle& handle, const std::shared_ptr<comm::BroadcastPlan>& plan) {
  Datum& datum = table_.datum_of(handle);
  const Place& place = place_of(handle);
  unserved_.clear();
  for (const comm::Recipient& to : recipients_) {
    if (copies_.recipient_has(datum, place, to.rank.value())) {
      if (datum.bag != nullptr) Transfers::raise(*datum.bag, to);
      continue;
    }
    ++datum.sent_to;
    if (datum.bag == nullptr || !transfers_.add(datum.bag, to)) unserved_.push_back(to);
    else if (datum.bags == 1) ++datum.first_bag;
  }
  if (unserved_.empty()) return;
  datum.bag = transfers_.send(handle, {place.id, channel_, place.version, pruning_.knows_version(place)}, unserved_,
                              datum.packed(), plan);
  if (++datum.bags == 1) datum.first_bag = base::narrow<std::uint32_t>(unserved_.size());
}

void Versions::receive(Handle& handle, Purpose purpose, int priority, const runtime::CodeletCore* reader) {
  table_.datum_of(handle);
  if (copies_.is_here(handle)) return;
  runtime::TaskRef room;
  if (purpose == Purpose::copy && !handle.stays()) room = copies_.reserve(handle);
  Place& place = place_of(handle);
  transfers_.receive(handle, {place.id, channel_, place.version, pruning_.knows_version(place)}, place.holder, room,
                     priority, reader);
  place.copied = true;
}

// --- the next version

void Versions::overwrite(Handle& handle, std::uint32_t executor, std::uint32_t versions) {
  Place& place = place_of(handle);
  place.note_written(versions);
  if (place.owner == kEverywhere) return;
  const bool was_holder = place.holder == rank_;
  if (was_holder && place.datum != nullptr) close_version(*place.datum, place);
  if (executor == rank_) {
    if (place.copied) copies_.become_value(handle);
  } else if (place.copied) {
    copies_.drop_overwritten(handle);
  } else if (was_holder) {
    copies_.drop(handle);
  }
  place.holder = executor;
  if (executor == place.owner) return;
  Datum& datum = table_.datum_of(handle);
  if (std::exchange(datum.listed_away, true)) return;
  datum.place_away = away_.size();
  away_.push_back(&handle);
}

void Versions::mark_lost(Handle& handle) {
  struct Mark {
    runtime::RuntimeCore& core;
    runtime::EventTasks event;
  };
  auto* mark = new Mark{core_, {}};
  Task& task = core_.events().begin("move " + handle.name, 1);
  task.accesses()[0].set(&handle, AccessMode::write);
  task.extra->context = mark;
  task.extra->on_ready = [](Task& ready, void* context) {
    const std::unique_ptr<Mark> what(static_cast<Mark*>(context));
    what->core.executor().mark_lost(ready);
    what->core.events().complete_read(what->event.readable);
  };
  core_.events().submit(task, false, mark->event);
}

void Versions::flush(Handle& handle) {
  const Place& place = place_of(handle);
  if (place.owner == kEverywhere || place.datum == nullptr) return;
  if (place.holder == rank_) close_version(*place.datum, place);
  else if (place.copied) copies_.drop_copy(handle);
}

void Versions::close_version(Datum& datum, const Place& place) {
  count_version(datum, counts_);
  datum.bag.reset();
  datum.sent_to = datum.first_bag = datum.bags = 0;
  copies_.forget_recipients(datum, place);
}

// --- data away from their owners

std::vector<Handle*> Versions::take_away_list() {
  std::vector<Handle*> away = std::exchange(away_, {});
  std::sort(away.begin(), away.end(), [](Handle* a, Handle* b) { return place_of(*a).id < place_of(*b).id; });
  return away;
}

bool Versions::unlist_away(Handle& handle) {
  const Place& place = place_of(handle);
  if (place.datum == nullptr || !std::exchange(place.datum->listed_away, false)) return false;
  // The last entry takes its place; `take_away_list` has left none.
  if (const std::size_t at = place.datum->place_away; at < away_.size() && away_[at] == &handle) {
    away_[at] = away_.back();
    place_of(*away_[at]).datum->place_away = at;
    away_.pop_back();
  }
  return place.holder != place.owner;
}

void Versions::take_home(Handle& handle) {
  const Place& place = place_of(handle);
  bring(handle, place.owner, Purpose::possession, 0);
  overwrite(handle, place.owner);
  copies_.drop_unkept();
}

// --- counts

void Versions::forget(Handle& handle) {
  const Place& place = place_of(handle);
  if (place.datum != nullptr && place.holder == rank_) count_version(*place.datum, counts_);
}

bool Versions::check_invariants() const {
  const auto is_right = [&](const auto& entry) {
    Datum& datum = *entry.second;
    const Place& place = place_of(datum.handle);
    if (datum.listed_away || (datum.bag != nullptr) != (datum.bags > 0) || datum.first_bag > datum.sent_to)
      return false;
    if (!pruning_.ever() && place.holder != place.owner) return false;
    if (datum.recipients.contains(rank_)) return false;
    if (datum.bag == nullptr) return true;
    Bag& bag = *datum.bag;
    const std::lock_guard guard(bag.lock);
    return place.holder == rank_ && bag.handle == &datum.handle && bag.version == place.version && bag.started &&
           bag.under_way.load() == 0;
  };
  return away_.empty() && std::all_of(table_.travelled().begin(), table_.travelled().end(), is_right);
}

void Versions::count_version(const Datum& datum, FlowStatistics& statistics) {
  if (datum.sent_to == 0) return;
  ++statistics.versions_sent;
  statistics.late += datum.sent_to - datum.first_bag;
  if (datum.sent_to == 1) {
    ++statistics.plain;
    return;
  }
  ++(datum.bags == 1 ? statistics.broadcasts : statistics.split);
  statistics.recipients += datum.first_bag;
}

void Versions::add_to(FlowStatistics& statistics) const {
  statistics.versions_sent = counts_.versions_sent;
  statistics.plain = counts_.plain;
  statistics.broadcasts = counts_.broadcasts;
  statistics.split = counts_.split;
  statistics.recipients = counts_.recipients;
  statistics.late = counts_.late;
  for (const auto& [id, datum] : table_.travelled())
    if (place_of(datum->handle).holder == rank_) count_version(*datum, statistics);
}

}  // namespace tandem::dist
