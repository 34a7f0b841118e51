// tandem/analysis/history/live_tasks.cpp: flags of tasks, and the number of tasks in each stage.
#include "tandem/analysis/history/live_tasks.hpp"

#include <algorithm>

namespace tandem::analysis {

/// The stage by flags. A node is in no counted stage, nor is a task without a known submission.
LiveTasks::Stage LiveTasks::stage_of(std::uint8_t flags) noexcept {
  if ((flags & submitted) == 0 || (flags & (started | ended | node)) != 0) return Stage::other;
  return (flags & (ready | unbound)) != 0 ? Stage::ready : Stage::waiting;
}

bool LiveTasks::is_open(std::uint8_t flags) noexcept { return (flags & (submitted | ended | node)) == submitted; }

void LiveTasks::count(Stage stage, int by) noexcept {
  if (stage == Stage::waiting) waiting_ += static_cast<std::uint64_t>(by);
  if (stage == Stage::ready) ready_ += static_cast<std::uint64_t>(by);
}

void LiveTasks::keep_for_a_while(std::uint32_t number) {
  old_.push_back(number);
  if (old_.size() <= kept) return;
  // The number may belong to another task by now.
  const auto oldest = tasks_.find(old_.front());
  if (oldest != tasks_.end() && !is_open(oldest->second.flags)) tasks_.erase(oldest);
  old_.pop_front();
}

std::uint8_t LiveTasks::change(std::uint32_t number, Task& task, std::uint8_t flags) {
  const std::uint8_t before = task.flags, now = task.flags = static_cast<std::uint8_t>(before | flags);
  count(stage_of(before), -1);
  count(stage_of(now), 1);
  if ((before & submitted) == 0 && (now & (submitted | node)) == submitted) ++submitted_;
  // A task is kept for a while after it becomes known, or ends.
  if (!is_open(now) && (before == 0 || is_open(before))) keep_for_a_while(number);
  return now;
}

LiveTasks::Task LiveTasks::note(std::uint32_t number, std::uint8_t flags) {
  Task& task = tasks_[number];
  const std::uint16_t site = task.site;
  return {site, change(number, task, flags)};  // which may forget it
}

std::uint8_t LiveTasks::submit(std::uint32_t number, std::uint16_t site, std::uint8_t flags) {
  if (tasks_.size() > most_open + kept) {
    overflowed_ = true;
    if ((flags & node) == 0) ++submitted_;
    return flags;
  }
  Task& task = tasks_[number];
  if ((task.flags & submitted) != 0) {  // the number is used again
    count(stage_of(task.flags), -1);
    task = {};
  }
  task.site = site;
  return change(number, task, static_cast<std::uint8_t>(flags | submitted));
}

void LiveTasks::replay(std::uint32_t graph, std::uint32_t first, std::uint32_t count) {
  const auto [known, is_first] = models_.try_emplace(graph);
  std::vector<Task>& model = known->second;
  if (is_first) {
    // The graph's tasks have just been described, unless that was before anything was read.
    model.resize(std::min<std::size_t>(count, most_open));
    for (std::uint32_t i = 0; i < model.size(); ++i)
      if (const auto task = tasks_.find(first + i); task != tasks_.end())
        model[i] = {task->second.site, static_cast<std::uint8_t>(task->second.flags & (unbound | node))};
    return;
  }
  for (std::uint32_t i = 0; i < std::min<std::size_t>(count, model.size()); ++i)
    submit(first + i, model[i].site, model[i].flags);
}

std::uint16_t LiveTasks::site_of(std::uint32_t number) const {
  const auto task = tasks_.find(number);
  return task == tasks_.end() ? no_site : task->second.site;
}

}  // namespace tandem::analysis
