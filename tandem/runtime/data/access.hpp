// tandem/runtime/data/access.hpp: access modes, and where a piece of data is used in the user's source.
#pragma once

#include <cstdint>
#include <source_location>
#include <string_view>

namespace tandem {

/// How a task uses a piece of data.
enum class AccessMode : std::uint8_t {
  read,        ///< sees the value; may run beside other readers
  write,       ///< replaces the whole value without looking at it
  read_write,  ///< sees and changes the value
  commute,     ///< sees and changes the value; neighbouring commuting tasks run one at a time, in any order
  reduce,      ///< adds to the value, into a private copy; copies are combined before the next other access
  scratch,     ///< memory of that size, undefined at the start and forgotten at the end; orders nothing
};

/// Name of a mode for messages: "read", "write" and so on.
constexpr std::string_view name_of(AccessMode mode) noexcept {
  switch (mode) {
    case AccessMode::read: return "read";
    case AccessMode::write: return "write";
    case AccessMode::read_write: return "read_write";
    case AccessMode::commute: return "commute";
    case AccessMode::reduce: return "reduce";
    case AccessMode::scratch: return "scratch";
  }
  return "?";
}

/// True if a kernel with this mode finds the present value.
constexpr bool sees_value(AccessMode mode) noexcept {
  return mode == AccessMode::read || mode == AccessMode::read_write || mode == AccessMode::commute;
}
/// True if a kernel with this mode leaves a new value.
constexpr bool makes_value(AccessMode mode) noexcept {
  return mode == AccessMode::write || mode == AccessMode::read_write || mode == AccessMode::commute;
}

/// A place in the user's source. `file` is a literal of the compiler, so a copy is two words.
struct SourceLine {
  const char* file = nullptr;  ///< null: unknown
  std::uint32_t line = 0;      ///< from 1

  constexpr SourceLine() = default;
  /// The line of a call.
  constexpr SourceLine(const std::source_location& where) : file(where.file_name()), line(where.line()) {}
  constexpr explicit operator bool() const noexcept { return file != nullptr; }  ///< whether the place is known
};

}  // namespace tandem
