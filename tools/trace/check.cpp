// tools/trace/check.cpp: `tandem trace check`: checks that spans end, counts agree, and messages arrive after they
// left.
#include "tools/trace/check.hpp"

#include <algorithm>
#include <charconv>
#include <set>
#include <system_error>

#include <fmt/core.h>
#include <fmt/format.h>

#include "tools/counted.hpp"
#include "tools/json/json_report.hpp"
#include "tools/trace/check_books.hpp"
#include "tools/trace/check_findings.hpp"
#include "tools/trace/check_tasks.hpp"
#include "tools/trace/command.hpp"
#include "tools/version.hpp"

namespace tandem::tools {
namespace {

using trace::Event;
using trace::RankTrace;
using trace::StreamReader;
using trace::StreamSummary;
using trace::Type;

std::string place_of(const RankTrace& rank, const StreamSummary& summary) {
  return fmt::format("rank {}, {}", rank.rank, summary.name);
}

/// Whether a stream has all events of its actor, in their order.
bool is_whole(const StreamSummary& summary) noexcept {
  return summary.lost_events == 0 && summary.missing_packets == 0 && !summary.truncated;
}

/// Reads a stream to its end: the reader checks packets, records, stamps and counts.
bool check_bytes(const RankTrace& rank, StreamReader& stream, Findings& findings, bool* selection_changed) {
  stream.rewind();
  std::uint64_t lost = 0;
  for (;;) {
    const auto event = stream.next();
    if (!event) {
      findings.add("every packet and record follows the format", event.error().message);
      return false;
    }
    if (!event.value()) break;
    if (event.value()->type == Type::selection_changed) *selection_changed = true;
    if (event.value()->type == Type::events_lost) lost += event.value()->number(0);
  }
  const StreamSummary& summary = stream.summary();
  if (summary.truncated) findings.add("every file ends with a whole packet", place_of(rank, summary));
  // Only packets' headers count the events lost after the last one.
  if (lost > summary.lost_events)
    findings.add("no more events are said to be lost than the packets count",
                 fmt::format("{}: {} in tracer.lost, {} in the last packet", place_of(rank, summary), lost,
                             summary.lost_events));
  return true;
}

/// Checks the manifest's final numbers against the streams.
void check_manifest(const RankTrace& rank, Findings& findings) {
  const Json manifest = Json::parse(rank.manifest).value_or(Json());
  const Json* const buffers = manifest.find("buffers");
  const Json* const policy = buffers == nullptr ? nullptr : buffers->find("policy");
  const bool never_overwrites = policy != nullptr && (*policy == "lose" || *policy == "wait");
  std::uint64_t events = 0, lost = 0, missing = 0;
  for (const auto& stream : rank.streams) {
    const StreamSummary& summary = stream->summary();
    events += summary.records;
    lost += summary.lost_events;
    missing += summary.missing_packets;
    if (summary.missing_packets > 0 && never_overwrites)
      findings.add("no packet is missing where buffers are never overwritten",
                   fmt::format("{}: {} missing", place_of(rank, summary), summary.missing_packets));
  }
  const Json* const end = manifest.find("end");
  if (end == nullptr || missing > 0) return;
  const auto compare = [&](const char* key, std::uint64_t found) {
    const Json* const said = end->find(key);
    if (said != nullptr && said->is_unsigned() && said->unsigned_number() != found)
      findings.add("rank.json counts what the streams hold",
                   fmt::format("rank {}: {} {} in rank.json, {} in the streams", rank.rank, said->unsigned_number(),
                               key, found));
  };
  compare("events", events);
  compare("lost_events", lost);
}

/// Open spans of one actor: the last one begun ends first.
class Spans {
 public:
  Spans(std::string promise, std::string place) : promise_(std::move(promise)), place_(std::move(place)) {}

  void begin(std::uint64_t what) { open_.push_back(what); }
  void end(std::uint64_t what, const Event& event, const std::string& time, Findings& findings) {
    if (!open_.empty() && open_.back() == what) return open_.pop_back();
    const std::string state = open_.empty() ? "nothing is open" : fmt::format("{} is open", open_.back());
    findings.add(promise_, fmt::format("{} at {} s: {} {}, while {}", place_, time, event.spec().name, what, state));
    // A wrong end is not reported again for each span around it.
    if (const auto found = std::ranges::find(open_, what); found != open_.end()) open_.erase(found);
  }
  std::size_t open() const noexcept { return open_.size(); }
  void finish(Findings& findings) const {
    for (const std::uint64_t what : open_) findings.add(promise_, fmt::format("{}: {} has no end", place_, what));
  }

 private:
  std::string promise_, place_;
  std::vector<std::uint64_t> open_;
};

/// Spans of one actor, of each type that has a begin and an end.
class Actor {
 public:
  Actor(const std::string& place, const Recorded& recorded) {
    for (const Kind& kind : kinds)
      if (recorded.selects({kind.begins, kind.ends})) spans_.emplace_back(&kind, Spans(kind.promise, place));
  }

  void add(const Event& event, const std::string& time, Findings& findings) {
    for (auto& [kind, spans] : spans_) {
      const std::uint64_t what =
          kind->is_named && (event.type == kind->begins || event.type == kind->ends) ? event.number(0) : 0;
      if (event.type == kind->begins) return spans.begin(what);
      if (event.type == kind->ends) return spans.end(what, event, time, findings);
    }
  }
  void finish(Findings& findings) const {
    for (const auto& [kind, spans] : spans_) spans.finish(findings);
  }
  std::size_t open_tasks() const noexcept {
    return spans_.empty() || spans_.front().first->begins != Type::task_started ? 0 : spans_.front().second.open();
  }

 private:
  struct Kind {
    Type begins, ends;
    bool is_named;  ///< its first field names the span
    const char* promise;
  };
  static constexpr Kind kinds[] = {
      {Type::task_started, Type::task_ended, true,
       "each task.started has its task.ended on the same actor, properly nested"},
      {Type::flush_began, Type::flush_ended, true, "each tracer.flush_began has its tracer.flush_ended"},
      {Type::span_began, Type::span_ended, true, "each user.span_began has its user.span_ended, properly nested"},
      {Type::wait_began, Type::wait_ended, false, "each flow.wait_began has its flow.wait_ended"},
      {Type::submission_throttled, Type::submission_resumed, false, "each flow.throttled has its flow.resumed"},
      {Type::quiet_began, Type::quiet_ended, false, "each tracer.quiet_began has its tracer.quiet_ended"}};

  std::vector<std::pair<const Kind*, Spans>> spans_;
};

/// Messages of one key, whose orders of posting and of arrival are equal.
struct Channel {
  std::uint32_t source = 0, destination = 0, channel = 0;
  std::uint64_t tag = 0;
  auto operator<=>(const Channel&) const = default;
};
struct Message {
  std::int64_t time_ns = 0;
  std::uint64_t bytes = 0;
};
struct Traffic {
  std::vector<Message> sent, arrived;
};

class Messages {
 public:
  void add(const Event& event, std::int64_t time_ns) {
    switch (event.type) {
      case Type::send_posted:
        key(event.rank, event.number(1), event.number(2), event.number(4)).sent.push_back({time_ns, event.number(5)});
        break;
      case Type::message_arrived:
        key(event.number(1), event.rank, event.number(2), event.number(3))
            .arrived.push_back({time_ns, event.number(4)});
        break;
      case Type::mcast_posted:
        posted_.insert_or_assign({event.rank, static_cast<std::uint32_t>(event.number(0))},
                                 Posted{static_cast<std::uint32_t>(event.number(1)), event.number(2), event.number(3)});
        break;
      case Type::mcast_recipient:
        if (const auto found = posted_.find({event.rank, static_cast<std::uint32_t>(event.number(0))});
            found != posted_.end()) {
          const Posted& posted = found->second;
          key(event.rank, event.number(1), posted.channel, posted.tag).sent.push_back({time_ns, posted.bytes});
        }
        break;
      case Type::message_failed: failures_.insert(event.rank); break;
      default: break;
    }
  }

  void finish(trace::TraceReader& run, const std::map<std::uint32_t, Recorded>& recorded, const RunTimes& times,
              TraceCheck& result, Findings& findings) const;

 private:
  Traffic& key(std::uint64_t source, std::uint64_t destination, std::uint64_t channel, std::uint64_t tag) {
    return traffic_[{static_cast<std::uint32_t>(source), static_cast<std::uint32_t>(destination),
                     static_cast<std::uint32_t>(channel), tag}];
  }

  std::map<Channel, Traffic> traffic_;
  struct Posted {
    std::uint32_t channel = 0;
    std::uint64_t tag = 0, bytes = 0;
  };
  std::map<std::pair<std::uint32_t, std::uint32_t>, Posted> posted_;  ///< broadcasts, by rank and request
  std::set<std::uint32_t> failures_;
};

std::string name_of(const Channel& key) {
  return fmt::format("from rank {} to rank {}, channel {}, tag {}", key.source, key.destination, key.channel, key.tag);
}

void Messages::finish(trace::TraceReader& run, const std::map<std::uint32_t, Recorded>& recorded, const RunTimes& times,
                      TraceCheck& result, Findings& findings) const {
  using enum Type;
  std::uint64_t not_checked = 0;
  // The sends of a killed rank are known, but not the other ranks' receipts of them.
  const auto has = [&](std::uint32_t rank, std::initializer_list<Type> types) {
    const auto found = recorded.find(rank);
    return found != recorded.end() && found->second.ended() && found->second.has(types);
  };
  // The ranks' clocks announce their end to each other; a rank that has left does not receive it.
  std::set<std::uint64_t> clocks;
  for (const auto& rank : run.ranks)
    for (const auto& [kind, text] : rank->names)
      if (std::uint64_t id = 0; kind == trace::NameKind::channel && text.ends_with(" tandem.clock") &&
                                std::from_chars(text.data(), text.data() + text.size(), id).ec == std::errc{})
        clocks.insert(id);
  for (const auto& [key, traffic] : traffic_) {
    if (!has(key.source, {send_posted, mcast_posted, mcast_recipient}) || !has(key.destination, {message_arrived})) {
      not_checked += traffic.sent.size() + traffic.arrived.size();
      continue;
    }
    const bool of_clocks = clocks.contains(key.channel);
    const bool failed = failures_.contains(key.source) || failures_.contains(key.destination);
    if (traffic.arrived.size() > traffic.sent.size() ||
        (traffic.arrived.size() < traffic.sent.size() && !failed && !of_clocks))
      findings.add("as many messages arrive as were sent",
                   fmt::format("{}: {} sent, {} arrived", name_of(key), traffic.sent.size(), traffic.arrived.size()));
    const auto source_error = times.error_ns(key.source), destination_error = times.error_ns(key.destination);
    const bool same_clock = key.source == key.destination;
    const bool has_clocks = same_clock || (source_error && destination_error);
    const std::int64_t error_ns = same_clock || !has_clocks ? 0 : *source_error + *destination_error;
    // After failures the nth arrival need not be the nth message; of the clocks' messages only the last ones fail.
    const bool in_order = traffic.arrived.size() == traffic.sent.size() || !failed || of_clocks;
    const std::size_t pairs = in_order ? std::min(traffic.sent.size(), traffic.arrived.size()) : 0;
    for (std::size_t i = 0; i < pairs; ++i) {
      const Message &sent = traffic.sent[i], &arrived = traffic.arrived[i];
      ++result.messages_paired;
      if (sent.bytes != arrived.bytes)
        findings.add(
            "a message arrives with the bytes that were sent",
            fmt::format("{}: message {}: {} bytes sent, {} arrived", name_of(key), i, sent.bytes, arrived.bytes));
      if (!has_clocks) continue;
      const std::int64_t latency_ns = arrived.time_ns - sent.time_ns;
      result.least_latency_ns = std::min(result.least_latency_ns.value_or(latency_ns), latency_ns);
      if (latency_ns < -error_ns)
        findings.add("no message arrives before it was sent",
                     fmt::format("{}: message {}: {} ns before, while the clocks err by {} ns", name_of(key), i,
                                 -latency_ns, error_ns));
    }
  }
  if (not_checked > 0)
    result.notes.push_back(
        fmt::format("{} sends and arrivals were not paired: their ranks are not in this trace, lost events, "
                    "or recorded one side only",
                    not_checked));
}

/// Counts of one rank, which are checked against each other.
struct Books {
  Books(const RankTrace& rank, const Recorded& recorded)
      : tasks(rank, recorded), requests(rank, recorded), memory(rank, recorded) {}

  void add(const Event& event, Findings& findings) {
    switch (event.spec().category) {
      case trace::Category::task:
      case trace::Category::sched:
        if (tasks.gap().empty()) tasks.add(event, findings);
        break;
      case trace::Category::data: memory.add(event, findings); break;
      case trace::Category::comm: requests.add(event, findings); break;
      case trace::Category::broadcast:
        requests.add(event, findings);
        memory.add(event, findings);
        break;
      default: break;
    }
    tasks.note_stamp(event);
  }
  void finish(TraceCheck& result, Findings& findings) {
    tasks.finish(result, findings);
    requests.finish(result, findings);
    memory.finish(result, findings);
  }

  TaskBook tasks;
  RequestBook requests;
  MemoryBook memory;
};

void check_events(trace::TraceReader& run, const std::map<std::uint32_t, Recorded>& recorded, TraceCheck& result,
                  Findings& findings) {
  const RunTimes times(run);
  std::map<std::pair<std::uint32_t, std::uint32_t>, Actor> actors;
  std::map<std::uint32_t, Books> books;
  std::uint64_t lossy = 0;
  bool all_tasks = true;
  for (const auto& rank : run.ranks) {
    const Recorded& known = recorded.at(rank->rank);
    books.try_emplace(rank->rank, *rank, known);
    all_tasks &= known.has({Type::task_started, Type::task_ended});
    if (!known.selection_gap().empty())
      result.notes.push_back(fmt::format("spans of rank {} were not checked: {}", rank->rank, known.selection_gap()));
    for (const auto& stream : rank->streams) {
      if (is_whole(stream->summary()))
        actors.emplace(std::pair(rank->rank, stream->summary().actor),
                       Actor(place_of(*rank, stream->summary()), known));
      else ++lossy;
    }
  }
  Messages messages;
  std::optional<std::int64_t> start_ns;
  const auto read = run.in_order([&](const Event& event) { return times.of(event); },
                                 [&](const Event& event, std::int64_t time_ns) {
                                   if (!start_ns) start_ns = time_ns;
                                   ++result.events;
                                   if (event.type == Type::task_started) ++result.tasks_started;
                                   if (event.type == Type::task_ended) ++result.tasks_ended;
                                   if (const auto actor = actors.find({event.rank, event.actor}); actor != actors.end())
                                     actor->second.add(event, seconds(time_ns - *start_ns), findings);
                                   books.at(event.rank).add(event, findings);
                                   messages.add(event, time_ns);
                                   return true;
                                 });
  if (!read) findings.add("every packet and record follows the format", read.error().message);
  for (const auto& [number, actor] : actors) {
    if (run.rank_of(number.first)->complete) actor.finish(findings);
    else result.tasks_running_at_kill += actor.open_tasks();
  }
  if (all_tasks && result.tasks_started != result.tasks_ended + result.tasks_running_at_kill)
    findings.add("as many tasks start as end, or run when their program is killed",
                 fmt::format("{} started, {} ended, {} ran", result.tasks_started, result.tasks_ended,
                             result.tasks_running_at_kill));
  if (lossy > 0)
    result.notes.push_back(
        fmt::format("spans of {} were not checked, because events were lost", counted(lossy, "actor")));
  messages.finish(run, recorded, times, result, findings);
  for (auto& [rank, all] : books) all.finish(result, findings);
}

Json json_of(const Account& account) {
  Json counts = Json::object(), skipped = Json::array();
  for (const auto& [what, count] : account.counts) counts[what] = count;
  for (const Account::Skipped& part : account.skipped) skipped.push_back({{"why", part.why}, {"ranks", part.ranks}});
  return {{"name", account.name}, {"ranks", account.ranks}, {"counts", counts}, {"skipped", skipped}};
}

void print_json(const trace::TraceReader& run, const TraceCheck& result) {
  Json violations = Json::array();
  for (const Violation& violation : result.violations)
    violations.push_back(
        {{"promise", violation.promise}, {"count", violation.count}, {"examples", violation.examples}});
  Json accounts = Json::array();
  for (const Account& account : result.accounts) accounts.push_back(json_of(account));
  print({{"tandem", version}, {"commit", commit}, {"folder", run.folder.string()}, {"events", result.events},
         {"tasks_started", result.tasks_started}, {"tasks_ended", result.tasks_ended},
         {"tasks_running_at_kill", result.tasks_running_at_kill}, {"messages_paired", result.messages_paired},
         {"least_latency_ns", result.least_latency_ns ? Json(*result.least_latency_ns) : Json(nullptr)},
         {"accounts", accounts}, {"violations", violations}, {"notes", result.notes}});
}

std::string ranks_in_words(const std::vector<std::uint32_t>& ranks) {
  constexpr std::size_t most = 8;
  std::string words = ranks.size() == 1 ? "rank" : "ranks";
  for (std::size_t i = 0; i < std::min(ranks.size(), most); ++i)
    words += fmt::format("{} {}", i == 0 ? "" : ",", ranks[i]);
  return ranks.size() > most ? fmt::format("{} and {} more", words, ranks.size() - most) : words;
}

void print_accounts(const std::vector<Account>& accounts) {
  if (accounts.empty()) return;
  fmt::print("\n{:<12} {:>5}  counts\n", "account", "ranks");
  for (const Account& account : accounts) {
    std::string counts;
    for (const auto& [what, count] : account.counts)
      counts += fmt::format("{}{} {}", counts.empty() ? "" : ", ", count, what);
    if (account.ranks > 0) fmt::print("{:<12} {:>5}  {}\n", account.name, account.ranks, counts);
    for (const Account::Skipped& part : account.skipped)
      fmt::print("{:<12}     -  not checked of {}: {}\n", account.name, ranks_in_words(part.ranks), part.why);
  }
  fmt::print("\n");
}

void print_table(const TraceCheck& result) {
  fmt::print("events    {}\ntasks     {} started, {} ended{}\nmessages  {} paired{}\n", result.events,
             result.tasks_started, result.tasks_ended,
             result.tasks_running_at_kill > 0
                 ? fmt::format(", {} ran when the program was killed", result.tasks_running_at_kill)
                 : "",
             result.messages_paired,
             result.least_latency_ns ? fmt::format(", least latency {} ns", *result.least_latency_ns) : "");
  print_accounts(result.accounts);
  for (const std::string& note : result.notes) fmt::print("note: {}\n", note);
  for (const Violation& violation : result.violations) {
    fmt::print("\nviolated {}: {}\n", counted(violation.count, "time"), violation.promise);
    for (const std::string& example : violation.examples) fmt::print("  {}\n", example);
  }
  if (result.violations.empty()) fmt::print("all checks passed\n");
}

}  // namespace

TraceCheck check(trace::TraceReader& run) {
  TraceCheck result;
  Findings findings;
  bool is_sound = true;
  std::map<std::uint32_t, Recorded> recorded;
  for (const auto& rank : run.ranks) {
    bool selection_changed = false;
    for (const auto& stream : rank->streams)
      is_sound = check_bytes(*rank, *stream, findings, &selection_changed) && is_sound;
    check_manifest(*rank, findings);
    recorded.emplace(rank->rank, Recorded(*rank, selection_changed));
  }
  if (is_sound) check_events(run, recorded, result, findings);
  else result.notes.push_back("events were not checked, since not all of them can be read");
  result.violations = findings.take();
  return result;
}

void add_trace_check(Subcommand trace, ToolContext& context) {
  Subcommand command =
      trace.add_subcommand("check", "Check that a trace is complete and consistent; exit status 1 if not");
  const auto folder = trace_folder(command);
  const auto json = json_flag(command);
  command.callback([folder, json, &context] {
    const auto run = open_trace(*folder, context);
    if (run == nullptr) return;
    const TraceCheck result = check(*run);
    *json ? print_json(*run, result) : print_table(result);
    if (!result.violations.empty()) context.exit_status = 1;
  });
}

}  // namespace tandem::tools
