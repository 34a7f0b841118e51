// tandem/runtime/record/recorder.hpp: captures a flow instead of running it.
#pragma once

#include <unordered_map>
#include <vector>

#include "tandem/runtime/record/graph.hpp"

namespace tandem::runtime {

/// Receives what is submitted between `start` and `stop`, infers its dependencies by the rules of the flow
/// (`task/dependencies.hpp`), and fills a `RecordedGraph`. What has no predecessor inside the recording becomes an entry of the
/// graph.
class Recorder {
 public:
  explicit Recorder(RecordedGraph& graph) : graph_(graph) {}

  /// From now on tasks are recorded instead of entered into the flow. Throws UsageError if another recorder is at work. By the
  /// submitting thread, like `stop`.
  void start();
  /// Tasks enter the flow again. Data that only recorded tasks write has no value yet.
  void stop() noexcept;
  /// No more tasks: computes the static graph.
  void finish();

  // By `Submission`, as its functions of these names.
  Task& take(const TaskOps& ops, unsigned access_count);
  void abandon(Task& task) noexcept;
  /// Throws UsageError, and the task is gone, if it cannot be recorded.
  void check(Task& task, const TaskRef* predecessors, std::size_t count);
  TaskRef enter(Task& task, const TaskRef* predecessors = nullptr, std::size_t count = 0);
  /// A task that will be entered is about to give data values.
  void note_values(const Task& task);
  /// An event. With `with_release` its released half follows it in the recording: a task without predecessors that no replay starts.
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

}  // namespace tandem::runtime
