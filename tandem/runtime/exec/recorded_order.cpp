// tandem/runtime/exec/recorded_order.cpp: reads recorded schedules, and holds tasks until it is their turn.
#include "tandem/runtime/exec/recorded_order.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "tandem/base/number_of.hpp"
#include "tandem/runtime/task/describe.hpp"
#include "tandem/runtime/task/task_number.hpp"

namespace tandem::runtime {
namespace {

constexpr std::string_view first_line = "tandem schedule 1";

/// Takes the words of a line, divided by single blanks.
std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  while (!line.empty()) {
    const std::size_t end = std::min(line.find(' '), line.size());
    words.push_back(line.substr(0, end));
    line.remove_prefix(std::min(end + 1, line.size()));
  }
  return words;
}

struct Head {
  std::uint32_t rank = 0, workers = 0;
};

std::optional<Head> head_of(const std::vector<std::string_view>& words) {
  if (words.size() != 4 || words[0] != "rank" || words[2] != "workers") return {};
  const auto rank = base::number_of<std::uint32_t>(words[1]);
  const auto workers = base::number_of<std::uint32_t>(words[3]);
  if (!rank || !workers || *workers == 0) return {};
  return Head{*rank, *workers};
}

std::optional<RecordedSchedule::Choice> choice_of(const std::vector<std::string_view>& words, std::uint32_t workers) {
  if (words.size() != 2) return {};
  const auto task = base::number_of<TaskId>(words[0]);
  const auto worker = base::number_of<std::uint32_t>(words[1]);
  if (!task || !worker || *worker >= workers) return {};
  return RecordedSchedule::Choice{*task, *worker};
}

}  // namespace

base::Result<RecordedSchedule> RecordedSchedule::parse(std::string_view text, std::uint32_t rank,
                                                       std::uint32_t ranks, const std::string& name) {
  RecordedSchedule schedule;
  bool has_rank = false;
  std::uint32_t known_ranks = 0;
  std::optional<Head> head;
  for (std::size_t line_number = 1; !text.empty(); ++line_number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const auto malformed = [&](std::string_view wants) {
      return base::Error{base::ErrorCode::malformed, fmt::format("{}:{}: not {}", name, line_number, wants)};
    };
    if (line_number == 1) {
      if (line != first_line) return malformed(fmt::format("\"{}\", as a schedule begins", first_line));
      continue;
    }
    const std::vector<std::string_view> words = words_of(line);
    if (const auto next = head_of(words)) {
      head = next;
      ++known_ranks;
      if (head->rank != rank) continue;
      if (std::exchange(has_rank, true)) return malformed("once for each rank");
      schedule.workers = head->workers;
      continue;
    }
    if (!head) return malformed("\"rank R workers N\"");
    const auto choice = choice_of(words, head->workers);
    if (!choice) return malformed("\"TASK WORKER\", with a worker of the rank");
    if (head->rank == rank) schedule.choices.push_back(*choice);
  }
  if (!has_rank || known_ranks != ranks)
    return base::Error{base::ErrorCode::not_found,
                       fmt::format("{}: a run of {} ranks, not of rank {} of {}", name, known_ranks, rank, ranks)};
  std::vector<TaskId> tasks;
  for (const Choice& choice : schedule.choices) tasks.push_back(choice.task);
  std::ranges::sort(tasks);
  if (const auto twice = std::ranges::adjacent_find(tasks); twice != tasks.end())
    return base::Error{base::ErrorCode::malformed, fmt::format("{}: rank {} has task {} twice", name, rank, *twice)};
  return schedule;
}

RecordedOrder::RecordedOrder(std::shared_ptr<const RecordedSchedule> schedule) : schedule_(std::move(schedule)) {
  const auto& choices = schedule_->choices;
  for (std::size_t i = 0; i < choices.size(); ++i) turns_.try_emplace(choices[i].task, i, choices[i].worker);
}

const RecordedOrder::Turn* RecordedOrder::turn_of(const Task& task) const {
  const auto known = turns_.find(TaskNumber::unmarked(flow_position(task)));
  return known == turns_.end() ? nullptr : &known->second;
}

bool RecordedOrder::admit(Task& task) {
  const Turn* const turn = turn_of(task);
  if (turn == nullptr) return true;
  const std::lock_guard guard(mutex_);
  if (turn->index <= next_) return true;
  held_.emplace(turn->index, &task);
  return false;
}

Task* RecordedOrder::pushed(const Turn& turn) {
  const std::lock_guard guard(mutex_);
  if (turn.index != next_) return nullptr;
  ++next_;
  const auto held = held_.find(next_);
  return held == held_.end() ? nullptr : held_.extract(held).mapped();
}

std::string RecordedOrder::why_waits() const {
  const std::lock_guard guard(mutex_);
  if (held_.empty()) return {};
  return fmt::format(
      "\n  {} ready tasks wait for task {}, which is next in option sched.recorded: the program has not submitted it, "
      "or it waits for something else",
      held_.size(), TaskNumber::of(schedule_->choices[next_].task));
}

}  // namespace tandem::runtime
