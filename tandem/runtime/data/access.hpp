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
  commute,     ///< as read_write, but any order among neighbouring commuting tasks will do, one at a time
  reduce,      ///< adds to the value, into a private copy; copies are combined before the next other access
  scratch,     ///< wants memory of that size, undefined at start, forgotten at the end; orders nothing
};

/// "read", "write", ..., for messages.
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

/// The kernel finds the present value there.
constexpr bool sees_value(AccessMode mode) noexcept {
  return mode == AccessMode::read || mode == AccessMode::read_write || mode == AccessMode::commute;
}
/// The kernel leaves a new value there.
constexpr bool makes_value(AccessMode mode) noexcept {
  return mode == AccessMode::write || mode == AccessMode::read_write || mode == AccessMode::commute;
}

/// A place in the user's source, in the size of a pointer's neighbourhood: `file` is a literal of the compiler's.
struct SourceLine {
  const char* file = nullptr;  ///< null: unknown
  std::uint32_t line = 0;      ///< from 1

  constexpr SourceLine() = default;
  /// The line of a call.
  constexpr SourceLine(const std::source_location& where) : file(where.file_name()), line(where.line()) {}
  constexpr explicit operator bool() const noexcept { return file != nullptr; }  ///< whether it is known
};

}  // namespace tandem
