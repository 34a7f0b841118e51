// tandem/trace/read/event_fields.cpp: the fields of an event, read in the mapped file.
#include <algorithm>
#include <charconv>

#include "tandem/trace/read/reader.hpp"
#include "tandem/trace/read/record.hpp"

namespace tandem::trace {

using internal::load;
using internal::TypeInfo;

const std::byte* Event::find(std::size_t field) const noexcept {
  const TypeInfo& info = *info_;
  TANDEM_ASSERT(field < info.fields);
  if (field <= info.first_variable) {
    const std::uint16_t offset = info.offsets[field];
    if (offset < TypeInfo::first_implied) [[likely]] return fields_ + offset;
    return offset == TypeInfo::implied_task ? reinterpret_cast<const std::byte*>(&implied_task_)
                                            : reinterpret_cast<const std::byte*>(&implied_number_);
  }
  const std::byte* at = fields_ + info.fixed_bytes;
  for (std::size_t i = info.first_variable; i < field; ++i) {
    switch (const Field kind = spec_->fields[i].field; kind) {
      case Field::text: at += std::strlen(reinterpret_cast<const char*>(at)) + 1; break;
      case Field::list16:
      case Field::list32: at += entry_bytes_of(kind) * list_size(i); break;
      default: at += bytes_of(kind);
    }
  }
  return at;
}

std::uint64_t Event::number(std::size_t field) const noexcept {
  const std::byte* at = find(field);
  switch (spec_->fields[field].field) {
    case Field::u8: return load<std::uint8_t>(at);
    case Field::u16: return load<std::uint16_t>(at);
    case Field::u32: return load<std::uint32_t>(at);
    case Field::u64: return load<std::uint64_t>(at);
    default: break;
  }
  TANDEM_ASSERT(false && "this field is no unsigned number");
  return 0;
}

std::int64_t Event::integer(std::size_t field) const noexcept {
  const std::byte* at = find(field);
  switch (spec_->fields[field].field) {
    case Field::i16: return load<std::int16_t>(at);
    case Field::i32: return load<std::int32_t>(at);
    case Field::i64: return load<std::int64_t>(at);
    default: break;
  }
  TANDEM_ASSERT(false && "this field is no signed number");
  return 0;
}

double Event::real(std::size_t field) const noexcept {
  const std::byte* at = find(field);
  TANDEM_ASSERT(spec_->fields[field].field == Field::f64);
  return load<double>(at);
}

std::string_view Event::text(std::size_t field) const noexcept {
  const std::byte* at = find(field);
  TANDEM_ASSERT(spec_->fields[field].field == Field::text);
  return reinterpret_cast<const char*>(at);
}

std::size_t Event::list_size(std::size_t field) const noexcept {
  TANDEM_ASSERT(field < field_count(*spec_) && entry_bytes_of(spec_->fields[field].field) != 0);
  return number(internal::count_field(*spec_, field));
}

std::uint32_t Event::list_entry(std::size_t field, std::size_t index) const noexcept {
  TANDEM_ASSERT(index < list_size(field));
  if (spec_->fields[field].field == Field::list16) return load<std::uint16_t>(find(field) + 2 * index);
  return load<std::uint32_t>(find(field) + 4 * index);
}

namespace {

void add_text(std::string& out, std::string_view text) {
  out += '"';
  for (const char c : text) out += static_cast<unsigned char>(c) < 32 || c == 127 ? '?' : c;  // one event, one line
  out += '"';
}

void add_real(std::string& out, double value) {
  char digits[32];
  const auto end = std::to_chars(std::begin(digits), std::end(digits), value).ptr;
  out.append(std::begin(digits), end);
}

void add_list(std::string& out, const Event& event, std::size_t field) {
  out += '[';
  for (std::size_t i = 0; i < event.list_size(field); ++i) {
    if (i > 0) out += ' ';
    out += std::to_string(event.list_entry(field, i));
  }
  out += ']';
}

bool counts_a_list(const EventSpec& spec, std::size_t field) {
  for (std::size_t i = field + 1; i < field_count(spec); ++i)
    if (entry_bytes_of(spec.fields[i].field) != 0 && internal::count_field(spec, i) == field) return true;
  return false;
}

}  // namespace

std::string Event::described() const {
  std::string out;
  for (std::size_t i = 0; i < field_count(*spec_); ++i) {
    if (counts_a_list(*spec_, i)) continue;
    if (!out.empty()) out += ' ';
    out += spec_->fields[i].name;
    out += '=';
    switch (spec_->fields[i].field) {
      case Field::i16:
      case Field::i32:
      case Field::i64: out += std::to_string(integer(i)); break;
      case Field::f64: add_real(out, real(i)); break;
      case Field::text: add_text(out, text(i)); break;
      case Field::list16:
      case Field::list32: add_list(out, *this, i); break;
      default: out += std::to_string(number(i));
    }
  }
  return out;
}

}  // namespace tandem::trace
