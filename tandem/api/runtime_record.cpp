// tandem/api/runtime_record.cpp: recordings and replays.
#include "tandem/api/runtime.hpp"

#include "tandem/api/recorded_parts.hpp"
#include "tandem/api/runtime_shared.hpp"
#include "tandem/dist/flow.hpp"
#include "tandem/dist/recording.hpp"
#include "tandem/runtime/record/graph.hpp"
#include "tandem/runtime/record/recorder.hpp"
#include "tandem/runtime/runtime_core.hpp"

namespace tandem {

void Runtime::wait(const Replay& replay, const TaskRef& task) {
  check_not_recording("wait for a task");
  if (replay.task == nullptr || task.task == nullptr) return;
  if (flow_ == nullptr) return runtime::wait_in_replay(*core_, replay, replay.recording, replay.first, task);
  if (!task.is_of_recording(replay.recording))
    throw UsageError("cannot wait for a task in this replay: it is not of the recording that was replayed");
  core_->accesses().wait(replay);
}

bool Runtime::is_recording() const noexcept {
  return core_->submission().recorder() != nullptr || (flow_ != nullptr && flow_->recording() != nullptr);
}

void Runtime::check_not_recording(const char* action) const {
  if (!is_recording()) return;
  throw UsageError(
      std::string("cannot ") + action +
      " while a graph is recorded: nothing runs meanwhile; do it outside the recording, before or after a replay");
}

/// Restores the partitions as they were before the recording. `is_whole` false: it was abandoned.
void Runtime::end_recording_of_parts(Graph& graph, bool is_whole) {
  recorded_parts_ = nullptr;
  const internal::RecordedParts::ForEachDatum data = graph.each_datum();
  graph.parts_->finish(is_whole ? &data : nullptr, part_plans_);
}

Graph Runtime::record(const std::function<void()>& flow) {
  Graph graph;
  graph.parts_ = std::make_unique<internal::RecordedParts>();
  if (flow_ != nullptr) {
    graph.recording_ = std::make_unique<dist::Recording>(*core_);
    flow_->start_recording(*graph.recording_);
    graph.number_ = recording_number_ = runtime::next_recording_number();
    recorded_parts_ = graph.parts_.get();
    try {
      flow();
      graph.parts_->check();
      flow_->end_recorded_sums();
    } catch (...) {
      flow_->stop_recording();
      end_recording_of_parts(graph, false);
      throw;
    }
    flow_->stop_recording();
    end_recording_of_parts(graph, true);
    graph.recording_->finish();
    return graph;
  }
  graph.graph_ = std::make_unique<runtime::RecordedGraph>(*core_);
  graph.number_ = graph.graph_->number();
  runtime::Recorder recorder(*graph.graph_);
  recorder.start();
  recorded_parts_ = graph.parts_.get();
  try {
    flow();
    graph.parts_->check();
  } catch (...) {
    recorder.stop();
    end_recording_of_parts(graph, false);
    throw;
  }
  recorder.stop();
  recorder.finish();
  end_recording_of_parts(graph, true);
  return graph;
}

Replay Runtime::replay(Graph& graph) {
  core_->submission().thread().check("replay a graph");
  if (graph.recording_ == nullptr && graph.graph_ == nullptr)
    throw UsageError("cannot replay an empty Graph; assign what record returns to it first");
  const auto between_parts = [&](const auto& enter) {
    if (is_recording() || is_over()) return enter();
    graph.parts_->prepare(graph.each_datum(), part_plans_);
    bool is_entered = false;
    try {
      is_entered = enter();
    } catch (...) {
      graph.parts_->leave(false);
      throw;
    }
    graph.parts_->leave(is_entered);
    return is_entered;
  };
  if (graph.recording_ == nullptr) {
    TaskRef end;
    between_parts([&] {
      end = graph.graph_->replay();
      return end.task != nullptr;
    });
    return {end, graph.number_, end.id + 1 - graph.graph_->task_count()};
  }
  check_not_recording("replay a graph");
  if (is_over() || !between_parts([&] { return flow_->replay(*graph.recording_); })) return {};
  static const Codelet end("end of a replay", NoWork());
  const std::span<const TaskRef> ends = graph.recording_->ends();
  return {core_->submission().submit_after(core_->submission().begin(end.core(), NoWorkCode::ops, 0), ends.data(),
                                           ends.size()),
          graph.number_, 0};
}

}  // namespace tandem
