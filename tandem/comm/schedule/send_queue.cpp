// tandem/comm/schedule/send_queue.cpp: runs of messages in levels of priority, and the heap of ready streams.
#include "tandem/comm/schedule/send_queue.hpp"

#include <utility>

#include "tandem/base/assert.hpp"
#include "tandem/comm/schedule/strategy.hpp"

namespace tandem::comm {

using internal::SendLevel;

namespace {

constexpr std::size_t max_spare_levels = 16;

std::uint64_t bytes_of(const SendItem& item) noexcept {
  return item.bulk_bytes + (item.kind == SendKind::stream ? 0 : item.control_bytes);
}

SendItem& last_of_run(SendItem& item) noexcept {
  SendItem* last = &item;
  while (!last->last_of_run) last = last->run_next;
  return *last;
}

void clear_links(SendItem& item) noexcept {
  item.run_next = item.run_previous = item.level_next = item.level_previous = nullptr;
  item.level = nullptr;
  item.last_of_run = true;
}

}  // namespace

void SendQueue::Cursor::advance() noexcept {
  if (item_ != run_) {
    item_ = item_->run_next;
    return;
  }
  const SendLevel* const lower = run_->level->lower;
  run_ = run_->level_next ? run_->level_next : lower ? lower->first : nullptr;
  item_ = run_ ? run_->run_next : nullptr;
}

void SendQueue::push(SendItem& item) {
  TANDEM_DEBUG_ASSERT(!item.queued());
  item.sequence = next_sequence_++;
  item.run_next = item.run_previous = &item;
  pending_bytes_ += bytes_of(item);
  if (item.kind == SendKind::stream) {
    TANDEM_DEBUG_ASSERT(!item.ordered);
    ++streams_;
    if (item.bulk_bytes > 0) heap_insert(item);
  } else {
    ++messages_;
    push_message(item);
  }
}

void SendQueue::push_message(SendItem& item) {
  const std::int32_t priority = priority_of(item);
  append_run(item, priority);
  if (!item.ordered) return;
  if (ordered_++ == 0) {
    keys_indexed_ = false;
    uniform_priority_ = priority;
  } else if (!keys_indexed_ && priority != uniform_priority_) {
    index_keys();  // this item is the youngest of its priority, and indexed as such
    absorb_older_runs(item);
  } else if (keys_indexed_) {
    runs_by_key_.push(item);
    absorb_older_runs(item);
  }
}

void SendQueue::index_keys() {
  keys_indexed_ = true;
  SendItem* other_priority = nullptr;  // the item being pushed comes last, wherever it is
  for (const SendLevel* level = top_; level; level = level->lower) {
    for (SendItem* run = level->first; run; run = run->level_next) {
      if (!run->ordered) continue;
      if (level->priority != uniform_priority_) {
        other_priority = run;
      } else {
        runs_by_key_.push(*run);
      }
    }
  }
  if (other_priority) runs_by_key_.push(*other_priority);
}

void SendQueue::absorb_older_runs(SendItem& last) {
  while (SendItem* const older = runs_by_key_.older(last)) {
    if (older->effective_priority >= last.effective_priority) return;
    merge_runs(*older, last);
  }
}

void SendQueue::merge_runs(SendItem& older, SendItem& younger) {
  runs_by_key_.remove(older);
  detach_run(older);
  older.last_of_run = false;
  SendItem* const older_first = older.run_next;
  SendItem* const younger_first = younger.run_next;
  older.run_next = younger_first;
  younger_first->run_previous = &older;
  younger.run_next = older_first;
  older_first->run_previous = &younger;
}

void SendQueue::remove(SendItem& item) {
  TANDEM_DEBUG_ASSERT(item.queued());
  pending_bytes_ -= bytes_of(item);
  if (item.kind == SendKind::stream) {
    if (item.heap_index != SendItem::not_in_heap) heap_erase(item);
    --streams_;
    clear_links(item);
  } else {
    --messages_;
    remove_message(item);
  }
}

void SendQueue::remove_message(SendItem& item) {
  if (item.ordered) --ordered_;
  if (item.run_next == &item) {
    if (item.linked()) runs_by_key_.remove(item);
    detach_run(item);
  } else {
    if (item.last_of_run) hand_over_run(item, *item.run_previous);
    item.run_previous->run_next = item.run_next;
    item.run_next->run_previous = item.run_previous;
  }
  clear_links(item);
}

void SendQueue::hand_over_run(SendItem& last, SendItem& heir) {
  runs_by_key_.replace(last, heir);
  heir.last_of_run = true;
  heir.effective_priority = last.effective_priority;
  heir.level = last.level;
  heir.level_next = last.level_next;
  heir.level_previous = last.level_previous;
  (heir.level_next ? heir.level_next->level_previous : heir.level->last) = &heir;
  (heir.level_previous ? heir.level_previous->level_next : heir.level->first) = &heir;
}

void SendQueue::update(SendItem& stream, std::uint64_t bulk_bytes) {
  TANDEM_DEBUG_ASSERT(stream.queued() && stream.kind == SendKind::stream);
  pending_bytes_ += bulk_bytes - stream.bulk_bytes;
  stream.bulk_bytes = bulk_bytes;
  const bool ready = stream.heap_index != SendItem::not_in_heap;
  if (ready && bulk_bytes == 0) heap_erase(stream);
  if (!ready && bulk_bytes > 0) heap_insert(stream);
}

void SendQueue::set_priority(SendItem& item, std::int32_t priority) {
  const std::int32_t before = std::exchange(item.priority, priority);
  if (!item.queued() || order_ == SendOrder::posting || before == priority) return;
  if (item.kind == SendKind::stream) {
    if (item.heap_index == SendItem::not_in_heap) return;
    heap_erase(item);
    heap_insert(item);
    return;
  }
  if (item.ordered && !keys_indexed_) index_keys();
  SendItem& last = last_of_run(item);
  if (priority > last.effective_priority) {
    raise_run(last, priority);
  } else if (priority < last.effective_priority && last.run_next == &last) {
    lower_item(last);
  }
}

void SendQueue::raise_run(SendItem& last, std::int32_t priority) {
  detach_run(last);
  append_run(last, priority);
  if (last.ordered) absorb_older_runs(last);
}

void SendQueue::lower_item(SendItem& item) {
  SendItem* const younger = item.ordered ? item.next : nullptr;
  if (younger && younger->effective_priority >= item.priority) {
    merge_runs(item, *younger);
  } else {
    detach_run(item);
    append_run(item, item.priority);
  }
}

void SendQueue::commit(const PacketPlan& plan) {
  for (SendItem* const record : plan.records) remove(*record);
  if (!plan.bulk) return;
  last_payload_was_whole_ = plan.bulk->kind == SendKind::whole;
  if (last_payload_was_whole_) {
    remove(*plan.bulk);
  } else {
    update(*plan.bulk, plan.bulk->bulk_bytes - plan.bulk_bytes);
  }
}

void SendQueue::reshape(SendItem& message, SendKind kind, std::uint32_t control_bytes, std::uint64_t bulk_bytes) {
  TANDEM_DEBUG_ASSERT(message.queued() && message.kind != SendKind::stream && kind != SendKind::stream);
  pending_bytes_ -= bytes_of(message);
  message.kind = kind;
  message.control_bytes = control_bytes;
  message.bulk_bytes = bulk_bytes;
  pending_bytes_ += bytes_of(message);
}

SendLevel& SendQueue::level_for(std::int32_t priority) {
  if (recent_ && recent_->priority == priority) return *recent_;
  const auto found = levels_.find(priority);
  recent_ = found != levels_.end() ? &found->second : &make_level(priority);
  return *recent_;
}

SendLevel& SendQueue::make_level(std::int32_t priority) {
  if (top_ && !top_->first) drop_level(*top_);
  Levels::iterator made;
  if (spare_levels_.empty()) {
    made = levels_.emplace(priority, SendLevel{}).first;
  } else {
    spare_levels_.back().key() = priority;
    made = levels_.insert(std::move(spare_levels_.back())).position;
    spare_levels_.pop_back();
  }
  SendLevel& level = made->second;
  const auto above = std::next(made);
  level = {.priority = priority,
           .lower = made == levels_.begin() ? nullptr : &std::prev(made)->second,
           .higher = above == levels_.end() ? nullptr : &above->second};
  if (level.lower) level.lower->higher = &level;
  (level.higher ? level.higher->lower : top_) = &level;
  return level;
}

void SendQueue::drop_level(SendLevel& level) {
  if (level.lower) level.lower->higher = level.higher;
  (level.higher ? level.higher->lower : top_) = level.lower;
  if (recent_ == &level) recent_ = nullptr;
  Levels::node_type node = levels_.extract(level.priority);
  if (spare_levels_.size() < max_spare_levels) spare_levels_.push_back(std::move(node));
}

void SendQueue::append_run(SendItem& last, std::int32_t priority) {
  SendLevel& level = level_for(priority);
  last.effective_priority = priority;
  last.level = &level;
  last.level_next = nullptr;
  last.level_previous = level.last;
  (level.last ? level.last->level_next : level.first) = &last;
  level.last = &last;
}

void SendQueue::detach_run(SendItem& last) {
  SendLevel& level = *last.level;
  (last.level_next ? last.level_next->level_previous : level.last) = last.level_previous;
  (last.level_previous ? last.level_previous->level_next : level.first) = last.level_next;
  if (!level.first && levels_.size() > 1) drop_level(level);
}

SendItem* SendQueue::stream(unsigned place) const noexcept {
  if (place >= heap_.size()) return nullptr;
  if (place == 0 || heap_.size() == 2) return heap_[place];
  return before(*heap_[1], *heap_[2]) ? heap_[1] : heap_[2];
}

bool SendQueue::before(const SendItem& a, const SendItem& b) const noexcept {
  const std::int32_t priority_a = priority_of(a), priority_b = priority_of(b);
  return priority_a != priority_b ? priority_a > priority_b : a.sequence < b.sequence;
}

void SendQueue::heap_place(std::size_t index, SendItem& item) noexcept {
  heap_[index] = &item;
  item.heap_index = index;
}

void SendQueue::heap_up(std::size_t index) noexcept {
  SendItem& item = *heap_[index];
  for (; index > 0 && before(item, *heap_[(index - 1) / 2]); index = (index - 1) / 2)
    heap_place(index, *heap_[(index - 1) / 2]);
  heap_place(index, item);
}

void SendQueue::heap_down(std::size_t index) noexcept {
  SendItem& item = *heap_[index];
  for (std::size_t child = 2 * index + 1; child < heap_.size(); child = 2 * index + 1) {
    if (child + 1 < heap_.size() && before(*heap_[child + 1], *heap_[child])) ++child;
    if (!before(*heap_[child], item)) break;
    heap_place(index, *heap_[child]);
    index = child;
  }
  heap_place(index, item);
}

void SendQueue::heap_insert(SendItem& item) {
  heap_.push_back(&item);
  heap_up(heap_.size() - 1);
}

void SendQueue::heap_erase(SendItem& item) noexcept {
  const std::size_t index = std::exchange(item.heap_index, SendItem::not_in_heap);
  SendItem& moved = *heap_.back();
  heap_.pop_back();
  if (&moved == &item) return;
  heap_place(index, moved);
  heap_up(index);
  heap_down(moved.heap_index);
}

void SendQueue::check_invariants() const {
  std::size_t messages = 0, ordered = 0, runs = 0;
  std::uint64_t bytes = 0;
  for (const SendLevel* level = top_; level; level = level->lower) {
    TANDEM_ASSERT(level->first || levels_.size() == 1);
    TANDEM_ASSERT(!level->lower || (level->lower->priority < level->priority && level->lower->higher == level));
    for (const SendItem* run = level->first; run; run = run->level_next) {
      TANDEM_ASSERT(run->last_of_run && run->level == level && run->effective_priority == level->priority);
      TANDEM_ASSERT(run->level_next ? run->level_next->level_previous == run : level->last == run);
      TANDEM_ASSERT(run->linked() == (run->ordered && keys_indexed_));
      runs += run->linked();
      if (const SendItem* const older = run->linked() ? runs_by_key_.older(*run) : nullptr) {
        TANDEM_ASSERT(older->effective_priority >= run->effective_priority &&
                      older->sequence < run->run_next->sequence);
      }
      for (const SendItem* item = run->run_next;; item = item->run_next) {
        TANDEM_ASSERT(item->run_next->run_previous == item && item->last_of_run == (item == run));
        TANDEM_ASSERT(item == run || (item->ordered && item->sequence < item->run_next->sequence));
        ++messages;
        ordered += item->ordered;
        bytes += bytes_of(*item);
        if (item == run) break;
      }
    }
  }
  for (std::size_t i = 0; i < heap_.size(); ++i) {
    TANDEM_ASSERT(heap_[i]->heap_index == i && heap_[i]->bulk_bytes > 0 && heap_[i]->queued());
    TANDEM_ASSERT(i == 0 || before(*heap_[(i - 1) / 2], *heap_[i]));
    bytes += heap_[i]->bulk_bytes;
  }
  TANDEM_ASSERT(messages == messages_ && ordered == ordered_ && bytes == pending_bytes_ && heap_.size() <= streams_);
  TANDEM_ASSERT(runs == runs_by_key_.size());
  runs_by_key_.check_invariants();
}

}  // namespace tandem::comm
