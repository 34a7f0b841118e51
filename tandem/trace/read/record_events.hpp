// tandem/trace/read/record_events.hpp: the events that records stand for, in order, for files and live buffers.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "tandem/trace/read/reader.hpp"
#include "tandem/trace/read/record.hpp"

namespace tandem::trace::internal {

/// task.submitted with a short priority, as compound records contain it.
constexpr EventSpec short_submission(Type type, std::string_view name, Field list) noexcept {
  return {type, Category::task, name,
          {{{"task", Field::u32}, {"priority", Field::i16}, {"site", Field::u16}, {"accesses_count", Field::u8}, {"deps_count", Field::u8},
            {"accesses", list}, {"deps", list}}},
          "submitted"};
}
inline constexpr EventSpec submitted_spec = short_submission(Type::task_submitted, "task.submitted", Field::list16);
inline constexpr EventSpec submitted_wide_spec =
    short_submission(Type::task_submitted_wide, "task.submitted_wide", Field::list32);
constexpr TypeInfo with_offsets(const EventSpec& spec, std::array<std::uint16_t, 9> offsets,
                                std::uint16_t fixed_bytes) noexcept {
  TypeInfo info = describe(spec);
  info.offsets = offsets;
  info.fixed_bytes = fixed_bytes;
  return info;
}
/// Offsets of the fields of events in the fields of compound records.
constexpr TypeInfo next_of(const EventSpec& spec) noexcept {
  return with_offsets(spec, {TypeInfo::implied_task, 2, 4, 6, 7, 8}, 8);
}
constexpr TypeInfo alike_of(const EventSpec& spec) noexcept {
  return with_offsets(spec, {TypeInfo::implied_task, 0, TypeInfo::implied_site, 2, 3, 4}, 4);
}
inline constexpr TypeInfo next_info = next_of(submitted_spec), next_wide_info = next_of(submitted_wide_spec);
inline constexpr TypeInfo alike_info = alike_of(submitted_spec), alike_wide_info = alike_of(submitted_wide_spec);
inline constexpr TypeInfo next_pushed_info =
    with_offsets(*find_spec(Type::task_pushed), {TypeInfo::implied_task, 0}, 2);
inline constexpr TypeInfo released_pushed_info =
    with_offsets(*find_spec(Type::task_pushed), {0, TypeInfo::implied_worker}, 4);
inline constexpr TypeInfo stolen_info = with_offsets(*find_spec(Type::task_stolen), {0, 8}, 10);

/// Iterates over the records of a packet. Most stand for one event, of their own type; a compound record stands for up
/// to three, of which `ended` and `pushed` are missing while the record is not completed. Keeps what later records of
/// the packet leave out: the number and the site of the last submission, the time of the last event.
class RecordEvents {
 public:
  void begin_packet(std::uint64_t begin_ticks) noexcept {
    before_ = after_ = {.ticks = begin_ticks, .event_ticks = begin_ticks};
    next_ = count_ = 0;
  }
  /// The worker that writes the stream.
  void set_worker(std::uint16_t index) noexcept { worker_ = index; }

  /// Decodes the record at `at`, as `decode` does. Its events follow.
  RecordFault enter(const std::byte* data, std::size_t at, std::size_t end, std::uint32_t word,
                    const DeclaredTypes& declared) noexcept {
    const RecordFault fault = decode(data, at, end, word, after_.ticks, declared, &record_);
    if (fault != RecordFault::none) return fault;
    if (record_.ticks < after_.event_ticks) return RecordFault::stamp_back;
    fields_ = data + record_.fields;
    bytes_ = static_cast<std::uint32_t>(record_.next() - at);
    before_ = after_;
    after_.ticks = record_.ticks;
    next_ = 0;
    count_ = 1;
    if (record_.type < Type::task_ran || !is_compound(record_.type)) [[likely]] {
      after_.event_ticks = record_.ticks;
      if (record_.type == Type::task_submitted || record_.type == Type::task_submitted_wide) [[unlikely]]
        note_submission(load<std::uint32_t>(fields_), load<std::uint16_t>(fields_ + 8));
      return RecordFault::none;
    }
    return enter_compound();
  }
  const Record& record() const noexcept { return record_; }
  std::uint32_t bytes() const noexcept { return bytes_; }  ///< of that record
  /// The time of the last event of the last record.
  std::uint64_t last_event() const noexcept { return after_.event_ticks; }
  /// Whether the last record can still be completed, unless another one follows it.
  bool is_open() const noexcept {
    const int offset = open_word_offset(record_.type);
    return offset >= 0 && is_open_word(record_.type, load<std::uint32_t>(fields_ + offset));
  }
  /// Forgets the last record: it will be entered again.
  void leave() noexcept { after_ = before_; }

  std::uint8_t count() const noexcept { return count_; }
  bool has_next() const noexcept { return next_ < count_; }
  void skip(std::uint8_t events) noexcept { next_ = std::min(events, count_); }
  /// The next event of the record; `rank` and `actor` are the caller's.
  Event take(const clock::TickScale& scale) noexcept {
    Event event;
    event.record_bytes_ = next_ == 0 ? bytes_ : 0;
    event.fields_ = fields_;
    event.ticks = record_.ticks;
    if (!is_compound(record_.type)) [[likely]] {
      event.type = record_.type;
      event.spec_ = record_.info->spec;
      event.info_ = record_.info;
    } else {
      fill_part(event);
    }
    event.local_ns = scale.to_ns(event.ticks);
    ++next_;
    return event;
  }

 private:
  struct State {
    std::uint64_t ticks = 0;        ///< of the last record
    std::uint64_t event_ticks = 0;  ///< of the last event
    std::uint32_t task = 0;         ///< the task submitted last, at
    std::uint16_t site = 0;
    bool has_submission = false;
  };
  struct Compound {
    std::array<Type, 3> events{};
    std::uint8_t count = 0;
  };

  static constexpr Compound compound_of(Type type) noexcept {
    switch (type) {
      case Type::task_ran: return {{Type::task_started, Type::task_ended}, 2};
      case Type::task_ran_popped: return {{Type::task_popped, Type::task_started, Type::task_ended}, 3};
      case Type::task_ran_stolen: return {{Type::task_stolen, Type::task_started, Type::task_ended}, 3};
      case Type::task_ran_kept: return {{Type::task_ready, Type::task_started, Type::task_ended}, 3};
      case Type::task_released: return {{Type::task_ready, Type::task_pushed}, 2};
      case Type::task_submitted_next:
      case Type::task_submitted_alike: return {{Type::task_submitted, Type::task_pushed}, 2};
      case Type::task_submitted_next_wide:
      case Type::task_submitted_alike_wide: return {{Type::task_submitted_wide, Type::task_pushed}, 2};
      default: return {};
    }
  }

  void note_submission(std::uint32_t task, std::uint16_t site) noexcept {
    after_.task = task;
    after_.site = site;
    after_.has_submission = true;
  }

  RecordFault enter_compound() noexcept {
    after_.event_ticks = last_event_of(record_.type, record_.ticks, fields_);
    count_ = compound_of(record_.type).count;
    if (is_next(record_.type) || is_alike(record_.type)) {
      if (!before_.has_submission) return RecordFault::nothing_before;
      note_submission(before_.task + 1, is_next(record_.type) ? load<std::uint16_t>(fields_ + 4) : before_.site);
      if (is_alike(record_.type)) count_ = 1;
    }
    if (is_open()) --count_;
    return RecordFault::none;
  }

  void fill_part(Event& event) noexcept {
    event.type = compound_of(record_.type).events[next_];
    event.info_ = &type_infos[static_cast<std::size_t>(event.type)];
    event.spec_ = event.info_->spec;
    event.implied_task_ = after_.task;
    switch (event.type) {
      case Type::task_ended: event.ticks = after_.event_ticks; break;
      case Type::task_ready:
        if (record_.type == Type::task_ran_kept) event.ticks = before_.event_ticks;
        break;
      case Type::task_stolen: event.info_ = &stolen_info; break;
      case Type::task_submitted:
        event.info_ = is_next(record_.type) ? &next_info : &alike_info;
        event.spec_ = &submitted_spec;
        event.implied_number_ = after_.site;
        break;
      case Type::task_submitted_wide:
        event.info_ = is_next(record_.type) ? &next_wide_info : &alike_wide_info;
        event.spec_ = &submitted_wide_spec;
        event.implied_number_ = after_.site;
        break;
      case Type::task_pushed:
        event.info_ = record_.type == Type::task_released ? &released_pushed_info : &next_pushed_info;
        event.implied_number_ = worker_;
        break;
      default: break;
    }
  }

  State before_, after_;
  Record record_;
  const std::byte* fields_ = nullptr;
  std::uint32_t bytes_ = 0;
  std::uint16_t worker_ = 0;
  std::uint8_t next_ = 0, count_ = 0;  ///< events of the record: reported, and in all
};

}  // namespace tandem::trace::internal
