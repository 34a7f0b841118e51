// tandem/runtime/task/submission_trace.cpp: writes the records of tasks that are submitted.
#include "tandem/runtime/task/submission_trace.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <type_traits>

#include "tandem/runtime/data/handle.hpp"
#include "tandem/runtime/task/codelet_core.hpp"
#include "tandem/runtime/task/task_number.hpp"
#include "tandem/trace/session.hpp"

namespace tandem::runtime {

using trace::Type;

namespace {

constexpr std::size_t kMostInRecord = UINT8_MAX;

std::string_view name_of_site(const Task& task) noexcept {
  switch (task.kind) {
    case TaskKind::kernel: return task.codelet != nullptr ? std::string_view(task.codelet->name) : "(task)";
    case TaskKind::join: return "(join)";
    case TaskKind::event: return "(event)";
    case TaskKind::application: return "(application)";
  }
  return "";
}

bool tells_flops(const Task& task) noexcept { return task.codelet != nullptr && task.codelet->flops; }

std::uint32_t word_of(const AccessSlot& slot) noexcept {
  return trace::access_word(slot.handle()->number, static_cast<unsigned>(slot.mode()));
}

/// A short record of a task whose predecessor in the flow is in the packet. `pushed_to` and the priority are one word.
struct [[gnu::packed]] Next {
  std::uint16_t pushed_to;
  std::int16_t priority;
  std::uint16_t site;
  std::uint8_t accesses, predecessors;
};
// The first field is its lowest 16 bits; the format is little-endian.
static_assert(sizeof(Next) == sizeof(std::uint64_t));
/// A short record of a task of the same site.
struct [[gnu::packed]] Alike {
  std::int16_t priority;
  std::uint8_t accesses, predecessors;
};

}  // namespace

[[gnu::noinline]] void SubmissionTrace::begin_inner() noexcept {
  TANDEM_ASSERT(depth_ < frames_.size());
  frames_[depth_++] = count_;
}

[[gnu::noinline]] bool SubmissionTrace::end_inner(const Task& task, std::uint32_t pushed_to) {
  const std::uint32_t from = frames_[--depth_];
  describe(task, task.id, {predecessors_.data() + from, count_ - from}, pushed_to);
  count_ = from;
  return true;
}

constexpr bool is_short(std::int32_t priority) noexcept { return priority == static_cast<std::int16_t>(priority); }
[[gnu::always_inline]] inline bool fits_short(const Task& task, std::size_t entries) noexcept {
  return is_short(task.priority) && entries <= kMostInRecord;
}

/// Whether a task with so many entries in its lists may have a short record, if that fits: it follows the one before in
/// its packet.
[[gnu::always_inline]] inline bool SubmissionTrace::takes_short(std::uint32_t number,
                                                                std::size_t entries) const noexcept {
  return stream.is_marked(number - 1) &&
         stream.takes_draft(stream.instant(), sizeof(Next) + entries * sizeof(std::uint32_t));
}

/// Stores the words of the first accesses, then the distances of the predecessors. `bits`: all entries or-ed. Returns
/// the end.
template <class Entry>
[[gnu::always_inline]] inline Entry* store_lists(Entry* entry, std::uint32_t& bits, const Task& task,
                                                 std::uint32_t number, std::size_t accesses,
                                                 std::span<const std::uint32_t> predecessors) {
  bits = 0;
  const auto store = [&](std::uint32_t value) {
    *entry++ = static_cast<Entry>(value);
    bits |= value;
    asm("" : "+r"(entry), "+r"(bits));  // few iterations: no vectors
  };
  for (const AccessSlot& slot : std::span(task.accesses(), accesses)) store(word_of(slot));
  for (const std::uint32_t predecessor : predecessors) store(number - predecessor);
  return entry;
}

/// Writes the short record of a task of the last site for which `takes_short`. Calls are at the end, with no more
/// arguments than there are registers.
template <class Fixed, class Entry>
void SubmissionTrace::write_short_as(const Task& task, std::uint32_t number,
                                     std::span<const std::uint32_t> predecessors, std::uint32_t pushed_to) {
  constexpr bool is_alike = std::is_same_v<Fixed, Alike>, is_wide = sizeof(Entry) > sizeof(std::uint16_t);
  const std::size_t accesses = recorded_accesses(task);
  if (!fits_short(task, accesses + predecessors.size())) [[unlikely]]
    return describe_fully(task, last_id_ + static_cast<std::uint32_t>(number - static_cast<std::uint32_t>(last_id_)),
                          predecessors, pushed_to);
  TANDEM_DEBUG_ASSERT(last_site_number_ == last_site_->number);
  std::byte* const at = stream.draft();
  std::byte* const fields = at + trace::RecordHeader::compact_bytes;
  std::uint32_t bits;
  Entry* const end =
      store_lists(reinterpret_cast<Entry*>(fields + sizeof(Fixed)), bits, task, number, accesses, predecessors);
  // Numbers that were too large for 16 bits last time are likely to be so again.
  if (is_wide != (bits > UINT16_MAX)) [[unlikely]] {
    lists_are_wide_ = !is_wide;
    if (!is_wide) return write_short_as<Fixed, std::uint32_t>(task, number, predecessors, pushed_to);
  }
  // Fills up an odd number of entries; otherwise the next header word, which is zero, too.
  if constexpr (!is_wide) *end = 0;
  stream.mark(number);
  Fixed fixed{};
  fixed.priority = static_cast<std::int16_t>(task.priority);
  fixed.accesses = static_cast<std::uint8_t>(accesses);
  fixed.predecessors = static_cast<std::uint8_t>(predecessors.size());
  if constexpr (!is_alike) {
    fixed.pushed_to = static_cast<std::uint16_t>(pushed_to);
    fixed.site = last_site_number_;
  }
  std::memcpy(fields, &fixed, sizeof(fixed));
  constexpr Type type = is_alike ? (is_wide ? Type::task_submitted_alike_wide : Type::task_submitted_alike)
                                 : (is_wide ? Type::task_submitted_next_wide : Type::task_submitted_next);
  stream.publish_draft(at, type, stream.instant(),
                       trace::internal::rounded(static_cast<std::size_t>(reinterpret_cast<std::byte*>(end) - fields)));
  // The word with `pushed_to` and the priority stays open.
  if constexpr (!is_alike)
    if (static_cast<std::uint16_t>(pushed_to) == trace::kNotPushed) [[unlikely]] stream.leave_open(number, fields);
}

template <class Fixed>
[[gnu::always_inline]] inline void SubmissionTrace::write_short(const Task& task, std::uint32_t number,
                                                                std::span<const std::uint32_t> predecessors,
                                                                std::uint32_t pushed_to) {
  if (lists_are_wide_) write_short_as<Fixed, std::uint32_t>(task, number, predecessors, pushed_to);
  else write_short_as<Fixed, std::uint16_t>(task, number, predecessors, pushed_to);
}

/// Writes the record of a task with at most `kMostInRecord` accesses and predecessors each.
void SubmissionTrace::write_long(const Task& task, std::uint32_t number, std::size_t accesses,
                                 std::span<const std::uint32_t> predecessors) {
  std::uint32_t bits = 0;
  for (const AccessSlot& slot : std::span(task.accesses(), accesses)) bits |= word_of(slot);
  for (const std::uint32_t predecessor : predecessors) bits |= number - predecessor;
  if (bits > UINT16_MAX) write_long_as<std::uint32_t>(Type::task_submitted_wide, task, number, accesses, predecessors);
  else write_long_as<std::uint16_t>(Type::task_submitted, task, number, accesses, predecessors);
}

template <class Entry>
void SubmissionTrace::write_long_as(Type type, const Task& task, std::uint32_t number, std::size_t accesses,
                                    std::span<const std::uint32_t> predecessors) {
  struct [[gnu::packed]] Fixed {
    std::uint32_t task;
    std::int32_t priority;
    std::uint16_t site;
    std::uint8_t accesses, predecessors;
  };
  const std::uint16_t site = site_of(task).number;
  const trace::Stream::Open record =
      stream.open(type, stream.instant(), sizeof(Fixed) + sizeof(Entry) * (accesses + predecessors.size()));
  stream.forget_mark();
  if (record.fields == nullptr) [[unlikely]] return;
  const Fixed fixed{number, task.priority, site, static_cast<std::uint8_t>(accesses),
                    static_cast<std::uint8_t>(predecessors.size())};
  std::memcpy(record.fields, &fixed, sizeof(fixed));
  std::uint32_t bits;
  store_lists(reinterpret_cast<Entry*>(record.fields + sizeof(fixed)), bits, task, number, accesses, predecessors);
  stream.publish(record);
  stream.mark(number);
  last_site_number_ = site;
}

/// Whether a task of the last site has no facts.
[[gnu::always_inline]] inline bool SubmissionTrace::is_plain(const Task& task) const noexcept {
  return plain_site_->is_of(task) && task.extra == nullptr && iteration == TaskFacts::kNoIteration;
}

void SubmissionTrace::describe(const Task& task, TaskId id, std::span<const std::uint32_t> predecessors,
                               std::uint32_t pushed_to) {
  const auto number = static_cast<std::uint32_t>(id);
  const std::size_t entries = task.access_count + predecessors.size();
  const bool all_on = stream.all_on<Type::task_submitted, Type::task_accesses, Type::task_deps>();
  if (!all_on || !is_plain(task) || !takes_short(number, entries)) [[unlikely]]
    return describe_fully(task, id, predecessors, pushed_to);
  if (pushed_to == kWaits) write_short<Alike>(task, number, predecessors, pushed_to);
  else write_short<Next>(task, number, predecessors, pushed_to);
}

void SubmissionTrace::end_pushed(const Task& task, std::uint32_t queue) {
  depth_ = 0;
  const auto number = static_cast<std::uint32_t>(task.id);
  const std::size_t entries = task.access_count + std::size_t{count_};
  if (!is_plain(task) || !takes_short(number, entries)) [[unlikely]]
    return describe_fully(task, task.id, {predecessors_.data(), count_}, queue);
  if (entries != 0 || task.priority != plain_priority_)
    return write_short<Next>(task, number, {predecessors_.data(), count_}, queue);
  stream.mark(number);
  std::byte* const at = stream.draft();
  const std::uint64_t fields = plain_fields_ | queue;
  std::memcpy(at + trace::RecordHeader::compact_bytes, &fields, sizeof(fields));
  stream.publish_draft(at, Type::task_submitted_next, stream.instant(), sizeof(fields));
}

/// A reader takes the id of a submission for the one nearest to the last, or to 0: so long steps are recorded, and
/// large ids once in each packet, since earlier packets may be lost.
void SubmissionTrace::tell_id(TaskId id) {
  constexpr std::uint64_t far = std::uint64_t{1} << 30;
  const std::uint64_t whole = TaskNumber::unmarked(id);
  const bool is_far = whole >= far && (whole >= last_id_ + far || id_packet_ != stream.packets());
  last_id_ = std::max(last_id_, whole);
  if (!is_far) return;
  stream.append<Type::task_id>(whole);
  id_packet_ = stream.packets();
}

[[gnu::noinline]] void SubmissionTrace::describe_fully(const Task& task, TaskId id,
                                                       std::span<const std::uint32_t> predecessors,
                                                       std::uint32_t pushed_to) {
  const auto number = static_cast<std::uint32_t>(id);
  const std::size_t with_predecessors = stream.any_on<Type::task_deps>() ? predecessors.size() : 0;
  std::size_t with_accesses = 0, listed = 0;
  if (stream.any_on<Type::task_submitted>()) {
    // Submissions that share a stamp may have had another event in between.
    if (static_cast<std::int64_t>(stream.instant() - stream.last_event()) < 0) stream.set_instant(stream.last_event());
    tell_id(id);
    if (task.kind == TaskKind::kernel && (task.extra != nullptr || tells_flops(task) || knows_facts())) [[unlikely]]
      write_facts(task, number);
    listed = std::min(with_predecessors, kMostInRecord);
    with_accesses = recorded_accesses(task);
    const std::span<const std::uint32_t> first = predecessors.first(listed);
    const Site& site = site_of(task);
    plain_site_ = tells_flops(task) || knows_facts() ? &no_site_ : &site;
    plain_priority_ = is_short(task.priority) ? task.priority : 0;
    plain_fields_ = std::uint64_t{static_cast<std::uint16_t>(plain_priority_)} << 16 | std::uint64_t{site.number} << 32;
    if (fits_short(task, with_accesses + listed) && takes_short(number, with_accesses + listed)) {
      const bool is_alike = site.number == last_site_number_ && pushed_to == kWaits;
      last_site_number_ = site.number;
      if (is_alike) write_short<Alike>(task, number, first, pushed_to);
      else write_short<Next>(task, number, first, pushed_to);
    } else {
      write_long(task, number, std::min(with_accesses, kMostInRecord), first);
      // This record has no place for it.
      if (pushed_to < trace::kNotPushed) stream.append<Type::task_pushed>(number, pushed_to);
    }
    if (task.extra != nullptr && task.kind == TaskKind::kernel && !task.extra->name.empty()) [[unlikely]]
      if (session_ != nullptr) session_->describe_task(number, task.extra->name);
  }
  for (std::size_t i = kMostInRecord; i < with_accesses; ++i) {
    const AccessSlot& slot = task.accesses()[i];
    stream.append<Type::task_accesses>(number,
                                       trace::access_word(slot.handle()->number, static_cast<unsigned>(slot.mode())));
  }
  if (listed < with_predecessors) [[unlikely]]
    for (const std::uint32_t predecessor : predecessors.subspan(listed))
      stream.append<Type::task_deps>(number, predecessor);
}

[[gnu::always_inline]] inline SubmissionTrace::Site& SubmissionTrace::site_of(const Task& task) {
  if (!last_site_->is_of(task)) [[unlikely]] last_site_ = &find_site(task);
  return *last_site_;
}

[[gnu::noinline]] SubmissionTrace::Site& SubmissionTrace::find_site(const Task& task) {
  const auto key = (reinterpret_cast<std::uintptr_t>(task.codelet) >> 4) ^ (std::uintptr_t{task.where.line} * 37) ^
                   static_cast<std::uintptr_t>(task.kind);
  Site& slot = sites_[key % sites_.size()];
  if (slot.is_of(task)) return slot;
  const std::uint16_t number =
      session_ == nullptr
          ? UINT16_MAX
          : session_->site(name_of_site(task), task.where.file != nullptr ? task.where.file : "", task.where.line);
  if (session_ != nullptr && task.codelet != nullptr && task.codelet->colour)
    session_->describe_colour(name_of_site(task), *task.codelet->colour);
  // The recorded operations of a replaced site are forgotten, so that they are recorded again.
  const double flops = slot.kind == Site().kind ? 0 : std::numeric_limits<double>::quiet_NaN();
  return slot = {.codelet = task.codelet, .file = task.where.file, .line = task.where.line, .number = number, .kind = task.kind,
                 .flops = flops};
}

void SubmissionTrace::write_iteration(std::int32_t number) {
  if (!stream.any_on<Type::task_iteration>()) return;
  // A packet may be all that is left, without those before it.
  const bool is_new_packet = number != TaskFacts::kNoIteration && iteration_packet_ != stream.packets();
  if (number == written_iteration_ && !is_new_packet) return;
  stream.append<Type::task_iteration>(number);
  plain_site_ = &no_site_;
  written_iteration_ = number;
  iteration_packet_ = stream.packets();
}

void SubmissionTrace::write_facts(const Task& task, std::uint32_t number) {
  static const TaskFacts none;
  const TaskFacts& facts = task.extra != nullptr ? task.extra->facts : none;
  write_iteration(facts.iteration != TaskFacts::kNoIteration ? facts.iteration : iteration);
  Site& site = site_of(task);
  const double flops = facts.flops != 0 || !tells_flops(task) ? facts.flops : flops_by_codelet(task);
  const bool has_flops = flops != 0;
  if (stream.any_on<Type::task_flops>() &&
      (flops != site.flops || (has_flops && site.flops_packet != stream.packets()))) {
    stream.append<Type::task_flops>(site.number, flops);
    site.flops = flops;
    site.flops_packet = stream.packets();
  }
  knows_flops_ = knows_flops_ || has_flops;
  if (facts.tag != 0 || !facts.parameters.empty()) write_note(number, facts);
}

double SubmissionTrace::flops_by_codelet(const Task& task) noexcept {
  try {
    shapes_.clear();
    for (unsigned i = 0; i < task.access_count; ++i) shapes_.push_back(task.accesses()[i].handle()->shape);
    return task.codelet->flops(shapes_);
  } catch (...) {  // the program's own function: a task must not be lost for a number in a report
    return 0;
  }
}

void SubmissionTrace::write_note(std::uint32_t number, const TaskFacts& facts) {
  if (!stream.any_on<Type::task_note>()) return;
  const std::string_view text = trace::internal::stored_part(facts.parameters);
  const trace::Stream::Open record =
      stream.open(Type::task_note, stream.instant(), sizeof(number) + sizeof(facts.tag) + text.size() + 1);
  if (record.fields == nullptr) return;
  std::memcpy(record.fields, &number, sizeof(number));
  std::memcpy(record.fields + sizeof(number), &facts.tag, sizeof(facts.tag));
  trace::internal::store_value(record.fields + sizeof(number) + sizeof(facts.tag), text);
  stream.publish(record);
}

}  // namespace tandem::runtime
