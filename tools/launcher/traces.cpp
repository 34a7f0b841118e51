// tools/launcher/traces.cpp: from live files to the folders that they belong to.
#include "tools/launcher/traces.hpp"

#include <fmt/core.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <system_error>

#include "tandem/trace/recover.hpp"

namespace tandem::tools {
namespace {

/// Tolerance for the coarse clocks of file systems.
constexpr std::chrono::seconds kCoarse{1};

}  // namespace

std::string recover_traces_of(pid_t process, std::filesystem::file_time_type begun) {
  std::string lines;
  for (const std::filesystem::path& live : trace::live_files_of(static_cast<std::uint32_t>(process))) {
    std::error_code gone;
    const std::filesystem::file_time_type written = std::filesystem::last_write_time(live, gone);
    if (gone || written + kCoarse < begun) continue;
    const auto opened = trace::open_live(live, base::Owners::self);
    if (!opened || opened.value().page.process != static_cast<std::uint32_t>(process)) continue;  // died early
    const std::filesystem::path folder = opened.value().folder();
    if (!folder.is_absolute()) continue;
    const auto report = trace::recover_rank(folder);
    if (!report) {
      lines += fmt::format("tandem run: the trace {} was not ended by its program: {}\n", folder.string(),
                           report.error().message);
    } else if (report.value().ranks > 0) {
      lines += fmt::format("tandem run: the trace {} was not ended by its program: its last {} events were gathered\n",
                           folder.string(), report.value().events_added);
    }
  }
  return lines;
}

}  // namespace tandem::tools
