// tandem/runtime/worker/worker_trace.cpp: writes a worker's events.
#include "tandem/runtime/worker/worker_trace.hpp"

#include <cstring>
#include <utility>

namespace tandem::runtime {

namespace {
/// After a kernel as short as this, the next one starts with the stamp of its end: a second read of the clock would
/// take longer than the time between, and a good part of the kernel.
constexpr std::uint64_t kShortTicks = 512;
/// Fields of `task.ran` and similar records, without the victim of a theft: number and length.
constexpr std::size_t kLengthAt = sizeof(std::uint32_t), kRanBytes = 2 * sizeof(std::uint32_t);
}  // namespace

using trace::Type;

template <Type T>
void WorkerTrace::take(const Task& task, unsigned victim) {
  if (taken_ != Taken::nothing) [[unlikely]] write_taken();
  begin_event();
  shares_stamp_ = true;
  if (!stream.any_on<T>()) return;
  note_way(task, T == Type::task_stolen ? Taken::stolen : Taken::popped);
  if (T == Type::task_stolen) victim_ = static_cast<std::uint16_t>(victim);
  if (!is_one_record<T>()) write_taken();
}
template void WorkerTrace::take<Type::task_popped>(const Task&, unsigned);
template void WorkerTrace::take<Type::task_stolen>(const Task&, unsigned);

void WorkerTrace::keep(const Task& task) {
  if (taken_ != Taken::nothing) [[unlikely]] write_taken();
  note_way(task, Taken::kept);
  if (!is_one_record<Type::task_ready>()) write_taken();
}

/// Writes a separate record of how the task was taken.
void WorkerTrace::write_taken() {
  switch (std::exchange(taken_, Taken::nothing)) {
    case Taken::nothing: return;
    case Taken::kept: return stream.emit_at<Type::task_ready>(taken_ticks_, taken_task_);
    case Taken::popped: return stream.emit_at<Type::task_popped>(taken_ticks_, taken_task_);
    case Taken::stolen: return stream.emit_at<Type::task_stolen>(taken_ticks_, taken_task_, victim_);
  }
}

/// Writes the record of a task that was taken for this start from the worker's own queue, or kept. False: it was not,
/// or the stream has more to do than usual, and nothing was written.
[[gnu::always_inline]] inline bool WorkerTrace::write_ran(const Task& task) {
  const std::uint64_t ticks = stream.instant();
  const auto number = static_cast<std::uint32_t>(flow_position(task));
  // A popped task shares the stamp of its start; for a kept one, the end before may be too long ago.
  const Taken way = taken_;
  if (way != Taken::popped && (way != Taken::kept || !shares_stamp_ || taken_ticks_ != stream.last_event()))
    return false;
  if (taken_task_ != number || taken_ticks_ != ticks || !stream.takes_draft(ticks, kRanBytes)) [[unlikely]]
    return false;
  std::byte* const at = stream.draft();
  std::byte* const fields = at + trace::RecordHeader::compact_bytes;
  // One store; the format is little-endian.
  const std::uint64_t values = number | std::uint64_t{trace::kNoLength} << 32;
  static_assert(sizeof(values) == kRanBytes);
  std::memcpy(fields, &values, sizeof(values));
  stream.publish_draft(at, static_cast<Type>(way), ticks, kRanBytes);
  stream.leave_open(number, fields + kLengthAt);
  taken_ = Taken::nothing;
  started_ticks_ = ticks;
  return true;
}

void WorkerTrace::write_started(const Task& task) {
  if (!write_ran(task)) [[unlikely]] write_started_slowly(task);
}

[[gnu::noinline]] void WorkerTrace::write_started_slowly(const Task& task) {
  begin_event();
  started_ticks_ = stream.instant();
  const auto number = static_cast<std::uint32_t>(flow_position(task));
  const bool is_one = stream.any_on<Type::task_started>() && stream.any_on<Type::task_ended>();
  // The task was popped at this instant, or was ready at the time of the event before, which must be in the packet.
  const bool joins = is_one && taken_task_ == number &&
                     (taken_ == Taken::kept ? taken_ticks_ == stream.last_event() && stream.has_room(kRanBytes)
                                            : taken_ticks_ == started_ticks_);
  if (taken_ != Taken::nothing && !joins) [[unlikely]] write_taken();
  if (!is_one) return stream.append<Type::task_started>(number);
  const Type type = taken_ == Taken::nothing ? Type::task_ran : static_cast<Type>(taken_);
  const bool is_stolen = taken_ == Taken::stolen;
  taken_ = Taken::nothing;
  const trace::Stream::Open record = stream.open(type, started_ticks_, kRanBytes + (is_stolen ? sizeof(victim_) : 0));
  if (record.fields == nullptr) [[unlikely]] return;
  const std::uint32_t fields[2] = {number, trace::kNoLength};
  std::memcpy(record.fields, fields, sizeof(fields));
  if (is_stolen) std::memcpy(record.fields + sizeof(fields), &victim_, sizeof(victim_));
  stream.publish(record);
  started_ticks_ = stream.last_event();  // if that was later, the record has that stamp
  stream.leave_open(number, record.fields + kLengthAt);
}

[[gnu::always_inline]] inline void WorkerTrace::write_ended_at(const Task& task, std::uint64_t ticks) {
  stream.set_instant(ticks);
  const std::uint64_t length = ticks - started_ticks_;
  shares_stamp_ = length < kShortTicks;
  const auto number = static_cast<std::uint32_t>(flow_position(task));
  std::uint32_t* const word = stream.open_word(number);
  if (word == nullptr || length >= trace::kLongestRun) [[unlikely]] return write_end(number);
  stream.complete_at(ticks, word, static_cast<std::uint32_t>(length) + 1);
}

void WorkerTrace::write_ended(const Task& task) {
  if (!stream.reads_tsc()) [[unlikely]] return write_ended_by_clock(task);
  write_ended_at(task, stream.read_clock());
}

/// A function of its own, so that its caller needs no calls and saves no registers.
[[gnu::noinline]] void WorkerTrace::write_ended_by_clock(const Task& task) {
  write_ended_at(task, stream.read_clock());
}

[[gnu::noinline]] void WorkerTrace::write_end(std::uint32_t number) { stream.append<Type::task_ended>(number); }

}  // namespace tandem::runtime
