// tandem/dist/recording.hpp: a part of the flow of several ranks that is kept, and submitted again and again.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "tandem/comm/broadcast_plan.hpp"
#include "tandem/comm/endpoint.hpp"
#include "tandem/dist/recorded_operation.hpp"
#include "tandem/dist/use.hpp"
#include "tandem/runtime/event/external_events.hpp"
#include "tandem/runtime/record/kept_data.hpp"
#include "tandem/runtime/runtime_core.hpp"

namespace tandem::dist {

/// What a rank keeps of a recorded flow: of each task its executor and its data, and on the executor the task itself, filled. The
/// executor is chosen when the task is recorded. All ranks keep the same operations, and submit them at the same position of the
/// flow; explicit messages are each rank's own.
///
/// A migration moves no data while it is recorded: `owner_of` returns the owner at this point of a replay, and places the tasks
/// that follow. So a replay must begin with the owners with which the recording began (`check_owners`).
///
/// A recording knows every reader of a version before the first one is submitted (`RecordedSending`). So its broadcasts are
/// complete, also of data that is ready when the replay begins. With a budget for copies they are sent task by task instead.
///
/// Threads: the submitting thread. Data that Tandem allocated lives as long as a recording uses it.
class Recording {
 public:
  /// An explicit message.
  struct Message {
    std::uint64_t tag = 0;
    std::vector<comm::Recipient> recipients = {};    ///< of `send`: one value goes to all of them at once
    std::shared_ptr<comm::BroadcastPlan> plan = {};  ///< of `send`
  };

  explicit Recording(runtime::RuntimeCore& core) : core_(core) {}
  ~Recording();
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  /// Adds a task, or with `wish.is_task` false one of Tandem's own. The recording owns `model`, filled, from now on, also when
  /// this throws. Returns the name of the task for `change`; an empty one on ranks that do not run it. Throws UsageError.
  runtime::TaskRef add(std::span<const Use> uses, const Wish& wish, std::uint32_t executor, runtime::Task* model,
                       std::span<const runtime::TaskRef> after);
  /// Submits an event with these accesses, as if the program did, and returns its nodes.
  using SubmitEvent = std::function<runtime::EventTasks(std::span<const Use> uses)>;
  /// Adds an event of the program, which counts as a task, and as another one when it has a released half (`with_release`). `model`
  /// names it, and is never run. `submit` is called at each replay, where the event takes place, at the event's position.
  runtime::TaskRef add_event(std::span<const Use> uses, const Wish& wish, std::uint32_t executor, runtime::Task* model,
                             bool with_release, SubmitEvent submit);
  /// Adds an operation that is no task. Throws UsageError.
  void add(const RecordedOperation& operation, runtime::Handle& handle);
  void add(RecordedOperation operation, runtime::Handle& handle, Message message);
  /// This rank skips so many tasks.
  void skip(std::uint64_t tasks);
  /// With `check_pruning`: this rank would have skipped the last task.
  void note_skipped() noexcept { operations_.back().skipped = true; }
  /// No more operations.
  void finish();
  const runtime::KeptData& data() const noexcept { return kept_; }
  /// While it is recorded: whether the data has a value at this point of a replay; nothing: as it has outside.
  std::optional<bool> has_value(runtime::Handle& handle) const {
    const auto known = has_value_.find(&handle);
    return known != has_value_.end() ? std::optional<bool>(known->second) : std::nullopt;
  }
  void note_value(runtime::Handle& handle, bool has_value) { has_value_[&handle] = has_value; }
  /// While it is recorded: the owner of the data at this point of a replay.
  std::uint32_t owner_of(runtime::Handle& handle) const;

  /// Values or priority of a task, as `RecordedGraph`; null for a task of another rank. Throw UsageError.
  runtime::Task* change(const runtime::TaskRef& task);
  void rebind(runtime::Handle& from, runtime::Handle& to);

  /// Of the program, skipped ones included: equal on all ranks.
  std::size_t task_count() const noexcept { return task_count_; }
  std::span<const RecordedOperation> operations() const noexcept { return operations_; }
  std::span<RecordedSending> sendings(const RecordedOperation& operation) noexcept {
    return std::span(sendings_).subspan(operation.first_sending, operation.sendings);
  }

  const Message& message(const RecordedOperation& operation) const noexcept { return messages_[operation.message]; }

  /// Throws UsageError when data was unregistered since.
  void check_data() const { kept_.check(core_.data()); }
  /// Throws UsageError when data that the recording migrates has another owner than when it was recorded.
  void check_owners() const;
  /// Submits a copy of an operation's model, or an event.
  void submit(const RecordedOperation& operation);
  /// The tasks of the last replay that no other task of it on this rank follows, and the released halves of its events. Once for
  /// each replay.
  std::span<const runtime::TaskRef> ends();

 private:
  /// The owners of data that is migrated, before and after a replay.
  struct Move {
    std::uint32_t from = 0;
    std::uint32_t to = 0;
  };

  std::uint32_t index_of(const runtime::TaskRef& task) const noexcept;
  bool adds_to(const runtime::Handle& handle) const;
  void find_sendings();
  void find_ends();

  static constexpr std::uint32_t kNone = UINT32_MAX;

  runtime::RuntimeCore& core_;
  std::vector<RecordedOperation> operations_;
  std::size_t task_count_ = 0;
  std::unordered_map<runtime::Handle*, Move> moves_;
  std::unordered_map<runtime::Handle*, bool> has_value_;  ///< of what it has changed so far, while it is recorded
  std::vector<std::vector<Use>> uses_;  ///< of each operation
  std::vector<std::vector<std::uint32_t>> after_;
  std::vector<RecordedSending> sendings_;
  std::vector<Message> messages_;
  std::vector<SubmitEvent> events_;
  std::vector<std::uint32_t> last_;     ///< operations of `ends`
  runtime::KeptData kept_;
  std::vector<runtime::TaskRef> submitted_;  ///< of the last replay, by operation
  std::vector<runtime::TaskRef> released_;   ///< of the last replay: the released halves of events
  std::vector<runtime::TaskRef> ends_;
};

}  // namespace tandem::dist
