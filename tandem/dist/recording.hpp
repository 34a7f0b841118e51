// tandem/dist/recording.hpp: a part of the flow of several ranks that is kept and submitted repeatedly.
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
#include "tandem/runtime/record/recorded_flow.hpp"

namespace tandem::dist {

class Flow;

/// A recorded flow of several ranks, on one of them: the executor and the data of each task, and on the executor the
/// task itself, filled. The executor is chosen when the task is recorded. All ranks keep the same operations, and
/// submit them at the same position of the flow; explicit messages are each rank's own.
///
/// A migration moves no data while it is recorded: `owner_of` returns the owner at this point of a replay, and
/// determines where the next tasks run. So a replay must begin with the owners with which the recording began
/// (`check_data`).
///
/// A recording knows every reader of a version before the first one is submitted (`RecordedSending`). So its broadcasts
/// are complete, also of data that is ready when the replay begins. With a budget for copies they are sent task by task
/// instead.
///
/// Threads: the submitting thread.
class Recording final : public runtime::RecordedFlow {
 public:
  /// An explicit message.
  struct Message {
    std::uint64_t tag = 0;
    std::vector<comm::Recipient> recipients = {};    ///< recipients of `send`: one value goes to all of them at once
    std::shared_ptr<comm::BroadcastPlan> plan = {};  ///< plan of `send`
  };

  Recording(runtime::RuntimeCore& core, Flow& flow) : RecordedFlow(core), flow_(flow) {}
  ~Recording() override;

  /// Adds a task of rank `wish.on`; with `wish.is_task` false, one of Tandem's own. The recording owns `model`, filled,
  /// from now on, also when this throws. Returns the reference to the task; an empty one on ranks that do not run it.
  /// With `event` it is an event of the program: `model` names it, and is never run, and each replay calls
  /// `event->submit` on its rank, at its position. Throws UsageError.
  runtime::TaskRef add(std::span<const Use> uses, const Wish& wish, runtime::Task* model,
                       const RecordedEvent* event = nullptr);
  /// Adds an operation that is no task. Throws UsageError.
  void add(const RecordedOperation& operation, runtime::Handle& handle);
  void add(RecordedOperation operation, runtime::Handle& handle, Message message);
  /// Records that this rank skips so many tasks.
  void skip(std::uint64_t tasks);
  /// With `check_pruning`: notes that this rank would have skipped the last task.
  void note_skipped() noexcept { operations_.back().skipped = true; }
  /// Ends the recording: no more operations follow.
  void finish();
  /// While recording: whether the data has a value at this point of a replay; no value: as outside.
  std::optional<bool> has_value(runtime::Handle& handle) const {
    const auto known = has_value_.find(&handle);
    return known != has_value_.end() ? std::optional<bool>(known->second) : std::nullopt;
  }
  void note_value(runtime::Handle& handle, bool has_value) { has_value_[&handle] = has_value; }
  /// While recording: the owner of the data at this point of a replay.
  std::uint32_t owner_of(runtime::Handle& handle) const;

  runtime::Task* change(const runtime::TaskRef& task) override;
  void rebind(runtime::Handle& from, runtime::Handle& to) override;

  /// Skipped tasks included: equal on all ranks.
  std::size_t task_count() const noexcept override { return task_count_; }
  std::span<const RecordedOperation> operations() const noexcept { return operations_; }
  std::span<RecordedSending> sendings(const RecordedOperation& operation) noexcept {
    return std::span(sendings_).subspan(operation.first_sending, operation.sendings);
  }

  const Message& message(const RecordedOperation& operation) const noexcept { return messages_[operation.message]; }

  /// Throws UsageError when data was unregistered since, or has another owner and the recording migrates it.
  void check_data() const;
  /// Submits a copy of an operation's model, or an event.
  void submit(const RecordedOperation& operation);
  /// The end of the replay follows its tasks on this rank.
  runtime::Replay replay() override;

 private:
  /// The owners of data that is migrated, before and after a replay.
  struct Move {
    std::uint32_t from = 0;
    std::uint32_t to = 0;
  };

  bool adds_to(const runtime::Handle& handle) const;
  void find_sendings();
  void find_ends();

  static constexpr std::uint32_t kNone = UINT32_MAX;

  Flow& flow_;
  std::vector<RecordedOperation> operations_;
  std::size_t task_count_ = 0;
  std::unordered_map<runtime::Handle*, Move> moves_;
  std::unordered_map<runtime::Handle*, bool> has_value_;  ///< of data that it has changed so far, while recording
  std::vector<std::vector<Use>> uses_;  ///< uses of each operation
  std::vector<std::vector<std::uint32_t>> after_;
  std::vector<RecordedSending> sendings_;
  std::vector<Message> messages_;
  std::vector<RecordedEvent> events_;
  std::vector<std::uint32_t> last_;     ///< tasks that no other task on this rank follows
  std::vector<runtime::TaskRef> submitted_;  ///< tasks of the last replay, by operation
  std::vector<runtime::TaskRef> ends_;  ///< of the last replay: released halves of its events, then those of `last_`
};

}  // namespace tandem::dist
