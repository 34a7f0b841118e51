// tandem/runtime/task/submission_trace.hpp: the events of the submitting thread: tasks, their data and dependencies.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "tandem/base/assert.hpp"
#include "tandem/runtime/data/handle.hpp"
#include "tandem/runtime/task/task.hpp"
#include "tandem/trace/stream.hpp"

namespace tandem::runtime {

/// The submitter's stream, and what is collected of a task while it is entered into the graph. Used by the submitting
/// thread.
///
/// A task's record bears the stamp of the moment when its entering began, and is written before the task can start. A
/// join or a combining task may be entered in the middle of another task's entering: then there are two frames.
///
/// A read of the clock is a third of the cost of a submission's record. So up to `kPerStamp` submissions in a row have
/// the stamp of the first of them, but only while all workers are busy: then a task starts when one of them has
/// finished, however late it was submitted. Three kinds of submissions have stamps of their own: those that a worker
/// may be waiting for, the first one after a wait, and those that other ranks may wait for.
class SubmissionTrace {
 public:
  static constexpr unsigned kPerStamp = 8;
  static constexpr std::uint32_t kWaits = UINT32_MAX;  ///< the task is in no queue, since it waits for others

  trace::Stream stream;
  std::int32_t iteration = TaskFacts::kNoIteration;  ///< iteration of tasks without one of their own

  /// Lets submissions share stamps. `sleepers`: number of sleeping workers that take unrestricted tasks. Null: no
  /// sharing.
  void share_stamps(const std::atomic<std::uint32_t>* sleepers) noexcept {
    sleepers_ = sleepers;
    left_of_stamp_ = 0;
  }
  /// Gives the next submission a stamp of its own.
  void look_at_clock() noexcept { left_of_stamp_ = 0; }
  void set_session(trace::Session* session) noexcept {
    session_ = session;
    last_id_ = 0;
  }

  bool on() const noexcept {
    using enum trace::Type;
    return stream.any_on<task_submitted, task_deps, task_ready, task_pushed>();
  }
  /// Begins the record of `task`.
  void begin(const Task& task) noexcept {
    if (depth_ != 0) [[unlikely]] return begin_inner();
    depth_ = 1;
    count_ = 0;
    if (left_of_stamp_ != 0 && !task.restricted && sleepers_->load(std::memory_order_relaxed) == 0) {
      --left_of_stamp_;
      return;
    }
    stream.set_instant(stream.read_clock());
    left_of_stamp_ = sleepers_ != nullptr ? kPerStamp - 1 : 0;
  }
  /// Records a predecessor, whether it has ended or not.
  void depend(TaskId predecessor) {
    if (count_ == predecessors_.size()) [[unlikely]] predecessors_.resize(2 * count_ + 16);
    predecessors_[count_++] = static_cast<std::uint32_t>(predecessor);
  }
  /// Ends the record: all accesses and predecessors are known, and the task has not started. `pushed_to`: its next
  /// queue, if it waits for no other. Returns true if an outer frame goes on.
  bool end(const Task& task, std::uint32_t pushed_to) {
    if (depth_ != 1) [[unlikely]] return end_inner(task, pushed_to);
    depth_ = 0;
    describe(task, task.id, {predecessors_.data(), count_}, pushed_to);
    return false;
  }
  /// Whether `end_pushed` may describe a task that waits for no other.
  bool takes_pushed() const noexcept {
    using enum trace::Type;
    return depth_ == 1 && stream.all_on<task_submitted, task_accesses, task_deps, task_pushed>();
  }
  /// As `end`, for a task that goes into `queue` next.
  void end_pushed(const Task& task, std::uint32_t queue);

  /// Records another node at the same instant, which is entered with the present one and waits for no node of the
  /// graph.
  void also(const Task& task) {
    if (depth_ > 0) [[unlikely]] describe(task, task.id, {});
  }

  /// Tells the present iteration for a replay, whose tasks belong to it if they were recorded in none.
  void tell_iteration_of_replay() { write_iteration(iteration); }

  /// Records a task whose predecessors the caller has, at the present instant.
  void describe(const Task& task, TaskId id, std::span<const std::uint32_t> predecessors,
                std::uint32_t pushed_to = kWaits);

 private:
  /// A line of the program that submits tasks, and their kind.
  struct Site {
    const CodeletCore* codelet = nullptr;
    const char* file = nullptr;
    std::uint32_t line = 0;
    std::uint16_t number = UINT16_MAX;
    TaskKind kind{UINT8_MAX};  ///< the kind of no task
    double flops = 0;          ///< last recorded operations, in packet `flops_packet`
    std::uint64_t flops_packet = 0;

    bool is_of(const Task& task) const noexcept {
      return codelet == task.codelet && file == task.where.file && line == task.where.line && kind == task.kind;
    }
  };
  void begin_inner() noexcept;
  bool end_inner(const Task& task, std::uint32_t pushed_to);
  void describe_fully(const Task& task, TaskId id, std::span<const std::uint32_t> predecessors,
                      std::uint32_t pushed_to);
  bool is_plain(const Task& task) const noexcept;
  bool takes_short(std::uint32_t number, std::size_t entries) const noexcept;
  std::size_t recorded_accesses(const Task& task) const noexcept {
    return stream.any_on<trace::Type::task_accesses>() ? task.access_count : 0;
  }
  template <class Fixed>
  void write_short(const Task& task, std::uint32_t number, std::span<const std::uint32_t> predecessors,
                   std::uint32_t pushed_to);
  template <class Fixed, class Entry>
  [[gnu::noinline]] void write_short_as(const Task& task, std::uint32_t number,
                                        std::span<const std::uint32_t> predecessors, std::uint32_t pushed_to);
  void write_long(const Task& task, std::uint32_t number, std::size_t accesses,
                  std::span<const std::uint32_t> predecessors);
  template <class Entry>
  void write_long_as(trace::Type type, const Task& task, std::uint32_t number, std::size_t accesses,
                     std::span<const std::uint32_t> predecessors);
  /// Whether facts were recorded that may be wrong for the next task.
  bool knows_facts() const noexcept {
    return knows_flops_ || iteration != TaskFacts::kNoIteration || written_iteration_ != TaskFacts::kNoIteration;
  }
  void write_iteration(std::int32_t number);
  void tell_id(TaskId id);
  /// Writes the program's facts on `task` that differ from those in the packet.
  void write_facts(const Task& task, std::uint32_t number);
  double flops_by_codelet(const Task& task) noexcept;
  void write_note(std::uint32_t number, const TaskFacts& facts);
  Site& site_of(const Task& task);
  Site& find_site(const Task& task);

  trace::Session* session_ = nullptr;
  const std::atomic<std::uint32_t>* sleepers_ = nullptr;
  unsigned left_of_stamp_ = 0;               ///< submissions that may still share the last stamp
  unsigned depth_ = 0;
  std::uint32_t count_ = 0;                  ///< number of predecessors
  std::array<std::uint32_t, 4> frames_{};    ///< start of each frame in the list; the first one at 0
  std::vector<std::uint32_t> predecessors_;  ///< predecessors of all frames: the first `count_`
  Site no_site_;
  Site* last_site_ = &no_site_;              ///< site of the last task
  /// The last site, if its tasks have no facts and those before them have none that must be taken back.
  const Site* plain_site_ = &no_site_;
  std::int32_t plain_priority_ = 0;          ///< priority of its tasks at the last look-up
  std::uint64_t plain_fields_ = 0;           ///< `Next` of such a task without lists, with 0 for its queue
  std::array<Site, 64> sites_;               ///< sites met last, by a hash
  /// Last recorded iteration, in packet `iteration_packet_`.
  std::int32_t written_iteration_ = TaskFacts::kNoIteration;
  std::uint64_t iteration_packet_ = 0;
  /// Id of the last submission that was described fully, without the mark of ranks; later ones follow it one by one.
  std::uint64_t last_id_ = 0;
  std::uint64_t id_packet_ = 0;              ///< packet in which the last whole id was recorded
  std::uint16_t last_site_number_ = 0;       ///< site of the last submission, whose number is the mark of the stream
  bool lists_are_wide_ = false;              ///< the last short record had a number of more than 16 bits in its lists
  std::vector<Shape> shapes_;                ///< shapes of the described task
  bool knows_flops_ = false;                 ///< the program has given the operations of a task
};

}  // namespace tandem::runtime
