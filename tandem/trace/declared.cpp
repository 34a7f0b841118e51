// tandem/trace/declared.cpp: checks and stores declarations of programs.
#include "tandem/trace/declared.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace tandem::trace {

namespace {

base::Error refused(std::string_view name, std::string_view why) {
  return {base::ErrorCode::invalid_argument, fmt::format("a type of events '{}' cannot be declared: {}", name, why)};
}

/// Whether a text is a name for CTF's readers, which parse names as identifiers.
bool is_name(std::string_view text, std::string_view besides) noexcept {
  const auto allowed = [besides](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           besides.find(c) != besides.npos;
  };
  return !text.empty() && text.size() <= 128 && std::ranges::all_of(text, allowed);
}

}  // namespace

bool same_declaration(const EventSpec& a, const EventSpec& b) noexcept {
  return a.name == b.name && std::ranges::equal(a.fields, b.fields, [](const FieldSpec& x, const FieldSpec& y) {
           return x.name == y.name && (x.name.empty() || x.field == y.field);
         });
}

const DeclaredTypes& DeclaredTypes::none() noexcept {
  static const DeclaredTypes nothing;
  return nothing;
}

base::Result<Type> DeclaredTypes::add(std::string_view name, std::span<const FieldName> fields) {
  if (!is_name(name, ".-")) return refused(name, "its name is letters, digits, '_', '.' and '-', up to 128 of them");
  if (fields.size() > most_fields)
    return refused(name, fmt::format("it has {} fields, and may have {}", fields.size(), most_fields));
  for (std::size_t i = 0; i < kEventSpecs; ++i)
    if (trace::spec_at(i).name == name) return refused(name, "Tandem has a type of that name");
  auto fresh = std::make_unique<Declared>();
  fresh->name = name;
  fresh->spec.category = Category::user;
  fresh->spec.name = fresh->name;
  fresh->spec.help = "of the program's own";
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const auto& [field, kind] = fields[i];
    if (!is_name(field, ""))
      return refused(name, fmt::format("'{}' is no name of a field: letters, digits and '_'", field));
    if (kind == Field::list16 || kind == Field::list32)
      return refused(name, fmt::format("its field '{}' is a list", field));
    if (std::ranges::count(fields, field, &FieldName::first) > 1)
      return refused(name, fmt::format("two fields are called '{}'", field));
    fresh->fields[i] = field;
    fresh->spec.fields[i] = {fresh->fields[i], kind};
  }
  for (const auto& known : types_) {
    if (known->name != name) continue;
    if (same_declaration(known->spec, fresh->spec)) return known->spec.type;
    return refused(name, "it was declared before, with other fields");
  }
  const std::size_t index = types_.size();
  if (index == kMostDeclared)
    return refused(name, fmt::format("there are {} already, which is the most", kMostDeclared));
  const auto type = static_cast<Type>(kFirstDeclared + index);
  fresh->spec.type = type;
  fresh->info = internal::describe(fresh->spec);
  types_.push_back(std::move(fresh));
  entries_[index].store(&types_.back()->info, std::memory_order_release);
  size_.store(index + 1, std::memory_order_release);
  return type;
}

}  // namespace tandem::trace
