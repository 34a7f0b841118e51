// tandem/runtime/sched/contention/memory_gate.cpp: lets tasks enter or wait, and releases them.
#include "tandem/runtime/sched/contention/memory_gate.hpp"

#include <mutex>
#include <utility>

#include "tandem/base/assert.hpp"

namespace tandem::runtime {

void MemoryGate::message_begins(std::int32_t priority) {
  const std::lock_guard guard(lock_);
  messages_.push_back(priority);
  note_state();
}

Task* MemoryGate::message_ends(std::int32_t priority) {
  const std::lock_guard guard(lock_);
  const auto ended = std::ranges::find(messages_, priority);
  TANDEM_ASSERT(ended != messages_.end());
  *ended = messages_.back();
  messages_.pop_back();
  note_state();  // tasks less urgent than the remaining messages may go in
  Task* first = nullptr;
  Task** end = &first;
  for (unsigned more = inside_; !waiting_.empty() && more < limit(waiting_.top_priority()); ++more) {
    *end = waiting_.pop();
    end = &(*end)->next;
  }
  *end = nullptr;
  note_state();
  return first;
}

void MemoryGate::note_state() {
  urgency_.store(messages_.empty() ? kNoMessage : *std::ranges::max_element(messages_), std::memory_order_relaxed);
  is_busy_.store(!messages_.empty() || !waiting_.empty(), std::memory_order_relaxed);
}

MemoryGate::Answer MemoryGate::ask_slowly(Task* task, bool is_memory_bound, bool& inside, bool takes) {
  const std::lock_guard guard(lock_);
  if (std::exchange(inside, false)) --inside_;
  Answer answer{.run = task};
  if (task != nullptr && is_memory_bound) {
    waiting_.push_back(task);
    answer = {.run = nullptr, .waits = true};
  }
  if (!waiting_.empty() && has_room(waiting_.top_priority())) {
    Task* const next = waiting_.pop();
    if (takes && (answer.run == nullptr || answer.run->priority <= next->priority)) {
      // To saturate the bus; the other task, which needs no memory, can run anywhere.
      answer = {.run = next, .hand_on = answer.run};
      inside = true;
      ++inside_;
    } else {
      answer.hand_on = next;
    }
  }
  if (task != nullptr && is_memory_bound && answer.run != task) delayed_.fetch_add(1, std::memory_order_relaxed);
  note_state();
  return answer;
}

bool MemoryGate::check_invariants() const {
  const std::lock_guard guard(lock_);
  return messages_.empty() && waiting_.empty() && waiting_.check_invariants();
}

}  // namespace tandem::runtime
