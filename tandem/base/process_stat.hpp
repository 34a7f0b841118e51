// tandem/base/process_stat.hpp: the kernel's description of a process in /proc/PID/stat.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>

namespace tandem::base {

/// A process as proc(5) describes it.
struct ProcessStat {
  char state = '?';               ///< 'R' running, 'S' sleeping, 'Z' a zombie, and so on
  int parent = 0;                 ///< process id
  std::uint64_t user_ticks = 0;   ///< time in user mode, in clock ticks (sysconf(_SC_CLK_TCK)); 0 in a shorter line
  std::uint64_t system_ticks = 0; ///< in kernel mode

  /// Whether it runs no more: a zombie, or a process that ends at this moment.
  bool has_ended() const noexcept { return state == 'Z' || state == 'X'; }
};

/// Parses /proc/PID/stat: "PID (NAME) STATE PARENT ...", where the name may contain anything. Empty: it is no such
/// line.
std::optional<ProcessStat> parse_process_stat(std::string_view line);
/// The process of this folder in /proc. Empty where it cannot be read: it is gone, or hidden.
std::optional<ProcessStat> process_stat(const std::filesystem::path& folder);
/// A process of this host. Any thread.
std::optional<ProcessStat> process_stat(std::uint32_t process);

}  // namespace tandem::base
