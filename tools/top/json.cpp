// tools/top/json.cpp: the output of `tandem top --json`: an object for each interval, and one for the end.
#include "tools/counted.hpp"
#include "tools/top/view.hpp"

namespace tandem::tools {

using namespace analysis;

namespace {

Json or_null(const std::optional<std::uint64_t>& value) { return value ? Json(*value) : Json(); }

Json json_of(const LiveWorker& worker) {
  Json seconds = Json::object();
  for (std::size_t i = 0; i < live_spent_kinds; ++i)
    seconds[name_of(static_cast<LiveSpent>(i))] = in_seconds(worker.ns[i]);
  Json object{{"worker", unsigned{worker.worker}},
              {"core", worker.core < 0 ? Json() : Json(worker.core)},
              {"state", worker.state ? Json(name_of(*worker.state)) : Json()},
              {"state_s", in_seconds(worker.state_ns)}};
  object["kernel"] = worker.kernel.empty() ? Json() : Json(worker.kernel);
  object["task"] = worker.task == no_number ? Json() : Json(worker.task);
  object["seconds"] = seconds;
  object["tasks_ended"] = worker.tasks;
  return object;
}

Json json_of(const LiveInterval::Tasks& tasks) {
  return {
      {"submitted", tasks.submitted}, {"ended", tasks.ended}, {"failed", tasks.failed}, {"cancelled", tasks.cancelled}};
}

Json json_of(const LiveMessages& messages) {
  return {{"sent", messages.sent}, {"sent_bytes", messages.sent_bytes}, {"arrived", messages.arrived},
          {"arrived_bytes", messages.arrived_bytes}};
}

Json tracer_json(const TopRank& rank) {
  const trace::LiveRank::Counts counts = rank.trace->counts();
  return {{"lost_events", counts.lost_events},       {"buffers", counts.buffers},
          {"buffers_used", counts.buffers_used},     {"buffers_full", counts.buffers_full},
          {"waited_s", in_seconds(rank.interval.tracer_waited_ns)}, {"events_read", counts.events},
          {"bytes_read", counts.bytes},              {"missed_packets", counts.missed_packets},
          {"reused_buffers", counts.reused_buffers}};
}

Json json_of(const TopRank& rank) {
  const LiveInterval& interval = rank.interval;
  Json workers = Json::array(), kernels = Json::array(), receives = Json::array();
  for (const LiveWorker& worker : interval.workers) workers.push_back(json_of(worker));
  for (const LiveKernel& kernel : interval.kernels)
    kernels.push_back({{"name", kernel.name}, {"tasks_ended", kernel.tasks}, {"seconds", in_seconds(kernel.ns)}});
  for (const LiveReceives& of : interval.receives)
    receives.push_back({{"from_rank", of.peer}, {"receives", of.count}, {"oldest_s", in_seconds(of.oldest_ns)},
                        {"oldest_data", of.data}});
  Json object{{"rank", rank.rank()}, {"host", rank.trace->manifest().host}, {"process", rank.trace->manifest().process},
              {"state", name_of(rank.trace->state())}, {"interval_s", in_seconds(interval.length_ns)},
              {"last_event_s_ago", in_seconds(rank.trace->now_ns() - rank.trace->last_event_ns())}};
  object["lacks"] = Json(rank.view->lacks());
  object["tasks"] = json_of(interval.tasks);
  object["tasks_so_far"] = json_of(interval.all_tasks);
  object["waiting_tasks"] = or_null(interval.waiting);
  object["ready_tasks"] = or_null(interval.ready);
  object["running_tasks"] = interval.running;
  object["messages"] = json_of(interval.messages);
  object["messages_so_far"] = json_of(interval.all_messages);
  object["awaited_data"] = receives;
  object["program"] = interval.program ? Json(name_of(*interval.program)) : Json();
  object["program_s"] = in_seconds(interval.program_ns);
  object["counters"] = Json(interval.counters);
  object["resident_bytes"] = rank.use ? Json(rank.use->resident_bytes) : Json();
  object["cpu_cores"] = rank.use ? Json(rank.cpu) : Json();
  object["tracer"] = tracer_json(rank);
  object["missed_packets"] = interval.missed_packets;
  object["workers"] = workers;
  object["kernels"] = kernels;
  return object;
}

Json head_json(const TopRun& run, const char* kind) {
  const trace::Manifest& manifest = run.manifest();
  return {{"kind", kind}, {"program", manifest.program}, {"job", manifest.job}, {"size", manifest.size}};
}

}  // namespace

Json top_json(const TopRun& run) {
  Json object = head_json(run, "interval"), ranks = Json::array();
  for (const TopRank& rank : run.ranks())
    if (rank.trace != nullptr) ranks.push_back(json_of(rank));
  object["ranks"] = ranks;
  return object;
}

Json end_json(const TopRun& run) {
  Json object = head_json(run, "end"), ranks = Json::array();
  for (const TopRank& rank : run.ranks()) {
    if (rank.trace == nullptr) continue;
    ranks.push_back({{"rank", rank.rank()}, {"state", name_of(rank.trace->state())}, {"tasks", json_of(rank.interval.all_tasks)},
                     {"messages", json_of(rank.interval.all_messages)}, {"tracer", tracer_json(rank)}});
  }
  object["killed"] = run.was_killed();
  object["ranks"] = ranks;
  return object;
}

}  // namespace tandem::tools
