// tandem/dist/flow.cpp: who runs a task, and what travels for it.
#include "tandem/dist/flow.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <limits>
#include <new>
#include <utility>

#include "tandem/runtime/task/describe.hpp"

namespace tandem::dist {

using runtime::Handle;
using runtime::Task;

Flow::Flow(runtime::RuntimeCore& core, std::unique_ptr<comm::Endpoint> endpoint, const FlowOptions& options)
    : core_(core),
      endpoint_(std::move(endpoint)),
      rank_(endpoint_->rank().value()),
      size_(endpoint_->size()),
      options_(options),
      data_channel_(endpoint_->channel("tandem.dist.data")),
      explicit_channel_(endpoint_->channel("tandem.dist.explicit")),
      transfers_(core, *endpoint_, options.transfers),
      agreement_(*endpoint_, "tandem.dist.agreement"),
      cancel_agreement_(*endpoint_, "tandem.dist.end"),
      cancel_channel_(endpoint_->channel("tandem.dist.cancel")) {
  looks_closely_ = options_.check_pruning;
  core_.executor().set_positions(kIdsPerPosition);
  transfers_.on_abort([this](const std::string& text) { tell_abort(text); });
  transfers_.on_loss([this](const std::string& text) { note_loss(text); });
  endpoint_->register_rpc(endpoint_->channel("tandem.dist.abort"),
                          {.arrived = [](const comm::RpcArrival&) { return comm::RpcAnswer{}; },
                           .done = [this](const comm::Status& status) {
                             if (status.ending != comm::Ending::done) return;
                             const auto* text = reinterpret_cast<const char*>(status.owned.data());
                             transfers_.abort(std::string(text, status.owned.size()));
                           }});
  endpoint_->register_rpc(cancel_channel_, {.arrived = [](const comm::RpcArrival&) { return comm::RpcAnswer{}; },
                                            .done = [this](const comm::Status& status) {
                                              if (status.ending != comm::Ending::done) return;
                                              join_cancel(status.tag.value(), status.source.value());
                                            }});
  endpoint_->on_peer_death([this](base::Rank peer, std::string_view reason) {
    note_loss(fmt::format("rank {} died: {}", peer.value(), reason));
  });
  core_.data().on_end_of_data({.abandoned = [this](Handle& handle) { abandon(handle); },
                        .let_go = [this](Handle& handle) { let_go(handle); }});
  if (options_.idle_progress) attended_.emplace(core_.workers().attendance(), endpoint_->idle_work());
  core_.trace().describe_owners_by([](const Handle& handle) { return place_of(const_cast<Handle&>(handle)).owner; });
  if (core_.trace().session() != nullptr) trace_to(*core_.trace().session());
  agree_on_start();
}

Flow::~Flow() {
  try {
    // Others may wait for what this rank will not do any more.
    const bool leaves = std::uncaught_exceptions() > 0;
    if (leaves) transfers_.abort(fmt::format("rank {} left in the middle of the flow", rank_));
    else if (waited_at_ != position_ && !aborted_.load()) wait();
    core_.waits().drain();
    if (!leaves && !abort_told_) throw_if_aborted();
    if (clocks_ != nullptr && !leaves && !aborted_.load()) clocks_->end();
  } catch (const std::exception& error) {
    core_.log().error("at the end of the flow: {}", error.what());
  }
  core_.data().on_end_of_data({});
  core_.trace().describe_owners_by({});
  clocks_.reset();  // before the endpoint: the others are told
  attended_.reset();
  endpoint_->close();
}

// --- data

void Flow::add(Handle& handle, std::uint32_t owner, bool has_value) {
  if (owner != kEverywhere && owner >= size_)
    throw UsageError(fmt::format("{} is given to rank {}, but there are {} ranks", handle.described(), owner, size_));
  Place& place = *new (handle.above.data()) Place;
  place.owner = place.holder = owner;
  place.unwritten = !has_value;
  place.in_users_memory = has_value;
  place.always_here = owner == rank_;
  place.id = static_cast<std::uint32_t>(handles_.size());
  handle.number = place.id;  // alike on all ranks, also where one of them has refused data that others have not
  core_.trace().describe_data(handle, owner);
  handles_.push_back(&handle);
  const std::uint64_t kind = handle.object != nullptr ? std::uint64_t{1} << 63 : 0;
  data_digest_ = (data_digest_ ^ (std::uint64_t{owner} << 32 ^ handle.travel_bytes() ^ kind)) * 0x9e3779b97f4a7c15ULL;
}

Datum& Flow::datum_of(Handle& handle) {
  Place& place = place_of(handle);
  if (place.datum == nullptr) {
    auto& datum = data_[place.id];
    datum = std::make_unique<Datum>(handle);
    place.datum = datum.get();
  }
  return *place.datum;
}

std::shared_ptr<PackedValue> Flow::packed_of(Datum& datum) {
  if (datum.handle.object != nullptr && datum.packed == nullptr) datum.packed = std::make_shared<PackedValue>();
  return datum.packed;
}

/// The program has dropped the data, on every rank at this position. A value that belongs into the owner's own memory goes there,
/// which is no position of its own: a rank that passes over tasks need not know that the data is away. Not when an exception
/// drops it: other ranks may never come here, and nobody may wait for what they would send.
void Flow::abandon(Handle& handle) {
  Place& place = place_of(handle);
  const bool comes_home = place.in_users_memory && std::uncaught_exceptions() == 0;
  if (place.reducing && comes_home) settle(handle);
  std::erase_if(shares_, [&](const Shares& shares) { return shares.handle == &handle; });
  if (place.datum == nullptr || !std::exchange(place.datum->listed_away, false)) return;
  std::erase(away_, &handle);
  if (!comes_home || place.holder == place.owner) return;
  core_.submission().raise_id((position_ << kIdsPerPosition) + 2);
  take_home(handle);
}

void Flow::let_go(Handle& handle) {
  Place& place = place_of(handle);
  if (place.id >= handles_.size() || handles_[place.id] != &handle) return;
  if (place.datum != nullptr) {
    // What both ends keep is left as it is: each rank lets data go at another moment.
    if (place.holder == rank_) count_version(*place.datum, counts_);
    if (place.datum->reserved) copies_.give_back(handle.travel_bytes());
    data_.erase(place.id);
  }
  std::erase(to_drop_, &handle);
  handles_[place.id] = nullptr;
}

KeptCopies& Flow::kept(std::unordered_map<std::uint32_t, KeptCopies>& by_peer, std::uint32_t peer) {
  return by_peer.try_emplace(peer, kept_bytes_).first->second;
}

// --- a task

void Flow::begin_operation() {
  if (recording_ != nullptr) refuse_recording();
  ++position_;
  core_.submission().raise_id((position_ << kIdsPerPosition) + 2);  // the least ids are the flow's own
}

bool Flow::enter_slowly(std::span<const Use> uses, const Wish& wish) {
  for (const Use& use : uses)
    if (use.handle != nullptr && use.mode != AccessMode::reduce && use.mode != AccessMode::scratch && is_of(*use.handle))
      settle(*use.handle);
  begin_operation();
  to_drop_.clear();  // a task that was refused may have left some
  // What is wrong with them the runtime says better, and on every rank.
  for (const Use& use : uses)
    if (use.handle == nullptr || !is_of(*use.handle)) return true;
  return enter_at(place(uses, wish), uses, wish);
}

bool Flow::enter_at(std::uint32_t executor, std::span<const Use> uses, const Wish& wish) {
  gather_needs(uses);
  check_values(executor, wish);
  if (options_.check_pruning) check_pruned(executor, wish);
  const bool here = executor == rank_ || executor == kEverywhere;
  for (const Need& need : needs_)
    if (need.sees) bring(*need.handle, executor, need.makes ? Purpose::possession : Purpose::copy, wish.priority);
  if (here) check_budget(wish);
  for (const Need& need : needs_) {
    const Place& place = place_of(*need.handle);
    if (need.makes && !need.sees && executor == rank_ && place.owner != kEverywhere && place.holder != rank_ && !place.copied)
      mark_lost(*need.handle);
  }
  for (const Need& need : needs_)
    if (need.makes) overwrite(*need.handle, executor);
  if (!here) {
    entered();
    return false;
  }
  if (wish.is_task) ++counts_.tasks;
  // The task may wait for memory that these give back.
  if (!to_drop_.empty()) core_.submission().window().postpone(true);
  return true;
}

void Flow::entered() {
  for (Handle* handle : std::exchange(to_drop_, {})) drop_copy(*handle);
  core_.submission().window().postpone(false);
}

void Flow::refuse_recording() {
  throw UsageError(
      "only tasks, fetch, migrate, flush, send and receive can be recorded on several ranks: wait, and use data yourself, before "
      "or after");
}

void Flow::start_recording(Recording& recording) {
  if (recording_ != nullptr) throw UsageError("cannot record a graph while another is recorded");
  recording_ = &recording;
  looks_closely_ = true;
}

void Flow::replay(Recording& recording) {
  if (recording_ != nullptr) throw UsageError("cannot replay a graph while one is recorded");
  if (is_over()) return;
  recording.check_data();
  recording.check_owners();
  for (const Recording::Operation& operation : recording.operations()) {
    if (operation.kind == Recording::Kind::pass_over) {
      pass_over_to(position_ + operation.passed);
      continue;
    }
    if (operation.kind != Recording::Kind::task) {
      perform(recording, operation);
      continue;
    }
    const std::uint32_t executor = operation.executor;
    const bool elsewhere = executor != rank_ && executor != kEverywhere;
    // With little memory, what came long before its task might be dropped before it.
    const bool sends_ahead = operation.sendings > 0 && keeps_all();
    if (elsewhere && !sends_ahead && !options_.check_pruning && passes_by(operation.uses, executor)) continue;
    std::optional<Skipping> skipping;
    if (operation.skipped) skipping.emplace(*this, 0);
    for (const Use& use : operation.uses) settle(*use.handle);
    begin_operation();
    to_drop_.clear();
    const Wish wish{.priority = operation.priority, .where = operation.where};
    if (sends_ahead) {  // what is wrong with the task is said before anything goes
      gather_needs(operation.uses);
      check_values(executor, wish);
      bring_recorded(recording.sendings(operation));
    }
    if (!enter_at(executor, operation.uses, wish)) continue;
    recording.submit(operation);
    entered();
  }
}

void Flow::gather_needs(std::span<const Use> uses) {
  needs_.clear();
  for (const Use& use : uses) {
    if (use.mode == AccessMode::scratch) continue;
    const bool reduces = use.mode == AccessMode::reduce;
    auto at = std::find_if(needs_.begin(), needs_.end(), [&](const Need& need) { return need.handle == use.handle; });
    if (at == needs_.end()) at = needs_.insert(at, {use.handle, false, false});
    at->sees |= sees_value(use.mode) || reduces;
    at->makes |= makes_value(use.mode) || reduces;
  }
}

void Flow::check_values(std::uint32_t executor, const Wish& wish) {
  for (const Need& need : needs_) {
    Place& place = place_of(*need.handle);
    if (!need.sees || !place.unwritten) continue;
    if (may_have_missed(place) && executor != rank_ && executor != kEverywhere) {
      place.unwritten = false;  // who uses the data knows
      continue;
    }
    throw UsageError(fmt::format("a task{} sees {}, but nobody has written it before; write it first, or use mode write",
                                 wish.where ? fmt::format(" (at {})", runtime::describe(wish.where)) : "",
                                 need.handle->described()));
  }
}

std::uint32_t Flow::place(std::span<const Use> uses, const Wish& wish) const {
  if (wish.on) {
    if (*wish.on < size_ || *wish.on == kEverywhere) return *wish.on;
    throw UsageError(fmt::format("a task{} is to run on rank {}, but there are {} ranks",
                                 wish.where ? fmt::format(" (at {})", runtime::describe(wish.where)) : "", *wish.on, size_));
  }
  std::uint32_t owner = kNobody;
  std::uint32_t read_at = kEverywhere;
  bool several = false;
  const Handle* own = nullptr;
  const Handle* shared = nullptr;
  for (const Use& use : uses) {
    if (use.mode == AccessMode::scratch) continue;
    const std::uint32_t owned_by = owner_of(*use.handle);
    if (use.mode == AccessMode::read) {
      if (read_at == kEverywhere) read_at = owned_by;
      continue;
    }
    (owned_by == kEverywhere ? own : shared) = use.handle;
    several |= owner != kNobody && owner != owned_by;
    owner = owned_by;
  }
  if (owner == kNobody) return read_at;  // it writes nothing: where the first datum is that it reads
  if (!several) return owner;
  if (own != nullptr)
    throw UsageError(fmt::format("a task{} writes {}, which each rank has for itself, and {}, which rank {} owns: it can run "
                                 "neither everywhere nor on one rank; say where with on(rank)",
                                 wish.where ? fmt::format(" (at {})", runtime::describe(wish.where)) : "", own->described(),
                                 shared->described(), owner_of(const_cast<Handle&>(*shared))));
  return place_among_owners(uses);
}

/// The rank that needs the fewest bytes moved, to it and back; among equals that of the last datum that is written. By owners,
/// since every rank knows these.
std::uint32_t Flow::place_among_owners(std::span<const Use> uses) const {
  if (placement_) {
    std::vector<PlacementUse> asked;
    for (const Use& use : uses)
      asked.push_back({owner_of(*use.handle), use.mode, use.handle->travel_bytes()});
    const std::uint32_t chosen = placement_(asked);
    if (chosen >= size_) throw UsageError(fmt::format("the placement policy chose rank {} of {}", chosen, size_));
    return chosen;
  }
  std::uint32_t best = kNobody;
  std::size_t best_bytes = std::numeric_limits<std::size_t>::max();
  for (const Use& candidate : uses) {
    if (candidate.mode == AccessMode::read || candidate.mode == AccessMode::scratch) continue;
    const std::uint32_t rank = owner_of(*candidate.handle);
    std::size_t moved = 0;
    for (const Use& use : uses) {
      const std::uint32_t owner = owner_of(*use.handle);
      if (use.mode == AccessMode::scratch || owner == rank || owner == kEverywhere) continue;
      moved += use.handle->travel_bytes() * (use.mode == AccessMode::read || use.mode == AccessMode::write ? 1 : 2);
    }
    if (moved <= best_bytes) {
      best = rank;
      best_bytes = moved;
    }
  }
  return best;
}

// --- the present version travels

void Flow::bring(Handle& handle, std::uint32_t executor, Purpose purpose, int priority) {
  const Place& place = place_of(handle);
  if (place.owner == kEverywhere || executor == place.holder) return;
  if (place.holder != rank_) {
    if (executor == rank_ || executor == kEverywhere) receive_here(handle, purpose, priority);
    return;
  }
  recipients_.clear();
  add_recipients(executor, priority);
  send_to(handle, recipients_);
}

/// To all for whom it was recorded at once: the data may be ready.
void Flow::bring_recorded(std::span<Recording::Sending> sendings) {
  while (!sendings.empty()) {
    Handle& handle = *sendings.front().handle;
    std::shared_ptr<comm::BroadcastPlan>& plan = sendings.front().plan;
    std::size_t count = 0;
    recipients_.clear();
    for (; count < sendings.size() && sendings[count].handle == &handle; ++count) {
      const Recording::Sending& sending = sendings[count];
      if (place_of(handle).holder != rank_) bring(handle, sending.recipient, Purpose::copy, sending.priority);
      else if (sending.recipient != rank_) add_recipients(sending.recipient, sending.priority);
    }
    if (place_of(handle).owner != kEverywhere && !recipients_.empty()) {
      if (plan == nullptr) plan = std::make_shared<comm::BroadcastPlan>();
      send_to(handle, recipients_, plan);
    }
    sendings = sendings.subspan(count);
  }
}

void Flow::add_recipients(std::uint32_t executor, int priority) {
  if (executor != kEverywhere) return recipients_.push_back({base::Rank(executor), priority});
  for (std::uint32_t step = 1; step < size_; ++step) recipients_.push_back({base::Rank((rank_ + step) % size_), priority});
}

/// Whether the recipient still has the present version of what this rank holds; it has from now on.
bool Flow::has_it(Datum& datum, const Place& place, std::uint32_t recipient) {
  if (keeps_all()) {
    if (datum.recipients.contains(recipient)) return true;
    datum.recipients.add(recipient);
    return false;
  }
  const auto dropped = [&](std::uint32_t id) {
    if (const auto at = data_.find(id); at != data_.end()) at->second->recipients.remove(recipient);
  };
  datum.recipients.add(recipient);
  return kept(kept_at_, recipient).use(place.id, datum.handle.travel_bytes(), dropped);
}

void Flow::send_to(Handle& handle, std::span<const comm::Recipient> recipients,
                   const std::shared_ptr<comm::BroadcastPlan>& plan) {
  Datum& datum = datum_of(handle);
  const Place& place = place_of(handle);
  std::vector<comm::Recipient>& unserved = unserved_;
  unserved.clear();
  for (const comm::Recipient& to : recipients) {
    if (has_it(datum, place, to.rank.value())) {
      if (datum.bag != nullptr) Transfers::raise(*datum.bag, to);
      continue;
    }
    ++datum.sent_to;
    if (datum.bag == nullptr || !transfers_.add(*datum.bag, to)) unserved.push_back(to);
    else if (datum.bags == 1) ++datum.first_bag;
  }
  if (unserved.empty()) return;
  datum.bag =
      transfers_.send(handle, {place.id, data_channel_, place.version, knows_version(place)}, unserved, packed_of(datum), plan);
  if (++datum.bags == 1) datum.first_bag = static_cast<std::uint32_t>(unserved.size());
}

void Flow::receive_here(Handle& handle, Purpose purpose, int priority) {
  Datum& datum = datum_of(handle);
  Place& place = place_of(handle);
  if (keeps_all()) {
    if (place.copied) return;
  } else {
    const auto dropped = [&](std::uint32_t id) {
      if (handles_[id] != nullptr) to_drop_.push_back(handles_[id]);
    };
    if (kept(kept_from_, place.holder).use(place.id, handle.travel_bytes(), dropped)) return;
    // Dropped by another use of this very task: the sender sends it again, and it is kept from now on.
    if (place.copied) {
      std::erase(to_drop_, &handle);
      drop(handle);
    }
  }
  runtime::TaskRef gate;
  if (purpose == Purpose::copy && !handle.user_memory) {
    const std::size_t bytes = handle.travel_bytes();
    datum.reserved = true;
    if (!copies_.try_reserve(bytes)) {
      runtime::EventTasks room;
      core_.events().submit(core_.events().begin("memory for " + handle.name, 0), false, room);
      gate = room.readable;
      copies_.reserve_later(bytes, [this, gate] { core_.events().complete(gate); });
    }
  }
  transfers_.receive(handle, {place.id, data_channel_, place.version, knows_version(place)}, place.holder, gate, priority);
  place.copied = true;
}

/// A task has all its copies at once, beside those that are kept for later ones.
void Flow::check_budget(const Wish& wish) {
  if (keeps_all()) return;
  std::size_t needed = 0;
  std::size_t beside = 0;
  for (const auto& [peer, copies] : kept_from_) beside += copies.bytes();
  for (const Need& need : needs_) {
    const Place& place = place_of(*need.handle);
    if (!need.sees || !place.copied) continue;
    const std::size_t bytes = need.handle->travel_bytes();
    if (place.datum->reserved) needed += bytes;
    if (kept(kept_from_, place.holder).contains(place.id)) beside -= bytes;
  }
  const std::size_t budget = copies_.bytes();
  if (needed + beside <= budget) return;
  throw UsageError(fmt::format(
      "a task{} sees {} bytes of other ranks' data at once, {} bytes are kept for later tasks, and option copies allows {} bytes "
      "in all; give it {} or more",
      wish.where ? fmt::format(" (at {})", runtime::describe(wish.where)) : "", needed, beside, budget, kKeptPart * needed));
}

// --- the next version is made

void Flow::overwrite(Handle& handle, std::uint32_t executor) {
  Place& place = place_of(handle);
  note_written(place);
  if (place.owner == kEverywhere) return;
  const bool was_holder = place.holder == rank_;
  if (was_holder && place.datum != nullptr) close_version(*place.datum, place);
  if (executor == rank_) {
    if (place.copied) {
      // Our copy becomes the data itself, and counts no more as a copy.
      Datum& datum = *place.datum;
      if (!keeps_all()) kept(kept_from_, place.holder).forget(place.id);
      std::erase(to_drop_, &handle);
      place.copied = false;
      if (std::exchange(datum.reserved, false)) copies_.give_back_in_turn(handle.travel_bytes());
    }
  } else if (place.copied) {
    std::erase(to_drop_, &handle);
    drop_copy(handle);
  } else if (was_holder) {
    drop(handle);
  }
  place.holder = executor;
  if (executor == place.owner) return;
  Datum& datum = datum_of(handle);
  if (!std::exchange(datum.listed_away, true)) away_.push_back(&handle);
}

void Flow::close_version(Datum& datum, Place& place) {
  count_version(datum, counts_);
  datum.bag.reset();
  datum.sent_to = datum.first_bag = datum.bags = 0;
  if (!keeps_all())
    for (auto& [peer, copies] : kept_at_)
      if (datum.recipients.contains(peer)) copies.forget(place.id);
  datum.recipients.clear();
}

void Flow::count_version(const Datum& datum, FlowStatistics& statistics) const {
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

void Flow::drop_copy(Handle& handle) {
  Place& place = place_of(handle);
  if (!keeps_all()) kept(kept_from_, place.holder).forget(place.id);
  place.copied = false;
  drop(handle);
}

/// What this rank has of the data is of no use any more: its memory goes, unless it is the user's, once all tasks that see it
/// have ended.
void Flow::drop(Handle& handle) {
  if (handle.user_memory) return;
  transfers_.tell_submitter<trace::Type::data_dropped>(handle.number);
  struct Drop {
    Flow& flow;
    Handle& handle;
    bool reserved;
    runtime::EventTasks event;
  };
  Datum& datum = datum_of(handle);
  auto* dropped = new Drop{*this, handle, std::exchange(datum.reserved, false), {}};
  Task& task = core_.events().begin("drop " + handle.name, 1);
  task.accesses()[0].set(&handle, AccessMode::write);
  task.extra->context = dropped;
  task.extra->on_ready = [](Task&, void* context) {
    const std::unique_ptr<Drop> what(static_cast<Drop*>(context));
    runtime::RuntimeCore& core = what->flow.core_;
    core.memory().free_replicas(what->handle);
    if (what->reserved) what->flow.copies_.give_back(what->handle.travel_bytes());
    core.events().complete(what->event.readable);
  };
  core_.events().submit(task, false, dropped->event);
  handle.flow.has_value = false;
}

/// A task writes the data afresh here, while another rank has its value, which is dropped there: should the flow be cancelled
/// between, there is none.
void Flow::mark_lost(Handle& handle) {
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

// --- operations of the user's

void Flow::fetch(Handle& handle, std::uint32_t rank, int priority, const SourceLine& where) {
  if (is_over()) return;
  if (rank != kEverywhere && rank >= size_)
    throw UsageError(fmt::format("cannot fetch {} to rank {}: there are {} ranks", handle.described(), rank, size_));
  if (recording_ == nullptr) return fetch_now(handle, rank, {.priority = priority, .where = where}, {});
  recording_->add({.kind = Recording::Kind::fetch, .executor = rank, .priority = priority, .where = where}, handle);
}

/// `ahead`: all that goes to others together with it, of a recorded one.
void Flow::fetch_now(Handle& handle, std::uint32_t rank, const Wish& wish, std::span<Recording::Sending> ahead) {
  settle(handle);
  begin_operation();
  const Use use{&handle, AccessMode::read};
  gather_needs({&use, 1});
  check_values(rank, wish);
  if (rank == rank_ || rank == kEverywhere) check_known(handle, wish.where);
  bring_recorded(ahead);
  bring(handle, rank, Purpose::copy, wish.priority);
  if (rank == rank_ || rank == kEverywhere) check_budget(wish);
  entered();
}

void Flow::migrate(Handle& handle, std::uint32_t rank, const SourceLine& where) {
  if (is_over()) return;
  if (rank >= size_)
    throw UsageError(fmt::format("cannot migrate {} to rank {}{}: there are {} ranks", handle.described(), rank,
                                 where ? fmt::format(" (at {})", runtime::describe(where)) : "", size_));
  if (place_of(handle).owner == kEverywhere)
    throw UsageError(fmt::format("cannot migrate {}: each rank has it for itself", handle.described()));
  if (recording_ == nullptr) return migrate_now(handle, rank, where);
  recording_->add({.kind = Recording::Kind::migrate, .executor = rank, .where = where}, handle);
}

void Flow::migrate_now(Handle& handle, std::uint32_t rank, const SourceLine& where) {
  settle(handle);
  begin_operation();
  Place& place = place_of(handle);
  if (place.owner == rank) return;
  if (rank == rank_) check_known(handle, where);
  // Whether there is a value knows who is to see it, here or after this; other ranks may have missed who wrote it.
  place.always_here = false;
  if (!place.unwritten) bring(handle, rank, Purpose::possession, 0);
  const bool unwritten = place.unwritten;
  place.owner = rank;
  transfers_.tell_submitter<trace::Type::data_migrated>(handle.number, rank);
  if (place.holder != rank) overwrite(handle, rank);
  place.unwritten = unwritten;
  entered();
}

void Flow::flush(Handle& handle) {
  if (is_over()) return;
  if (recording_ == nullptr) return flush_now(handle);
  recording_->add({.kind = Recording::Kind::flush}, handle);
}

void Flow::flush_now(Handle& handle) {
  settle(handle);
  begin_operation();
  Place& place = place_of(handle);
  if (place.owner == kEverywhere || place.datum == nullptr) return;
  if (place.holder == rank_) close_version(*place.datum, place);
  else if (place.copied) drop_copy(handle);
}

void Flow::send(Handle& handle, std::uint32_t to, std::uint64_t tag, int priority) {
  if (to >= size_ || to == rank_)
    throw UsageError(fmt::format("cannot send {} from rank {} to rank {} of {}", handle.described(), rank_, to, size_));
  if (is_over()) return;
  const comm::Recipient recipient{base::Rank(to), priority};
  if (recording_ == nullptr) return send_now(handle, {&recipient, 1}, tag, nullptr);
  recording_->add({.kind = Recording::Kind::send}, handle, {.tag = tag, .recipients = {recipient}});
}

void Flow::send_now(Handle& handle, std::span<const comm::Recipient> recipients, std::uint64_t tag,
                    const std::shared_ptr<comm::BroadcastPlan>& plan) {
  Datum& datum = datum_of(handle);
  const std::uint32_t version = place_of(handle).version;
  const bool gathers = datum.told != nullptr && datum.told->tag == tag && datum.told_version == version;
  unserved_.clear();
  for (const comm::Recipient& to : recipients) {
    const bool joins = gathers && !datum.told_ranks.contains(to.rank.value()) && transfers_.add(*datum.told, to);
    if (joins) datum.told_ranks.add(to.rank.value());
    else unserved_.push_back(to);
  }
  if (unserved_.empty()) return;
  datum.told = transfers_.send(handle, {tag, explicit_channel_, Transfers::kAnyVersion}, unserved_, packed_of(datum), plan);
  datum.told_version = version;
  datum.told_ranks.clear();
  for (const comm::Recipient& to : unserved_) datum.told_ranks.add(to.rank.value());
}

void Flow::receive(Handle& handle, std::uint32_t from, std::uint64_t tag) {
  if (from >= size_ || from == rank_)
    throw UsageError(fmt::format("cannot receive {} on rank {} from rank {} of {}", handle.described(), rank_, from, size_));
  if (is_over()) return;
  if (recording_ == nullptr) return receive_now(handle, from, tag);
  recording_->add({.kind = Recording::Kind::receive, .executor = from}, handle, {.tag = tag});
}

void Flow::receive_now(Handle& handle, std::uint32_t from, std::uint64_t tag) {
  Place& place = place_of(handle);
  place.unwritten = false;
  if (place.datum != nullptr) place.datum->told.reset();
  transfers_.receive(handle, {tag, explicit_channel_, Transfers::kAnyVersion}, from, {}, 0);
}

/// A recorded operation that is no task takes place.
void Flow::perform(Recording& recording, const Recording::Operation& operation) {
  using Kind = Recording::Kind;
  Handle& handle = *operation.uses.front().handle;
  const Wish wish{.priority = operation.priority, .where = operation.where};
  // With little memory, what came long before its task might be dropped before it.
  const auto ahead = keeps_all() ? recording.sendings(operation) : std::span<Recording::Sending>();
  switch (operation.kind) {
    case Kind::fetch: return fetch_now(handle, operation.executor, wish, ahead);
    case Kind::migrate: return migrate_now(handle, operation.executor, operation.where);
    case Kind::flush: return flush_now(handle);
    case Kind::send: {
      const Recording::Message& message = recording.message(operation);
      return send_now(handle, message.recipients, message.tag, message.plan);
    }
    case Kind::receive: return receive_now(handle, operation.executor, recording.message(operation).tag);
    case Kind::task:
    case Kind::pass_over: return;
  }
}

// --- the end

/// Data that another rank holds goes back to its owner, as if a task there wrote it.
void Flow::take_home(Handle& handle) {
  const Place& place = place_of(handle);
  bring(handle, place.owner, Purpose::possession, 0);
  overwrite(handle, place.owner);
  entered();
}

void Flow::bring_home() {
  std::vector<Handle*> away = std::exchange(away_, {});
  std::sort(away.begin(), away.end(), [](Handle* a, Handle* b) { return place_of(*a).id < place_of(*b).id; });
  for (Handle* handle : away) {
    const Place& place = place_of(*handle);
    place.datum->listed_away = false;
    if (place.holder == place.owner) continue;
    begin_operation();
    take_home(*handle);
  }
}

FlowStatistics Flow::statistics() const {
  FlowStatistics statistics = counts_;
  for (const auto& [id, datum] : data_)
    if (place_of(datum->handle).holder == rank_) count_version(*datum, statistics);
  statistics.positions = position_;
  statistics.received = transfers_.received();
  statistics.received_bytes = transfers_.received_bytes();
  statistics.most_copy_bytes = copies_.most_reserved();
  return statistics;
}

}  // namespace tandem::dist
