// tandem/runtime/record/graph.hpp: a flow captured once, to be replayed.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "tandem/base/large_memory.hpp"
#include "tandem/runtime/data/handle.hpp"
#include "tandem/runtime/record/recorded_flow.hpp"
#include "tandem/runtime/task/codelet_core.hpp"
#include "tandem/runtime/task/task.hpp"

namespace tandem::runtime {

class RuntimeCore;

/// Index of a task in a recording.
using RecordIndex = std::uint32_t;
inline constexpr RecordIndex kNoTask = ~RecordIndex{0};

/// One access of one recorded task.
struct RecordedAccess {
  RecordIndex task = kNoTask;
  std::uint16_t slot = 0;
};

/// How a recording uses one piece of data, seen from outside.
struct RecordedUse {
  Handle* handle = nullptr;
  std::vector<RecordedAccess> entries;   ///< accesses that follow tasks submitted live before the replay
  RecordIndex writer_after_readers = kNoTask;  ///< first writer, if readers of the recording come before it
  RecordIndex exit_writer = kNoTask;     ///< the last writer
  std::vector<RecordIndex> exit_readers; ///< readers after the last writer, or the end of the replay if they are many
  bool exit_at_end = false;
  bool needs_value = false;              ///< the first access sees the value from before
};

/// A set of tasks to be replayed, one replay at a time.
struct Instance {
  std::unique_ptr<std::byte, base::FreeLarge> memory;
  std::size_t bytes = 0;
  std::vector<Task*> tasks;
  std::vector<RecordedPart> parts;
  std::vector<Task*> successors;
  ReplayState state;
  TaskRef end;                 ///< end of the last replay
  std::uint64_t version = 0;   ///< version of the graph's changes that the tasks have
  std::size_t boundary_count = 0;  ///< tasks of the graph's boundary that are marked in `parts`

  /// Removes those whose replays have not ended from `instances`. The others may be destroyed once the data has
  /// forgotten ended tasks.
  static std::vector<std::unique_ptr<Instance>> take_running(std::vector<std::unique_ptr<Instance>>& instances);
  /// Ends its tasks, which no worker runs and no data names.
  void destroy(RuntimeCore& runtime) noexcept;
};

/// A recorded flow: the graph of its tasks, with static edges, and what joins it to live submissions. Belongs to the
/// submitting thread. Several replays may be under way at a time: each uses an instance of its own, and an instance
/// whose replay has ended is used again, so the steady state allocates nothing. Data over the user's memory may be
/// unregistered, and is then to be replaced by `rebind` before the next replay.
///
/// Order. A replay has the place in the flow where `replay` was called. Its first accesses to a piece of data follow
/// the live tasks (or the replay) before, and its last ones precede those after, as if all its tasks had been submitted
/// there. Only data that more than `kExactReaders` tasks read last is held until the whole replay has ended.
class RecordedGraph final : public RecordedFlow {
 public:
  static constexpr std::size_t kExactReaders = 8;

  using RecordedFlow::RecordedFlow;
  /// Waits for its replays. Those it cannot wait for stay with the runtime (`LeftReplays`).
  ~RecordedGraph() override;

  Replay replay() override;
  std::size_t task_count() const noexcept override { return templates_.size() - 1; }
  std::size_t instance_count() const noexcept { return instances_.size(); }
  /// Number of entries of the list of changes, for tests of its bound.
  std::size_t change_count() const noexcept { return changes_.size(); }

  Task* change(const TaskRef& task) override;
  void rebind(Handle& from, Handle& to) override;

  /// Lets live tasks follow this task of the replays to come.
  void watch(RecordIndex task);

 private:
  friend class Recorder;

  Instance& idle_instance();
  std::unique_ptr<Instance> build_instance();
  void update(Instance& instance);
  void note_change(RecordIndex task);
  std::uint32_t follow_depth();
  void enter_data(Instance& instance);
  void leave_data(Instance& instance);
  void start(Instance& instance);

  std::vector<Task*> templates_;             ///< templates of the tasks; the last one is the join at the end
  std::vector<std::size_t> bytes_;           ///< bytes of each template
  std::vector<std::int32_t> predecessors_;
  std::vector<std::uint32_t> first_successor_;  ///< offsets into successors_, one more than tasks
  std::vector<std::uint32_t> explicit_from_;
  std::vector<RecordIndex> successors_;
  std::vector<RecordedUse> uses_;
  std::vector<RecordIndex> guarded_;  ///< tasks with entries: their counts hold a guard until the replay has entered
  std::vector<RecordIndex> roots_;           ///< tasks without predecessors and entries
  std::vector<RecordIndex> boundary_;
  std::vector<bool> at_boundary_;            ///< by task: whether it is in `boundary_`
  std::vector<std::unique_ptr<Instance>> instances_;
  std::vector<std::pair<std::uint64_t, RecordIndex>> changes_;  ///< versions and tasks, in order
  std::vector<std::uint64_t> changed_at_;  ///< by task: version of its last change; empty: none has changed
  std::uint64_t version_ = 0;
  std::uint32_t traced_as_ = 0;         ///< number in the trace; 0: none yet
  std::uint64_t traced_version_ = 0;
};

/// Waits for `task` of the replay: on one rank for the task alone if it is at the graph's boundary or was waited for
/// before this replay, else for the end of the replay. Later replays then have the task at their boundary. Throws as
/// `Accesses::wait`, and UsageError when the task is not of the recording.
void wait_in_replay(RuntimeCore& runtime, const Replay& replay, const TaskRef& task);

}  // namespace tandem::runtime
