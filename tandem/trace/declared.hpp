// tandem/trace/declared.hpp: event types that a program declares.
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

/// Types by number, from `kFirstDeclared` on. They live as long as the table.
///
/// Threads. One thread at a time adds. Any thread may `find` meanwhile: a complete entry is stored with release, and
/// read with acquire.
class DeclaredTypes {
 public:
  using FieldName = std::pair<std::string_view, Field>;
  static constexpr std::size_t most_fields = std::tuple_size_v<decltype(EventSpec::fields)>;

  DeclaredTypes() = default;
  DeclaredTypes(const DeclaredTypes&) = delete;
  DeclaredTypes& operator=(const DeclaredTypes&) = delete;

  /// Declares a type. Returns the next number, or that of an equal declaration. Errors (invalid_argument): a bad name
  /// (allowed are letters, digits and `_`; in a type's name also `.` and `-`), one that is used twice or by another
  /// type; a list; too many fields or types.
  base::Result<Type> add(std::string_view name, std::span<const FieldName> fields);
  /// The type of that number; null: none.
  const internal::TypeInfo* find(std::uint32_t number) const noexcept {
    const std::uint32_t index = number - static_cast<std::uint32_t>(kFirstDeclared);
    return index < kMostDeclared ? entries_[index].load(std::memory_order_acquire) : nullptr;
  }
  std::size_t size() const noexcept { return size_.load(std::memory_order_acquire); }
  const EventSpec& spec_at(std::size_t index) const noexcept {
    return *find(static_cast<std::uint32_t>(kFirstDeclared + index))->spec;
  }
  /// Changes a type's number, so that a reader of several ranks gives their equal types one. Called before other
  /// threads use the table.
  void renumber(std::size_t index, Type type) noexcept { types_[index]->spec.type = type; }

  /// The table of a program that has declared nothing.
  static const DeclaredTypes& none() noexcept;

 private:
  /// `spec` refers to the texts, so the object must not move.
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

/// Whether the two have the same name and layout of records.
bool same_declaration(const EventSpec& a, const EventSpec& b) noexcept;

}  // namespace tandem::trace
