// tandem/runtime/task/submission_trace.cpp: writes the records of tasks that are submitted.
#include "tandem/runtime/task/submission_trace.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <type_traits>

#include "tandem/runtime/data/handle.hpp"
#include "tandem/runtime/task/codelet_core.hpp"
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

std::uint32_t word_of(const AccessSlot& slot) noexcept { return trace::access_word(slot.handle()->number, static_cast<unsigned>(slot.mode())); }

/// A task whose predecessor in the flow is in the packet. `pushed_to` and the priority are one word.
struct [[gnu::packed]] Next {
  std::uint16_t pushed_to;
  std::int16_t priority;
  std::uint16_t site;
  std::uint8_t accesses, predecessors;
};
static_assert(sizeof(Next) == sizeof(std::uint64_t));  // the first field is its lowest 16 bits; the format is little-endian
/// The same, of the same site.
struct [[gnu::packed]] Alike {
  std::int16_t priority;
  std::uint8_t accesses, predecessors;
};
template <class Fixed>
Fixed fixed_of(const Task& task, std::size_t accesses, std::size_t predecessors) noexcept {
  Fixed fixed{};
  fixed.priority = static_cast<std::int16_t>(task.priority);
  fixed.accesses = static_cast<std::uint8_t>(accesses);
  fixed.predecessors = static_cast<std::uint8_t>(predecessors);
  return fixed;
}

}  // namespace

/// What the lists of a submission's record hold: the words of its accesses, then how far back its predecessors lie.
template <class Entry>
struct Lists {
  Entry* end;
  std::uint32_t bits;  ///< of all numbers, or-ed
};
/// A function of its own: among the many values that a record is made of, the compiler would keep those of its loops in memory.
template <class Entry>
[[gnu::noinline]] Lists<Entry> store_lists(Entry* entry, const Task& task, std::uint32_t number, std::size_t accesses,
                                           std::span<const std::uint32_t> predecessors) {
  std::uint32_t bits = 0;
  const auto store = [&](std::uint32_t value) {
    *entry++ = static_cast<Entry>(value);
    bits |= value;
  };
  for (std::size_t i = 0; i < accesses; ++i) store(word_of(task.accesses()[i]));
  for (const std::uint32_t predecessor : predecessors) store(number - predecessor);
  return {entry, bits};
}

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

/// Whether a task with so many entries in its lists may have a short record, if its priority is short: it follows the one before in its packet.
[[gnu::always_inline]] inline bool SubmissionTrace::takes_short(std::uint32_t number, std::size_t entries) const noexcept {
  return stream.is_marked(number - 1) && stream.takes_draft(stream.instant(), sizeof(Next) + entries * sizeof(std::uint32_t));
}

/// The short record of a task of the last site.
[[gnu::always_inline]] inline void SubmissionTrace::write_short(const Task& task, std::uint32_t number, std::size_t accesses,
                                                                std::span<const std::uint32_t> predecessors, std::uint32_t pushed_to) {
  if (last_site_->number == last_site_number_ && pushed_to == kWaits) write_short_as<Alike>(task, number, accesses, predecessors, pushed_to);
  else write_short_as<Next>(task, number, accesses, predecessors, pushed_to);
}

template <class Fixed>
[[gnu::always_inline]] inline void SubmissionTrace::write_short_as(const Task& task, std::uint32_t number, std::size_t accesses,
                                                                   std::span<const std::uint32_t> predecessors, std::uint32_t pushed_to) {
  constexpr bool is_alike = std::is_same_v<Fixed, Alike>;
  stream.mark(number);
  std::byte* const at = stream.draft();
  std::byte* const fields = at + trace::RecordHeader::compact_bytes;
  Fixed fixed = fixed_of<Fixed>(task, accesses, predecessors.size());
  if constexpr (!is_alike) {
    fixed.pushed_to = static_cast<std::uint16_t>(pushed_to == kWaits ? std::uint32_t{trace::kNotPushed} : pushed_to);
    fixed.site = last_site_number_ = last_site_->number;
  }
  std::memcpy(fields, &fixed, sizeof(fixed));
  Type type = is_alike ? Type::task_submitted_alike : Type::task_submitted_next;
  std::size_t bytes = sizeof(fixed);
  if (const std::size_t entries = accesses + predecessors.size(); entries != 0) {
    // Numbers that were too large for 16 bits last time are likely to be so again.
    if (!lists_are_wide_) [[likely]] {
      const auto [end, bits] = store_lists(reinterpret_cast<std::uint16_t*>(fields + sizeof(fixed)), task, number, accesses, predecessors);
      *end = 0;  // fills up an odd number of entries; else the next header word, which is zero, too
      bytes += (entries + 1) / 2 * sizeof(std::uint32_t);
      lists_are_wide_ = bits > UINT16_MAX;
    }
    if (lists_are_wide_) [[unlikely]] {
      const auto [end, bits] = store_lists(reinterpret_cast<std::uint32_t*>(fields + sizeof(fixed)), task, number, accesses, predecessors);
      bytes = sizeof(fixed) + entries * sizeof(std::uint32_t);
      lists_are_wide_ = bits > UINT16_MAX;
      type = is_alike ? Type::task_submitted_alike_wide : Type::task_submitted_next_wide;
    }
  }
  if (is_alike || pushed_to < trace::kNotPushed) stream.publish_draft(at, type, stream.instant(), bytes);
  else stream.publish_open_draft(at, type, stream.instant(), bytes, number, fields);  // open: the word with `pushed_to` and the priority
}

void SubmissionTrace::write_long(const Task& task, std::uint32_t number, std::size_t accesses, std::span<const std::uint32_t> predecessors) {
  std::uint32_t largest = 0;
  for (std::size_t i = 0; i < accesses; ++i) largest |= word_of(task.accesses()[i]);
  for (const std::uint32_t predecessor : predecessors) largest |= number - predecessor;
  if (largest > UINT16_MAX) write_whole<std::uint32_t>(Type::task_submitted_wide, task, number, accesses, predecessors);
  else write_whole<std::uint16_t>(Type::task_submitted, task, number, accesses, predecessors);
}

template <class Entry>
void SubmissionTrace::write_whole(Type type, const Task& task, std::uint32_t number, std::size_t accesses,
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
  store_lists(reinterpret_cast<Entry*>(record.fields + sizeof(fixed)), task, number, accesses, predecessors);
  stream.publish(record);
  stream.mark(number);
  last_site_number_ = site;
}

/// Whether a task of the last site has no facts.
[[gnu::always_inline]] inline bool SubmissionTrace::is_plain(const Task& task) const noexcept {
  return plain_site_->is_of(task) && task.extra == nullptr && iteration == TaskFacts::kNoIteration;
}

/// The short record of a plain task. Here, too, calls are at the end.
template <class Fixed, class Entry>
void SubmissionTrace::write_listed(const Task& task, std::uint32_t number, std::span<const std::uint32_t> predecessors, std::uint32_t pushed_to) {
  constexpr bool is_alike = std::is_same_v<Fixed, Alike>, is_wide = sizeof(Entry) > sizeof(std::uint16_t);
  const std::size_t accesses = task.access_count;
  if (!is_short(task.priority) || accesses + predecessors.size() > kMostInRecord) [[unlikely]]
    return describe_fully(task, number, predecessors, pushed_to);
  TANDEM_DEBUG_ASSERT(last_site_ == plain_site_ && last_site_number_ == plain_site_->number);
  std::byte* const at = stream.draft();
  std::byte* const fields = at + trace::RecordHeader::compact_bytes;
  auto* entry = reinterpret_cast<Entry*>(fields + sizeof(Fixed));
  std::uint32_t bits = 0;
  const auto store = [&](std::uint32_t value) {
    *entry++ = static_cast<Entry>(value);
    bits |= value;
    asm("" : "+r"(entry), "+r"(bits));  // few turns: no vectors
  };
  for (const AccessSlot& slot : std::span(task.accesses(), accesses)) store(word_of(slot));
  for (const std::uint32_t predecessor : predecessors) store(number - predecessor);
  // Numbers that were too large for 16 bits last time are likely to be so again.
  if (is_wide != (bits > UINT16_MAX)) [[unlikely]] {
    lists_are_wide_ = !is_wide;
    if (!is_wide) return write_listed<Fixed, std::uint32_t>(task, number, predecessors, pushed_to);
  }
  if constexpr (!is_wide) *entry = 0;  // fills up an odd number of entries; else the next header word, which is zero, too
  stream.mark(number);
  Fixed fixed = fixed_of<Fixed>(task, accesses, predecessors.size());
  if constexpr (!is_alike) {
    fixed.pushed_to = static_cast<std::uint16_t>(pushed_to);
    fixed.site = last_site_number_;
  }
  std::memcpy(fields, &fixed, sizeof(fixed));
  constexpr Type type = is_alike ? (is_wide ? Type::task_submitted_alike_wide : Type::task_submitted_alike)
                                 : (is_wide ? Type::task_submitted_next_wide : Type::task_submitted_next);
  stream.publish_draft(at, type, stream.instant(), trace::internal::rounded(static_cast<std::size_t>(reinterpret_cast<std::byte*>(entry) - fields)));
  if (!is_alike && pushed_to == trace::kNotPushed) [[unlikely]] stream.leave_open(number, fields);
}

template <class Fixed>
[[gnu::always_inline]] inline void SubmissionTrace::write_plain(const Task& task, std::uint32_t number, std::span<const std::uint32_t> predecessors,
                                                                std::uint32_t pushed_to) {
  if (lists_are_wide_) write_listed<Fixed, std::uint32_t>(task, number, predecessors, pushed_to);
  else write_listed<Fixed, std::uint16_t>(task, number, predecessors, pushed_to);
}

void SubmissionTrace::describe(const Task& task, TaskId id, std::span<const std::uint32_t> predecessors, std::uint32_t pushed_to) {
  const auto number = static_cast<std::uint32_t>(id);
  const std::size_t entries = task.access_count + predecessors.size();
  const bool all_on = stream.all_on<Type::task_submitted, Type::task_accesses, Type::task_deps>();
  if (!all_on || !is_plain(task) || !takes_short(number, entries)) [[unlikely]] return describe_fully(task, number, predecessors, pushed_to);
  if (pushed_to == kWaits) write_plain<Alike>(task, number, predecessors, pushed_to);
  else write_plain<Next>(task, number, predecessors, pushed_to);
}

void SubmissionTrace::end_pushed(const Task& task, std::uint32_t queue) {
  depth_ = 0;
  const auto number = static_cast<std::uint32_t>(task.id);
  const std::size_t entries = task.access_count + std::size_t{count_};
  if (!is_plain(task) || !takes_short(number, entries)) [[unlikely]] return describe_fully(task, number, {predecessors_.data(), count_}, queue);
  // Calls at the end, with no more arguments than there are registers for them: this function keeps few values.
  if (entries != 0 || task.priority != plain_priority_) return write_plain<Next>(task, number, {predecessors_.data(), count_}, queue);
  stream.mark(number);
  std::byte* const at = stream.draft();
  const std::uint64_t fields = plain_fields_ | queue;
  std::memcpy(at + trace::RecordHeader::compact_bytes, &fields, sizeof(fields));
  stream.publish_draft(at, Type::task_submitted_next, stream.instant(), sizeof(fields));
}

[[gnu::noinline]] void SubmissionTrace::describe_fully(const Task& task, std::uint32_t number, std::span<const std::uint32_t> predecessors,
                                                       std::uint32_t pushed_to) {
  const std::size_t with_predecessors = stream.any_on<Type::task_deps>() ? predecessors.size() : 0;
  std::size_t with_accesses = 0;
  std::size_t listed = 0;
  if (stream.any_on<Type::task_submitted>()) {
    if (task.kind == TaskKind::kernel && (task.extra != nullptr || tells_flops(task) || knows_facts())) [[unlikely]]
      write_facts(task, number);
    listed = std::min(with_predecessors, kMostInRecord);
    with_accesses = stream.any_on<Type::task_accesses>() ? task.access_count : 0;
    const std::size_t accesses = std::min(with_accesses, kMostInRecord);
    const std::span<const std::uint32_t> first = predecessors.first(listed);
    const Site& site = site_of(task);
    plain_site_ = tells_flops(task) || knows_facts() ? &no_site_ : &site;
    plain_priority_ = is_short(task.priority) ? task.priority : 0;
    plain_fields_ = std::uint64_t{static_cast<std::uint16_t>(plain_priority_)} << 16 | std::uint64_t{site.number} << 32;
    // Submissions that share a stamp may have had another event in between.
    if (static_cast<std::int64_t>(stream.instant() - stream.last_event()) < 0) stream.set_instant(stream.last_event());
    if (is_short(task.priority) && takes_short(number, accesses + listed)) {
      write_short(task, number, accesses, first, pushed_to);
    } else {
      write_long(task, number, accesses, first);
      if (pushed_to < trace::kNotPushed) stream.append<Type::task_pushed>(number, pushed_to);  // such a record has no place for it
    }
    if (task.extra != nullptr && task.kind == TaskKind::kernel && !task.extra->name.empty()) [[unlikely]]
      if (session_ != nullptr) session_->describe_task(number, task.extra->name);
  }
  for (std::size_t i = kMostInRecord; i < with_accesses; ++i) {
    const AccessSlot& slot = task.accesses()[i];
    stream.append<Type::task_accesses>(number, trace::access_word(slot.handle()->number, static_cast<unsigned>(slot.mode())));
  }
  if (listed < with_predecessors) [[unlikely]]
    for (const std::uint32_t predecessor : predecessors.subspan(listed)) stream.append<Type::task_deps>(number, predecessor);
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
      session_ == nullptr ? UINT16_MAX
                          : session_->site(name_of_site(task), task.where.file != nullptr ? task.where.file : "", task.where.line);
  if (session_ != nullptr && task.codelet != nullptr && task.codelet->colour)
    session_->describe_colour(name_of_site(task), *task.codelet->colour);
  // Of a place that had to go the recorded operations are forgotten, so that they are recorded again.
  const double flops = slot.kind == Site().kind ? 0 : std::numeric_limits<double>::quiet_NaN();
  return slot = {.codelet = task.codelet, .file = task.where.file, .line = task.where.line, .number = number, .kind = task.kind,
                 .flops = flops};
}

void SubmissionTrace::write_iteration(std::int32_t number) {
  if (!stream.any_on<Type::task_iteration>()) return;
  // A packet may be all that is left of those before it.
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
  if (stream.any_on<Type::task_flops>() && (flops != site.flops || (has_flops && site.flops_packet != stream.packets()))) {
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
  } catch (...) {  // the program's own function: a task is not lost for a number in a report
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
