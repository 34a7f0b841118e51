// tandem/dist/recording.hpp: a part of the flow of several ranks that is kept, to be submitted again and again.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "tandem/comm/broadcast_plan.hpp"
#include "tandem/comm/endpoint.hpp"
#include "tandem/dist/use.hpp"
#include "tandem/runtime/record/kept_data.hpp"
#include "tandem/runtime/runtime_core.hpp"

namespace tandem::dist {

/// What a rank keeps of a recorded flow: of each task who runs it and what it uses, and where it runs the task itself. Who runs a
/// task is decided when it is recorded. All ranks keep the same operations, and submit them at the same position of the flow; but
/// explicit messages each keeps for itself.
///
/// A migration moves no data while it is recorded: `owner_of` says who will own it at this point of a replay, and tasks that
/// follow are placed by that. So a replay must begin with the owners that the recording began with (`check_owners`).
///
/// A recording knows every reader of a version before the first one is submitted (`Sending`): so its broadcasts are whole, also
/// of data that is ready when the replay begins. Not so with a budget for copies, which are then brought task by task.
///
/// Of the submitting thread. Data that Tandem allocated lives as long as a recording uses it.
class Recording {
 public:
  enum class Kind : std::uint8_t { task, fetch, migrate, flush, send, receive, pass_over };

  /// A step of the recorded flow. All but `task` and `pass_over` are of one piece of data.
  struct Operation {
    Kind kind = Kind::task;
    std::uint32_t executor = 0;      ///< kEverywhere: all ranks. Or who gets what is fetched, is the next owner, sends a message
    int priority = 0;
    std::uint32_t message = 0;       ///< of `send` and `receive`: among the messages
    SourceLine where = {};
    runtime::Task* model = nullptr;  ///< is copied for each replay; null on ranks that do not run the task
    std::span<const Use> uses = {};
    std::span<const std::uint32_t> after = {};  ///< operations that the user wants to come first; all run here
    std::uint32_t first_sending = 0;
    std::uint32_t sendings = 0;
    std::uint64_t passed = 0;        ///< of `pass_over`: so many tasks
    bool skipped = false;            ///< with `check_pruning`: this rank would not have submitted it
  };
  /// An explicit one.
  struct Message {
    std::uint64_t tag = 0;
    std::vector<comm::Recipient> recipients = {};    ///< of `send`: one value goes to all of them at once
    std::shared_ptr<comm::BroadcastPlan> plan = {};  ///< of `send`
  };
  /// A version goes to a rank when the first task is submitted that sees it. Those of one version stand together.
  struct Sending {
    runtime::Handle* handle;
    std::uint32_t recipient;
    int priority;
    std::shared_ptr<comm::BroadcastPlan> plan = {};  ///< of the first of a version, on the rank that sends it: of all its replays
  };

  explicit Recording(runtime::RuntimeCore& core) : core_(core) {}
  ~Recording();
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  /// One more task. `model`, filled, is the recording's from now on, whether this throws or not. Returns what names the task to
  /// `change`; nothing on ranks that do not run it. Throws UsageError.
  runtime::TaskRef add(std::span<const Use> uses, const Wish& wish, std::uint32_t executor, runtime::Task* model,
                       std::span<const runtime::TaskRef> after);
  /// One more operation that is no task. Throws UsageError.
  void add(const Operation& operation, runtime::Handle& handle);
  void add(Operation operation, runtime::Handle& handle, Message message);
  /// So many tasks that this rank passes over.
  void pass_over(std::uint64_t tasks);
  /// With `check_pruning`: the last task is one that this rank would have passed over.
  void note_skipped() noexcept { operations_.back().skipped = true; }
  /// No more operations.
  void finish();
  /// While it is recorded: who owns the data at this point of a replay.
  std::uint32_t owner_of(runtime::Handle& handle) const;

  /// Values or priority of a task, as `RecordedGraph`; null for a task of another rank. Throw UsageError.
  runtime::Task* change(const runtime::TaskRef& task);
  void rebind(runtime::Handle& from, runtime::Handle& to);

  /// Those that are passed over count, too: alike on all ranks.
  std::size_t task_count() const noexcept { return task_count_; }
  std::span<const Operation> operations() const noexcept { return operations_; }
  std::span<Sending> sendings(const Operation& operation) noexcept {
    return std::span(sendings_).subspan(operation.first_sending, operation.sendings);
  }

  const Message& message(const Operation& operation) const noexcept { return messages_[operation.message]; }

  /// Throws UsageError when data was unregistered since.
  void check_data() const { kept_.check(core_.data()); }
  /// Throws UsageError when data that the recording migrates has another owner than when it was recorded.
  void check_owners() const;
  /// Submits a copy of an operation's model.
  void submit(const Operation& operation);
  /// The tasks of the last replay that no other task of it on this rank follows.
  std::span<const runtime::TaskRef> ends();

 private:
  /// Who owns data that is migrated, before and after a replay.
  struct Move {
    std::uint32_t from = 0;
    std::uint32_t to = 0;
  };

  std::uint32_t index_of(const runtime::TaskRef& task) const noexcept;
  void find_sendings();
  void find_ends();

  static constexpr std::uint32_t kNone = UINT32_MAX;

  runtime::RuntimeCore& core_;
  std::vector<Operation> operations_;
  std::size_t task_count_ = 0;
  std::unordered_map<runtime::Handle*, Move> moves_;
  std::vector<std::vector<Use>> uses_;  ///< of each operation
  std::vector<std::vector<std::uint32_t>> after_;
  std::vector<Sending> sendings_;
  std::vector<Message> messages_;
  std::vector<std::uint32_t> last_;     ///< operations of `ends`
  runtime::KeptData kept_;
  std::vector<runtime::TaskRef> submitted_;  ///< of the last replay, by operation
  std::vector<runtime::TaskRef> ends_;
};

}  // namespace tandem::dist
