// tandem/trace/declared.hpp: types of events that a program has declared itself.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tandem/base/result.hpp"
#include "tandem/trace/event.hpp"
#include "tandem/trace/read/type_info.hpp"

namespace tandem::trace {

/// Types by number, from `kFirstDeclared` on. They stay as long as the table.
///
/// Threads. One at a time adds. Any thread may `find` meanwhile: an entry is stored with release when it is whole, and read
/// with acquire.
class DeclaredTypes {
 public:
  using FieldName = std::pair<std::string_view, Field>;
  static constexpr std::size_t most_fields = std::tuple_size_v<decltype(EventSpec::fields)>;

  DeclaredTypes() = default;
  DeclaredTypes(const DeclaredTypes&) = delete;
  DeclaredTypes& operator=(const DeclaredTypes&) = delete;

  /// The next number, or that of the same declaration before. Errors (invalid_argument): a name that is none (letters, digits
  /// and `_`; in a type's also `.` and `-`), is given twice, or is that of another type; a list; too many fields or types.
  base::Result<Type> add(std::string_view name, std::span<const FieldName> fields);
  /// Null: there is no such type.
  const internal::TypeInfo* find(std::uint32_t number) const noexcept {
    const std::uint32_t index = number - static_cast<std::uint32_t>(kFirstDeclared);
    return index < kMostDeclared ? entries_[index].load(std::memory_order_acquire) : nullptr;
  }
  std::size_t size() const noexcept { return size_.load(std::memory_order_acquire); }
  const EventSpec& spec_at(std::size_t index) const noexcept {
    return *find(static_cast<std::uint32_t>(kFirstDeclared + index))->spec;
  }
  /// A reader of several ranks gives equal types of theirs one number. Before anybody else looks.
  void renumber(std::size_t index, Type type) noexcept { types_[index]->spec.type = type; }

  /// Of a trace whose program has declared nothing.
  static const DeclaredTypes& none() noexcept;

 private:
  /// `spec` refers to the texts, so that it stays where it is.
  struct Declared {
    std::string name;
    std::array<std::string, most_fields> fields;
    EventSpec spec;
    internal::TypeInfo info;
  };
  std::vector<std::unique_ptr<Declared>> types_;
  std::array<std::atomic<const internal::TypeInfo*>, kMostDeclared> entries_{};
  std::atomic<std::size_t> size_{0};
};

/// Whether records of the two lie alike, and are called alike.
bool same_declaration(const EventSpec& a, const EventSpec& b) noexcept;

}  // namespace tandem::trace
