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

/// The submitter's stream, and what is gathered of a task while it is entered into the graph. Of the submitting thread.
///
/// A task's record bears the stamp of the moment when its entering began, and is written before the task can start. A join or a
/// combining task may be entered in the middle of another task's entering: then there are two frames.
///
/// A look at the clock is a third of what a submission's record costs. So up to `kPerStamp` submissions in a row bear the stamp of the first of
/// them, but only while all workers are at work: then a task starts when one of them has done what it does, however late it was submitted.
/// A submission that a worker may be waiting for, the first one after a wait, and each that other ranks may wait for bear their own.
class SubmissionTrace {
 public:
  static constexpr unsigned kPerStamp = 8;
  static constexpr std::uint32_t kWaits = UINT32_MAX;  ///< in no queue: it waits for others

  trace::Stream stream;
  std::int32_t iteration = TaskFacts::kNoIteration;  ///< of tasks that do not say another one

  /// `sleepers`: how many workers that take unrestricted tasks sleep. Null: no submissions share a stamp.
  void share_stamps(const std::atomic<std::uint32_t>* sleepers) noexcept {
    sleepers_ = sleepers;
    left_of_stamp_ = 0;
  }
  /// The next submission does not share the stamp of the last one.
  void look_at_clock() noexcept { left_of_stamp_ = 0; }
  void set_session(trace::Session* session) noexcept {
    session_ = session;
    last_id_ = 0;
  }

  bool on() const noexcept {
    using enum trace::Type;
    return stream.any_on<task_submitted, task_deps, task_ready, task_pushed>();
  }
  /// `task` begins to be entered.
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
  /// A predecessor, whether it has ended or not.
  void depend(TaskId predecessor) {
    if (count_ == predecessors_.size()) [[unlikely]] predecessors_.resize(2 * count_ + 16);
    predecessors_[count_++] = static_cast<std::uint32_t>(predecessor);
  }
  /// All accesses and predecessors are known; it has not started. `pushed_to`: into which queue it goes next, if it waits for nobody.
  /// True: an outer frame goes on.
  bool end(const Task& task, std::uint32_t pushed_to) {
    if (depth_ != 1) [[unlikely]] return end_inner(task, pushed_to);
    depth_ = 0;
    describe(task, task.id, {predecessors_.data(), count_}, pushed_to);
    return false;
  }
  /// Whether a task that waits for nobody may be described by `end_pushed`.
  bool takes_pushed() const noexcept {
    using enum trace::Type;
    return depth_ == 1 && stream.all_on<task_submitted, task_accesses, task_deps, task_pushed>();
  }
  /// As `end`, of a task that goes into `queue` and has not gone yet.
  void end_pushed(const Task& task, std::uint32_t queue);

  /// Another node, which waits for nobody that the graph knows, is entered with the one that is being entered, at its instant.
  void also(const Task& task) {
    if (depth_ > 0) [[unlikely]] describe(task, task.id, {});
  }

  /// A recorded graph is replayed: those of its tasks that were recorded in no iteration belong to the present one.
  void tell_iteration_of_replay() { write_iteration(iteration); }

  /// The same of a task whose predecessors the caller has, at the present instant.
  void describe(const Task& task, TaskId id, std::span<const std::uint32_t> predecessors, std::uint32_t pushed_to = kWaits);

 private:
  /// Where tasks are submitted, and of what kind they are.
  struct Site {
    const CodeletCore* codelet = nullptr;
    const char* file = nullptr;
    std::uint32_t line = 0;
    std::uint16_t number = UINT16_MAX;
    TaskKind kind{UINT8_MAX};  ///< of no task
    double flops = 0;          ///< that were recorded last, in packet `flops_packet`
    std::uint64_t flops_packet = 0;

    bool is_of(const Task& task) const noexcept {
      return codelet == task.codelet && file == task.where.file && line == task.where.line && kind == task.kind;
    }
  };
  void begin_inner() noexcept;
  bool end_inner(const Task& task, std::uint32_t pushed_to);
  void describe_fully(const Task& task, TaskId id, std::span<const std::uint32_t> predecessors, std::uint32_t pushed_to);
  bool is_plain(const Task& task) const noexcept;
  bool takes_short(std::uint32_t number, std::size_t entries) const noexcept;
  std::size_t recorded_accesses(const Task& task) const noexcept { return stream.any_on<trace::Type::task_accesses>() ? task.access_count : 0; }
  template <class Fixed>
  void write_short(const Task& task, std::uint32_t number, std::span<const std::uint32_t> predecessors, std::uint32_t pushed_to);
  template <class Fixed, class Entry>
  [[gnu::noinline]] void write_short_as(const Task& task, std::uint32_t number, std::span<const std::uint32_t> predecessors, std::uint32_t pushed_to);
  void write_long(const Task& task, std::uint32_t number, std::size_t accesses, std::span<const std::uint32_t> predecessors);
  template <class Entry>
  void write_long_as(trace::Type type, const Task& task, std::uint32_t number, std::size_t accesses, std::span<const std::uint32_t> predecessors);
  /// What was recorded of one task may be wrong for the next one.
  bool knows_facts() const noexcept {
    return knows_flops_ || iteration != TaskFacts::kNoIteration || written_iteration_ != TaskFacts::kNoIteration;
  }
  void write_iteration(std::int32_t number);
  void tell_id(TaskId id);
  /// What the program said of `task`, as far as it differs from what the packet says already.
  void write_facts(const Task& task, std::uint32_t number);
  double flops_by_codelet(const Task& task) noexcept;
  void write_note(std::uint32_t number, const TaskFacts& facts);
  Site& site_of(const Task& task);
  Site& find_site(const Task& task);

  trace::Session* session_ = nullptr;
  const std::atomic<std::uint32_t>* sleepers_ = nullptr;
  unsigned left_of_stamp_ = 0;               ///< so many submissions may still share the last stamp
  unsigned depth_ = 0;
  std::uint32_t count_ = 0;                  ///< of predecessors
  std::array<std::uint32_t, 4> frames_{};    ///< where in their list each begins; the first one at 0
  std::vector<std::uint32_t> predecessors_;  ///< of all frames: the first `count_`
  Site no_site_;
  Site* last_site_ = &no_site_;              ///< of the last task
  const Site* plain_site_ = &no_site_;       ///< that one, if its tasks have no facts and none before them has any that must be taken back
  std::int32_t plain_priority_ = 0;          ///< that its tasks had last when something was looked up
  std::uint64_t plain_fields_ = 0;           ///< `Next` of such a task without lists, with 0 for its queue
  std::array<Site, 64> sites_;               ///< those met last, by a hash
  std::int32_t written_iteration_ = TaskFacts::kNoIteration;  ///< that was recorded last, in packet `iteration_packet_`
  std::uint64_t iteration_packet_ = 0;
  /// Of the last submission that was described fully, without the mark of ranks: those since then follow it one by one.
  std::uint64_t last_id_ = 0;
  std::uint64_t id_packet_ = 0;              ///< the last id that was recorded whole is in this packet
  std::uint16_t last_site_number_ = 0;       ///< of the last submission, whose number the stream's mark is
  bool lists_are_wide_ = false;              ///< the last short record had a number of more than 16 bits in its lists
  std::vector<Shape> shapes_;                ///< of the task that is described
  bool knows_flops_ = false;                 ///< the program has told the operations of a task
};

}  // namespace tandem::runtime
