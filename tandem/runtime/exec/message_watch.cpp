// tandem/runtime/exec/message_watch.cpp: which part hears of which message.
#include "tandem/runtime/exec/message_watch.hpp"

#include <utility>

#include "tandem/runtime/exec/executor.hpp"
#include "tandem/runtime/sched/placing/placer.hpp"

namespace tandem::runtime {

std::uint64_t MessageWatch::expect(const Task& task, std::int64_t due_ns, std::int64_t now_ns) {
  const std::uint64_t number = expected_.add(task.priority, due_ns, now_ns);
  if (Placer* const placer = executor_.placer()) placer->expect(number, task, due_ns, now_ns);
  return number;
}

void MessageWatch::expect_no_more(std::uint64_t number) {
  expected_.remove(number);
  if (Placer* const placer = executor_.placer()) placer->expect_no_more(number);
}

/// A message of `bytes` suffers from memory-bound tasks.
bool MessageWatch::needs_memory(std::size_t bytes) const noexcept {
  return executor_.memory_gate().rule().is_long(bytes);
}

bool MessageWatch::slows_copies(std::size_t bytes) const noexcept {
  Placer* const placer = executor_.placer();
  return placer != nullptr && placer->messages().counts(bytes);
}

void MessageWatch::begin_data(WatchedMessage& message, std::size_t bytes, std::optional<std::int32_t> priority) {
  if (slows_copies(bytes) && !std::exchange(message.is_counted_, true)) executor_.placer()->messages().begin();
  if (!priority || message.urgent_ || !needs_memory(bytes)) return;
  message.urgent_ = priority;
  executor_.memory_gate().message_begins(*priority);
  executor_.serve_beside_messages(nullptr);
}

void MessageWatch::end_data(WatchedMessage& message) {
  if (const auto priority = std::exchange(message.urgent_, {}))
    executor_.serve_beside_messages(executor_.memory_gate().message_ends(*priority));
  if (std::exchange(message.is_counted_, false)) executor_.placer()->messages().end();
}

}  // namespace tandem::runtime
