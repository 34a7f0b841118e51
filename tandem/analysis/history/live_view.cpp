// tandem/analysis/history/live_view.cpp: follows the events of a running rank, and reports what it does.
#include "tandem/analysis/history/live_view.hpp"

#include <algorithm>
#include <functional>
#include <utility>

#include "tandem/analysis/history/event_fields.hpp"

namespace tandem::analysis {

using trace::Event;
using trace::Type;

namespace {

std::optional<LiveSpent> spent_in(ActorState state) noexcept {
  switch (state) {
    case ActorState::executing: return LiveSpent::kernels;
    case ActorState::scheduling:
    case ActorState::fetching: return LiveSpent::runtime;
    case ActorState::polling:
    case ActorState::sleeping:
    case ActorState::progressing:
    case ActorState::holding: return LiveSpent::idle;
    case ActorState::absent: return LiveSpent::program;
    default: return std::nullopt;
  }
}

constexpr std::size_t index_of(LiveSpent spent) noexcept { return static_cast<std::size_t>(spent); }

}  // namespace

std::string_view name_of(LiveSpent spent) noexcept {
  constexpr std::array<std::string_view, live_spent_kinds> names{"kernels", "runtime", "idle", "program"};
  return names[index_of(spent)];
}

std::string_view name_of(LiveProgram program) noexcept {
  switch (program) {
    case LiveProgram::submitting: return "submitting";
    case LiveProgram::waiting: return "waiting";
    case LiveProgram::throttled: return "throttled";
  }
  return "";
}

LiveView::Actor& LiveView::actor_of(std::uint32_t number) {
  if (actors_.size() <= number) actors_.resize(number + 1);
  return actors_[number];
}

bool LiveView::is_worker(std::uint32_t number) const {
  return number < rank_.actors().size() && rank_.actors()[number].described &&
         rank_.actors()[number].kind == trace::ActorKind::worker;
}

std::string LiveView::codelet(std::uint16_t site) const {
  return site < rank_.sites().size() && !rank_.sites()[site].codelet.empty() ? rank_.sites()[site].codelet : "?";
}

// --- events

void LiveView::event(const Event& event) {
  using trace::Category;
  switch (event.spec().category) {
    case Category::task: add_task(event); break;
    case Category::worker: {
      if (event.type != Type::worker_state) break;
      Actor& actor = actor_of(event.actor);
      const auto state =
          event.number(0) < trace::kWorkerStates ? static_cast<ActorState>(event.number(0)) : ActorState::other;
      if (actor.running.empty() && actor.base != state) {
        account(actor, event.local_ns);
        actor.state_since_ns = event.local_ns;
      }
      actor.base = state;
      break;
    }
    case Category::comm:
    case Category::broadcast: add_message(event); break;
    case Category::dist: add_flow(event); break;
    case Category::flow: add_program(event); break;
    case Category::tracer:
      if (event.type == Type::tracer_waited) tracer_waited_ns_ += static_cast<std::int64_t>(event.number(0));
      break;
    case Category::user:
      if (event.type == Type::counter) counters_[u32(event, 0)] = event.real(1);
      break;
    default: break;
  }
}

/// Forgets an actor's state: what it did between the packets, and does now, is not known.
void LiveView::missed(std::uint32_t number, std::uint64_t packets) {
  Actor& actor = actor_of(number);
  actor.running.clear();
  actor.base.reset();
  actor.since_ns = actor.state_since_ns = no_time;
  missed_ += packets;
  all_missed_ += packets;
}

LiveView::Kernel& LiveView::kernel_of(std::uint16_t site) {
  if (kernels_.size() <= site) kernels_.resize(std::size_t{site} + 1);
  return kernels_[site];
}

void LiveView::account(Actor& actor, std::int64_t until_ns) {
  const std::int64_t from_ns = std::max(actor.since_ns, begin_ns_);  // no_time is the least number
  if (actor.since_ns != no_time && until_ns > from_ns && begin_ns_ != no_time) {
    if (!actor.running.empty()) {
      actor.ns[index_of(LiveSpent::kernels)] += until_ns - from_ns;
      kernel_of(actor.running.back().site).ns += until_ns - from_ns;
    } else if (actor.base) {
      if (const auto spent = spent_in(*actor.base)) actor.ns[index_of(*spent)] += until_ns - from_ns;
    }
  }
  actor.since_ns = std::max(actor.since_ns, until_ns);
}

void LiveView::add_submission(const Event& event) {
  const std::uint16_t site = u16(event, 2);
  // Without task.deps the record has no predecessors, which says nothing.
  const bool is_unbound = event.number(4) == 0 && rank_.selection().has(Type::task_deps);
  const bool is_known_node = site < rank_.sites().size() && is_node(rank_.sites()[site].codelet);
  const auto flags =
      static_cast<std::uint8_t>((is_known_node ? LiveTasks::node : 0) | (is_unbound ? LiveTasks::unbound : 0));
  const std::uint8_t now = tasks_.submit(u32(event, 0), site, flags);
  if (expected_.empty()) return;
  const auto expected = expected_.find(u32(event, 0));
  if (expected != expected_.end() && expected->second.since_ns == no_time &&
      (now & (LiveTasks::ready | LiveTasks::unbound)) != 0)
    expected->second.since_ns = event.local_ns;
}

void LiveView::add_task(const Event& event) {
  switch (event.type) {
    case Type::task_submitted:
    case Type::task_submitted_wide: return add_submission(event);
    case Type::task_replayed: return tasks_.replay(u32(event, 0), u32(event, 1), u32(event, 2));
    case Type::task_ready:
      tasks_.note(u32(event, 0), LiveTasks::ready);
      if (expected_.empty()) return;
      if (const auto expected = expected_.find(u32(event, 0)); expected != expected_.end())
        expected->second.since_ns = event.local_ns;
      return;
    case Type::task_started: {
      const std::uint32_t task = u32(event, 0);
      const std::uint16_t site = tasks_.note(task, LiveTasks::started).site;
      Actor& actor = actor_of(event.actor);
      account(actor, event.local_ns);
      actor.running.push_back({task, site, event.local_ns});
      return;
    }
    case Type::task_ended: {
      const std::uint32_t task = u32(event, 0);
      const std::uint16_t site = tasks_.note(task, LiveTasks::ended).site;
      Actor& actor = actor_of(event.actor);
      account(actor, event.local_ns);
      const auto open = std::ranges::find(actor.running, task, &Running::task);
      if (open != actor.running.end()) {
        ++kernel_of(open->site != LiveTasks::no_site ? open->site : site).tasks;
        actor.running.erase(open, actor.running.end());
      } else {
        ++kernel_of(site).tasks;
      }
      actor.state_since_ns = event.local_ns;
      ++actor.tasks;
      ++interval_tasks_.ended;
      return;
    }
    case Type::task_id: told_id_ = event.number(0); return;
    case Type::task_failed: ++interval_tasks_.failed; return;
    case Type::task_cancelled:
      if ((tasks_.note(u32(event, 0), LiveTasks::ended).flags & LiveTasks::node) != 0) return;
      ++interval_tasks_.cancelled;
      return;
    default: return;
  }
}

void LiveView::add_message(const Event& event) {
  const auto sent = [&](std::uint64_t bytes) {
    ++messages_.sent;
    messages_.sent_bytes += bytes;
  };
  switch (event.type) {
    case Type::send_posted: return sent(event.number(5));
    case Type::mcast_posted:
      broadcast_bytes_[u32(event, 0)] = event.number(3);
      return;
    case Type::mcast_recipient: {
      const auto broadcast = broadcast_bytes_.find(u32(event, 0));
      return sent(broadcast == broadcast_bytes_.end() ? 0 : broadcast->second);
    }
    case Type::message_arrived:
      ++messages_.arrived;
      messages_.arrived_bytes += event.number(4);
      return;
    case Type::message_released:
    case Type::message_failed: broadcast_bytes_.erase(u32(event, 0)); return;
    default: return;
  }
}

void LiveView::add_flow(const Event& event) {
  if (event.type == Type::data_expected) {
    Expected& expected = expected_[u32(event, 2)];
    expected = {.data = u32(event, 0), .peer = u32(event, 3)};
  } else if (event.type == Type::data_received) {
    expected_.erase(u32(event, 2));
  }
}

void LiveView::add_program(const Event& event) {
  switch (event.type) {
    case Type::wait_began: program_ = LiveProgram::waiting; break;
    case Type::submission_throttled: program_ = LiveProgram::throttled; break;
    case Type::wait_ended:
    case Type::submission_resumed: program_ = LiveProgram::submitting; break;
    default: return;
  }
  program_since_ns_ = event.local_ns;
}

// --- what was

std::vector<std::string> LiveView::lacks() const {
  const trace::Selection& selected = rank_.selection();
  std::vector<std::string> lacking;
  const auto need = [&](std::string word, std::initializer_list<Type> types) {
    for (const Type type : types)
      if (!selected.has(type)) return lacking.push_back(std::move(word));
  };
  need("task", {Type::task_submitted, Type::task_deps, Type::task_ready, Type::task_started, Type::task_ended});
  need("worker", {Type::worker_state});
  need("flow", {Type::wait_began, Type::submission_throttled});
  if (rank_.manifest().size > 1) {
    need("comm", {Type::send_posted, Type::message_arrived});
    need("broadcast", {Type::mcast_posted, Type::mcast_recipient});
    need("dist", {Type::data_expected, Type::data_received});
  }
  return lacking;
}

/// The number of a task; `task`: the low 32 bits of an id near the last recorded one.
std::uint64_t LiveView::number_of(std::uint32_t task) const {
  const auto step = static_cast<std::int32_t>(task - static_cast<std::uint32_t>(told_id_));
  const std::uint64_t whole = told_id_ == 0 ? task : told_id_ + static_cast<std::uint64_t>(std::int64_t{step});
  return rank_.manifest().size > 1 ? whole >> trace::kIdBitsBelowPosition : whole;
}

LiveWorker LiveView::worker_now(std::uint32_t number, const Actor& actor, std::int64_t now_ns) const {
  const trace::LiveRank::Actor& facts = rank_.actors()[number];
  LiveWorker worker;
  worker.worker = facts.index;
  worker.core = facts.core;
  worker.ns = actor.ns;
  worker.tasks = actor.tasks;
  if (!actor.running.empty()) {
    const Running& running = actor.running.back();
    worker.state = ActorState::executing;
    worker.state_ns = std::max<std::int64_t>(0, now_ns - running.since_ns);
    worker.task = number_of(running.task);
    worker.kernel = codelet(running.site != LiveTasks::no_site ? running.site : tasks_.site_of(running.task));
  } else if (actor.base) {
    worker.state = actor.base;
    if (actor.state_since_ns != no_time) worker.state_ns = std::max<std::int64_t>(0, now_ns - actor.state_since_ns);
  }
  return worker;
}

LiveInterval LiveView::take(std::int64_t now_ns) {
  LiveInterval interval;
  interval.now_ns = now_ns;
  interval.length_ns = begin_ns_ == no_time ? 0 : std::max<std::int64_t>(0, now_ns - begin_ns_);
  const trace::Selection& selected = rank_.selection();
  for (std::uint32_t number = 0; number < actors_.size(); ++number) {
    Actor& actor = actors_[number];
    account(actor, now_ns);
    interval.running += actor.running.size();
    if (is_worker(number)) interval.workers.push_back(worker_now(number, actor, now_ns));
    actor.ns = {};
    actor.tasks = 0;
  }
  for (std::uint32_t number = static_cast<std::uint32_t>(actors_.size()); number < rank_.actors().size(); ++number)
    if (is_worker(number)) interval.workers.push_back(worker_now(number, Actor(), now_ns));
  std::ranges::sort(interval.workers, {}, &LiveWorker::worker);

  std::map<std::string, LiveKernel> kernels;
  for (std::size_t site = 0; site < kernels_.size(); ++site) {
    const Kernel times = std::exchange(kernels_[site], {});
    if (times.tasks == 0 && times.ns == 0) continue;
    LiveKernel& kernel = kernels[codelet(static_cast<std::uint16_t>(site))];
    kernel.tasks += times.tasks;
    kernel.ns += times.ns;
  }
  for (auto& [name, kernel] : kernels) {
    kernel.name = name;
    interval.kernels.push_back(kernel);
  }
  std::ranges::stable_sort(interval.kernels, std::greater(), &LiveKernel::ns);

  interval_tasks_.submitted = tasks_.submitted_count() - all_tasks_.submitted;
  interval.tasks = std::exchange(interval_tasks_, {});
  interval.all_tasks = all_tasks_ += interval.tasks;
  const bool is_whole = all_missed_ == 0 && tasks_.is_whole() && rank_.counts().lost_events == 0;
  const auto has = [&](std::initializer_list<Type> types) {
    return std::ranges::all_of(types, [&](Type type) { return selected.has(type); });
  };
  if (is_whole &&
      has({Type::task_submitted, Type::task_deps, Type::task_ready, Type::task_started, Type::task_ended})) {
    interval.waiting = tasks_.waiting();
    interval.ready = tasks_.ready_count();
  }
  interval.messages = std::exchange(messages_, {});
  interval.all_messages = all_messages_ += interval.messages;
  std::map<std::uint32_t, LiveReceives> receives;
  for (const auto& [node, expected] : expected_) {
    if (expected.since_ns == no_time) continue;
    LiveReceives& of = receives[expected.peer];
    ++of.count;
    const std::int64_t age_ns = std::max<std::int64_t>(0, now_ns - expected.since_ns);
    if (of.count > 1 && age_ns <= of.oldest_ns) continue;
    of.oldest_ns = age_ns;
    const std::string* const name = rank_.data_name(expected.data);
    of.data = name != nullptr ? *name : "";
  }
  for (auto& [peer, of] : receives) {
    of.peer = peer;
    interval.receives.push_back(std::move(of));
  }
  interval.program = program_;
  if (program_) interval.program_ns = std::max<std::int64_t>(0, now_ns - program_since_ns_);
  for (const auto& [number, value] : counters_)
    if (const std::string* const name = rank_.name(number)) interval.counters[*name] = value;
  interval.tracer_waited_ns = std::exchange(tracer_waited_ns_, 0);
  interval.missed_packets = std::exchange(missed_, 0);
  begin_ns_ = now_ns;
  return interval;
}

}  // namespace tandem::analysis
