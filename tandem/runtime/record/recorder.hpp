// tandem/runtime/record/recorder.hpp: captures a flow instead of running it.
#pragma once

#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include "tandem/runtime/record/graph.hpp"

namespace tandem::runtime {

/// Receives the tasks that are submitted while it lives, infers their dependencies by the rules of the flow
/// (`task/dependencies.hpp`), and fills a `RecordedGraph`. A task without a predecessor in the recording becomes an
/// entry of the graph.
class Recorder {
 public:
  /// Begins to record tasks instead of entering them into the flow. Throws UsageError if another recorder is active.
  explicit Recorder(RecordedGraph& graph);
  /// Lets tasks enter the flow again. Data that only recorded tasks write has no value yet.
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  /// Computes the static graph after the last task.
  void finish();

  // `Submission` calls these in its functions of the same names.
  Task& take(const TaskOps& ops, unsigned access_count);
  void abandon(Task& task) noexcept;
  /// Throws UsageError if the task cannot be recorded; the task is gone then.
  void check(Task& task, const TaskRef* predecessors, std::size_t count);
  TaskRef enter(Task& task, const TaskRef* predecessors = nullptr, std::size_t count = 0);
  /// Notes that a task that will be entered is about to give data values.
  void note_values(const Task& task);
  /// Enters an event. With `with_release` its released half follows it in the recording: a task without predecessors
  /// that no replay starts.
  TaskRef enter_event(Task& task, bool with_release);

 private:
  struct DataState {
    RecordIndex writer = kNoTask;
    std::vector<RecordIndex> members;
    GroupKind kind = GroupKind::readers;
    std::size_t use = 0;  ///< index into the graph's uses
  };
  struct Follower;
  struct Groups;

  RecordIndex add(Task& task, std::size_t bytes);
  RecordIndex add_internal(TaskKind kind, Handle* combined);
  DataState& state_of(Handle* handle);
  void infer(RecordIndex task, std::uint16_t slot);
  void close(DataState& state);
  void edge(RecordIndex from, RecordIndex to, bool explicitly = false);

  RecordedGraph& graph_;
  std::unordered_map<Handle*, DataState> data_;
  std::vector<std::vector<RecordIndex>> successors_;
  std::vector<std::vector<RecordIndex>> explicit_successors_;
  std::vector<bool> has_entry_;
};

/// Calls `flow`, and records the tasks that it submits. Throws what it throws, and UsageError.
std::unique_ptr<RecordedGraph> record_graph(RuntimeCore& runtime, const std::function<void()>& flow);

}  // namespace tandem::runtime
