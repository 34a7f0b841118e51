// tandem/base/log.hpp: messages for people, one line each, on standard error unless a sink is given.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <string_view>
#include <utility>

#include <fmt/core.h>

namespace tandem::base {

enum class LogLevel { error, warn, info, debug };

/// The name: "error", "warn", "info", "debug".
std::string_view name_of(LogLevel level) noexcept;

/// Writes messages of a level and the graver ones. An object that is passed by reference and outlives its users.
/// Thread-safe: a message below the level costs one load; the others are formatted by the caller, then given to the
/// sink one at a time under a lock. Invariant: a sink sees exactly one line per message, without line end; control
/// characters in a message are escaped.
class Log {
 public:
  using Sink = std::function<void(LogLevel level, std::string_view line)>;

  /// Writes to standard error, as "tandem: warn: message".
  explicit Log(LogLevel level = LogLevel::warn);
  /// Writes to `sink`, which must not log to this Log itself.
  Log(LogLevel level, Sink sink);
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  // Relaxed on both sides: the level orders nothing else.
  bool enabled(LogLevel level) const noexcept { return level <= level_.load(std::memory_order_relaxed); }
  void set_level(LogLevel level) noexcept { level_.store(level, std::memory_order_relaxed); }

  template <class... Args>
  void error(fmt::format_string<Args...> format, Args&&... args) { write(LogLevel::error, format, args...); }
  template <class... Args>
  void warn(fmt::format_string<Args...> format, Args&&... args) { write(LogLevel::warn, format, args...); }
  template <class... Args>
  void info(fmt::format_string<Args...> format, Args&&... args) { write(LogLevel::info, format, args...); }
  template <class... Args>
  void debug(fmt::format_string<Args...> format, Args&&... args) { write(LogLevel::debug, format, args...); }

 private:
  template <class... Args>
  void write(LogLevel level, fmt::string_view format, const Args&... args) {
    if (enabled(level)) write_formatted(level, format, fmt::make_format_args(args...));
  }
  void write_formatted(LogLevel level, fmt::string_view format, fmt::format_args args);

  std::atomic<LogLevel> level_;
  std::mutex mutex_;  ///< held around sink_
  Sink sink_;
};

}  // namespace tandem::base
