// tandem/analysis/history/live_tasks.hpp: which tasks of a running rank wait, are ready and run, from events in any
// order of actors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <unordered_map>
#include <vector>

namespace tandem::analysis {

/// The known tasks of one running rank. An event of one actor may become known before an earlier one of another actor,
/// so each task has flags that only grow, and its stage follows from them.
///
/// Numbers are the low 32 bits of ids, and are reused after 2^22 operations on several ranks, since ids have gaps
/// there. So a task that has ended is forgotten, but not at once: its other events may become known later.
///
/// Memory: some 50 bytes for each task that has not ended, up to `most_open`, and for the last `kept` others.
class LiveTasks {
 public:
  static constexpr std::uint16_t no_site = UINT16_MAX;
  static constexpr std::size_t most_open = 1 << 22, kept = 1 << 16;
  enum Flag : std::uint8_t {
    submitted = 1,
    ready = 2,
    started = 4,
    ended = 8,     ///< or cancelled
    unbound = 16,  ///< waits for nothing, and is ready when it is submitted
    node = 32,     ///< no task that runs on a worker: a join, an event, a send, a receive
  };

  struct Task {
    std::uint16_t site = no_site;
    std::uint8_t flags = 0;
  };
  /// Sets flags of a task, and returns what is known of it now.
  Task note(std::uint32_t task, std::uint8_t flags);
  std::uint8_t submit(std::uint32_t task, std::uint16_t site, std::uint8_t flags);
  /// Notes that the tasks from `first` on are like those of the first replay of the graph.
  void replay(std::uint32_t graph, std::uint32_t first, std::uint32_t count);
  /// The site of a task; `no_site`: not known.
  std::uint16_t site_of(std::uint32_t task) const;

  std::uint64_t submitted_count() const noexcept { return submitted_; }  ///< tasks that run on workers
  std::uint64_t waiting() const noexcept { return waiting_; }            ///< for other tasks or data
  std::uint64_t ready_count() const noexcept { return ready_; }
  /// Whether all open tasks are counted; false: there were too many.
  bool is_whole() const noexcept { return !overflowed_; }

 private:
  enum class Stage : std::uint8_t { other, waiting, ready };
  static Stage stage_of(std::uint8_t flags) noexcept;
  static bool is_open(std::uint8_t flags) noexcept;
  std::uint8_t change(std::uint32_t number, Task& task, std::uint8_t flags);
  void count(Stage stage, int by) noexcept;
  void keep_for_a_while(std::uint32_t number);

  std::unordered_map<std::uint32_t, Task> tasks_;
  std::deque<std::uint32_t> old_;  ///< tasks that are not open, oldest first
  std::unordered_map<std::uint32_t, std::vector<Task>> models_;  ///< of a graph: the tasks of its first replay
  std::uint64_t submitted_ = 0, waiting_ = 0, ready_ = 0;
  bool overflowed_ = false;
};

}  // namespace tandem::analysis
