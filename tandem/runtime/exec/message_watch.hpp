// tandem/runtime/exec/message_watch.hpp: messages of data, told to the parts of the runtime that act on them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "tandem/runtime/sched/contention/message_load.hpp"
#include "tandem/runtime/sched/placing/expected_tasks.hpp"

namespace tandem::runtime {

class Executor;
struct Task;

/// What the watch has told others of one message whose data moves. Part of whatever sends or receives the message.
class WatchedMessage {
  friend class MessageWatch;
  std::optional<std::int32_t> urgent_;  ///< the priority by which `MemoryGate` knows of it
  bool is_counted_ = false;             ///< copies between memories are expected to be slower beside it
};

/// `dist` tells it what the network does. It tells `MessageLoad`, by which idle workers poll; `ExpectedTasks` and
/// `Placer`, which wait for a task that a message will make ready; `MemoryGate`, which lets long messages have memory;
/// and `Placer`, for which copies take longer beside messages.
///
/// Threads: any. Calls for one `WatchedMessage` come one at a time.
class MessageWatch {
 public:
  explicit MessageWatch(Executor& executor) noexcept : executor_(executor) {}

  ExpectedTasks& expected() noexcept { return expected_; }
  MessageLoad& load() noexcept { return load_; }

  /// A message that comes will make `task` ready at `due_ns`, and not before this returns. Returns the number for
  /// `expect_no_more`.
  std::uint64_t expect(const Task& task, std::int64_t due_ns, std::int64_t now_ns);
  void expect_no_more(std::uint64_t number);

  /// Whether `begin_data` has an effect for a message of `bytes`.
  bool matters(std::size_t bytes) const noexcept { return needs_memory(bytes) || slows_copies(bytes); }
  /// The data of `message`, of `bytes`, begins to come or to go. `priority`: that of the most urgent task that waits
  /// for it; nothing: none does.
  void begin_data(WatchedMessage& message, std::size_t bytes, std::optional<std::int32_t> priority);
  /// It has come or gone, or never will: tasks that waited for that go on. Without effect unless `begin_data` had one.
  void end_data(WatchedMessage& message);

 private:
  bool needs_memory(std::size_t bytes) const noexcept;
  bool slows_copies(std::size_t bytes) const noexcept;

  Executor& executor_;
  ExpectedTasks expected_;
  MessageLoad load_;
};

}  // namespace tandem::runtime
