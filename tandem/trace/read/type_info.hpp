// tandem/trace/read/type_info.hpp: what decoding records needs of their types.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "tandem/trace/event.hpp"

namespace tandem::trace::internal {

/// What decoding needs of a type, computed once.
struct TypeInfo {
  const EventSpec* spec = nullptr;        ///< null: no such type
  bool is_fixed = false;                  ///< neither texts nor lists
  std::uint8_t fields = 0;
  std::uint16_t fixed_bytes = 0;          ///< of all fields up to the first text or list
  /// Offsets of fields, right up to and including the first text or list; or see below.
  std::array<std::uint16_t, 9> offsets{};
  std::uint8_t first_variable = 0;        ///< the index of that, or the number of fields

  /// Stands for an offset: the field is not in the record; it follows from earlier records.
  static constexpr std::uint16_t implied_task = 0xFFFF, implied_site = 0xFFFE, implied_worker = 0xFFFD;
  static constexpr std::uint16_t first_implied = implied_worker;
};

constexpr TypeInfo describe(const EventSpec& spec) noexcept {
  TypeInfo info;
  info.spec = &spec;
  info.fields = static_cast<std::uint8_t>(field_count(spec));
  while (info.first_variable < info.fields && bytes_of(spec.fields[info.first_variable].field) > 0) {
    info.fixed_bytes = static_cast<std::uint16_t>(info.fixed_bytes + bytes_of(spec.fields[info.first_variable].field));
    info.offsets[++info.first_variable] = info.fixed_bytes;
  }
  info.is_fixed = info.first_variable == info.fields;
  return info;
}

constexpr std::array<TypeInfo, kTypes> describe_types() noexcept {
  std::array<TypeInfo, kTypes> all{};
  for (std::size_t i = 0; i < kEventSpecs; ++i) all[static_cast<std::size_t>(spec_at(i).type)] = describe(spec_at(i));
  return all;
}
inline constexpr std::array<TypeInfo, kTypes> type_infos = describe_types();

/// The field called `NAME_count` of the list `field`; the tables are checked to have one before it.
constexpr std::size_t count_field(const EventSpec& spec, std::size_t field) noexcept {
  const std::string_view list = spec.fields[field].name;
  constexpr std::string_view suffix = "_count";
  for (std::size_t i = 0; i < field; ++i) {
    const std::string_view name = spec.fields[i].name;
    if (spec.fields[i].field == Field::u8 && name.size() == list.size() + suffix.size() && name.starts_with(list) &&
        name.ends_with(suffix))
      return i;
  }
  return spec.fields.size();
}

/// Whether counts are before the first text or list, so that decoding finds them at a fixed place.
constexpr bool every_list_has_its_count_at_a_fixed_place() noexcept {
  for (std::size_t type = 0; type < kEventSpecs; ++type) {
    const EventSpec& spec = spec_at(type);
    for (std::size_t i = 0; i < field_count(spec); ++i)
      if (entry_bytes_of(spec.fields[i].field) != 0 && count_field(spec, i) >= describe(spec).first_variable)
        return false;
  }
  return true;
}
static_assert(every_list_has_its_count_at_a_fixed_place());

}  // namespace tandem::trace::internal
