// tandem/api/runtime_record.cpp: recordings and replays.
#include "tandem/api/runtime.hpp"

#include "tandem/api/recorded_parts.hpp"
#include "tandem/runtime/record/graph.hpp"
#include "tandem/runtime/runtime_core.hpp"

namespace tandem {

void Runtime::wait(const Replay& replay, const TaskRef& task) {
  check_not_recording("wait for a task");
  if (replay.task != nullptr && task.task != nullptr) runtime::wait_in_replay(*core_, replay, task);
}

void Runtime::check_not_recording(const char* action) const {
  if (!flow_->is_recording()) return;
  throw UsageError(
      std::string("cannot ") + action +
      " while a graph is recorded: nothing runs meanwhile; do it outside the recording, before or after a replay");
}

Graph Runtime::record(const std::function<void()>& flow) {
  Graph graph;
  graph.parts_ = std::make_unique<internal::RecordedParts>();
  // Restores the partitions as they were before the recording.
  const auto finish = [&](const internal::RecordedParts::ForEachDatum& data) {
    recorded_parts_ = nullptr;
    graph.parts_->finish(data, part_plans_);
  };
  bool is_begun = false;  // false: another graph is recorded
  try {
    graph.flow_ = flow_->record([&] {
      is_begun = true;
      recorded_parts_ = graph.parts_.get();
      flow();
      graph.parts_->check();
    });
  } catch (...) {
    if (is_begun) finish({});
    throw;
  }
  finish(graph.each_datum());
  return graph;
}

Replay Runtime::replay(Graph& graph) {
  core_->submission().thread().check("replay a graph");
  if (graph.flow_ == nullptr)
    throw UsageError("cannot replay an empty Graph; assign what record returns to it first");
  if (flow_->is_recording() || is_over()) return graph.flow_->replay();
  graph.parts_->prepare(graph.each_datum(), part_plans_);
  Replay replay;
  try {
    replay = graph.flow_->replay();
  } catch (...) {
    graph.parts_->leave(false);
    throw;
  }
  graph.parts_->leave(replay.task != nullptr);
  return replay;
}

}  // namespace tandem
