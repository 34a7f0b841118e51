// tandem/base/result.hpp: an answer, or an error with its place and remedy.
#pragma once

#include <string>
#include <utility>
#include <variant>

#include "tandem/base/assert.hpp"

namespace tandem::base {

enum class ErrorCode {
  invalid_argument,  ///< a value that a person gave is wrong
  not_found,         ///< a file, an option, a device
  malformed,         ///< bytes that do not follow their format
  unsupported,       ///< known, but not on this machine or in this build
  exhausted,         ///< memory, descriptors, or another resource
  io,                ///< the operating system refused
};

/// An error from outside. `message` is a sentence for a person: what, where, and the remedy.
struct Error {
  ErrorCode code = ErrorCode::invalid_argument;
  std::string message;
};

/// A `T`, or why there is none. Not thread-safe; a value like any other.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool ok() const noexcept { return state_.index() == 0; }
  explicit operator bool() const noexcept { return ok(); }

  T& value() & { TANDEM_ASSERT(ok()); return std::get<0>(state_); }
  const T& value() const& { TANDEM_ASSERT(ok()); return std::get<0>(state_); }
  T&& value() && { TANDEM_ASSERT(ok()); return std::get<0>(std::move(state_)); }
  const Error& error() const { TANDEM_ASSERT(!ok()); return std::get<1>(state_); }

 private:
  std::variant<T, Error> state_;
};

/// Success, or an error.
template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)), ok_(false) {}

  bool ok() const noexcept { return ok_; }
  explicit operator bool() const noexcept { return ok_; }
  const Error& error() const { TANDEM_ASSERT(!ok_); return error_; }

 private:
  Error error_;
  bool ok_ = true;
};

}  // namespace tandem::base
