// tandem/trace/read/record.hpp: decodes one record, with checks of the available bytes, for files and live buffers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "tandem/trace/declared.hpp"
#include "tandem/trace/event.hpp"
#include "tandem/trace/packet.hpp"
#include "tandem/trace/read/type_info.hpp"

namespace tandem::trace::internal {

template <class T>
T load(const std::byte* at) noexcept {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

/// What is wrong with the header of a complete packet; empty: nothing. The caller checks whether the file is long
/// enough.
constexpr std::string_view problem_of(const PacketHeader& header) noexcept {
  constexpr std::uint64_t header_bits = sizeof(PacketHeader) * 8;
  // live.hpp counts a buffer's bytes in 32 bits
  constexpr std::uint64_t most_bits = (std::uint64_t{UINT32_MAX} + 1) * 8;
  constexpr std::uint64_t least_record_bits = RecordHeader::compact_bytes * 8;
  if (header.magic != PacketHeader::ctf_magic) return "no packet begins here: its magic number is wrong";
  if (header.content_bits < header_bits || header.content_bits % 8 != 0)
    return "the packet's content_size is impossible";
  if (header.packet_bits < header.content_bits || header.packet_bits % 32 != 0 || header.packet_bits > most_bits)
    return "the packet's packet_size is impossible";
  if (header.end_ticks < header.begin_ticks) return "the packet ends before it begins";
  if (header.event_count > (header.content_bits - header_bits) / least_record_bits)
    return "the packet's event_count is more than fits into its content_size";
  return {};
}

/// A record that lies in its packet with all its fields.
struct Record {
  const TypeInfo* info = nullptr;
  Type type = Type::none;
  std::uint64_t ticks = 0;
  std::size_t fields = 0;  ///< byte of the first field
  std::size_t end = 0;     ///< behind the last field

  std::size_t next() const noexcept { return (end + 3) & ~std::size_t{3}; }
};

/// The offset in the fields of the word by which a record can be completed later (`Stream::leave_open`); -1: the type
/// has none.
constexpr int open_word_offset(Type type) noexcept {
  switch (type) {
    case Type::task_ran:
    case Type::task_ran_popped:
    case Type::task_ran_stolen:
    case Type::task_ran_kept: return 4;
    case Type::task_submitted_next:
    case Type::task_submitted_next_wide: return 0;
    default: return -1;
  }
}
/// Whether such a word shows that the record has not been completed.
constexpr bool is_open_word(Type type, std::uint32_t word) noexcept {
  return is_next(type) ? (word & 0xFFFF) == kNotPushed : word == kNoLength;
}
/// The time of the last event of the record.
inline std::uint64_t last_event_of(Type type, std::uint64_t ticks, const std::byte* fields) noexcept {
  if (type < Type::task_ran || type > Type::task_ran_kept) return ticks;
  const auto length = load<std::uint32_t>(fields + 4);
  return length == kNoLength ? ticks : ticks + (length - 1);
}

enum class RecordFault { none, header_cut, unknown_type, stamp_back, fields_cut, text_open, nothing_before };
constexpr std::string_view describe(RecordFault fault) noexcept {
  switch (fault) {
    case RecordFault::none: return "nothing";
    case RecordFault::header_cut: return "the packet's content ends within a record's header";
    case RecordFault::unknown_type: return "a record of a type that does not exist";
    case RecordFault::stamp_back: return "a record's stamp is before that of the record before";
    case RecordFault::fields_cut: return "the packet's content ends within a record's fields";
    case RecordFault::nothing_before:
      return "a record that refers to a submission before, which its packet does not have";
    case RecordFault::text_open: return "a text is not ended within the packet's content";
  }
  return "";
}

/// Skips texts and lists. `at` is the beginning of the first.
inline RecordFault skip_variable(const TypeInfo& info, const std::byte* data, std::size_t fields, std::size_t end,
                                 std::size_t* at) noexcept {
  for (std::size_t i = info.first_variable; i < info.fields; ++i) {
    const Field field = info.spec->fields[i].field;
    if (field == Field::text) {
      const void* zero = *at < end ? std::memchr(data + *at, 0, end - *at) : nullptr;
      if (zero == nullptr) return RecordFault::text_open;
      *at = static_cast<std::size_t>(static_cast<const std::byte*>(zero) - data) + 1;
      continue;
    }
    std::size_t bytes = bytes_of(field);
    if (const std::size_t entry = entry_bytes_of(field); entry != 0)
      bytes = entry * load<std::uint8_t>(data + fields + info.offsets[count_field(*info.spec, i)]);
    if (end - *at < bytes) return RecordFault::fields_cut;
    *at += bytes;
  }
  return RecordFault::none;
}

/// The record whose header word, already read, lies at `at`, in content that ends at `end`; `before` is the stamp
/// before it. `at` is a multiple of 4, and the word ends before `end`. `declared`: what the trace's program has
/// declared.
inline RecordFault decode(const std::byte* data, std::size_t at, std::size_t end, std::uint32_t word,
                          std::uint64_t before, const DeclaredTypes& declared, Record* record) noexcept {
  std::uint32_t type = word & (kTypes - 1);
  std::size_t fields = at + RecordHeader::compact_bytes;
  if (type != static_cast<std::uint32_t>(Type::extended)) {
    record->ticks = RecordHeader::stamp(word, before);
  } else {
    type = word >> RecordHeader::type_bits;
    fields = at + RecordHeader::extended_bytes;
    if (end < fields) return RecordFault::header_cut;
    record->ticks = load<std::uint64_t>(data + at + RecordHeader::compact_bytes);
  }
  const TypeInfo* const found = type < kTypes ? &type_infos[type] : declared.find(type);
  if (found == nullptr || found->spec == nullptr) return RecordFault::unknown_type;
  if (record->ticks < before) return RecordFault::stamp_back;
  const TypeInfo& info = *found;
  if (end < fields || end - fields < info.fixed_bytes) return RecordFault::fields_cut;
  std::size_t behind = fields + info.fixed_bytes;
  if (!info.is_fixed) {
    const RecordFault fault = skip_variable(info, data, fields, end, &behind);
    if (fault != RecordFault::none) return fault;
  }
  record->info = &info;
  record->type = info.spec->type;
  record->fields = fields;
  record->end = behind;
  return RecordFault::none;
}

}  // namespace tandem::trace::internal
