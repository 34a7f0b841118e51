// tandem/base/log.cpp: formatting a message into one line, and the sink that writes to standard error.
#include "tandem/base/log.hpp"

#include <cstdio>
#include <string>

namespace tandem::base {
namespace {

/// Writes the whole line at once, so that lines of several processes on one terminal stay whole.
void write_to_standard_error(LogLevel level, std::string_view line) {
  const std::string whole = fmt::format("tandem: {}: {}\n", name_of(level), line);
  std::fwrite(whole.data(), 1, whole.size(), stderr);
}

std::string escaped(std::string_view message) {
  std::string line;
  line.reserve(message.size());
  for (const char c : message) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\n') line += "\\n";
    else if (c == '\t') line += c;
    else if (byte < 0x20 || byte == 0x7f) line += fmt::format("\\x{:02x}", byte);
    else line += c;
  }
  return line;
}

}  // namespace

std::string_view name_of(LogLevel level) noexcept {
  switch (level) {
    case LogLevel::error: return "error";
    case LogLevel::warn: return "warn";
    case LogLevel::info: return "info";
    case LogLevel::debug: return "debug";
  }
  return "unknown";
}

Log::Log(LogLevel level) : Log(level, write_to_standard_error) {}

Log::Log(LogLevel level, Sink sink) : level_(level), sink_(std::move(sink)) {}

void Log::write_formatted(LogLevel level, fmt::string_view format, fmt::format_args args) {
  const std::string line = escaped(fmt::vformat(format, args));
  const std::lock_guard lock(mutex_);
  sink_(level, line);
}

}  // namespace tandem::base
