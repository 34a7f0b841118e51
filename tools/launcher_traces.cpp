// tools/launcher_traces.cpp: from live files to the folders that they belong to.
#include "tools/launcher_traces.hpp"

#include <fmt/core.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <system_error>

#include "tandem/trace/recover.hpp"

namespace tandem::tools {
namespace {

/// The rank's folder, as its live file says. Nothing: it is no such file, or its program died before it said.
std::optional<std::filesystem::path> folder_of(const std::filesystem::path& live) {
  trace::LivePage page;
  std::ifstream file(live, std::ios::binary);
  if (!file.read(reinterpret_cast<char*>(&page), sizeof page) || page.magic != trace::LivePage::live_magic) return std::nullopt;
  const std::size_t length = strnlen(page.folder, sizeof page.folder);
  if (length == 0 || length == sizeof page.folder) return std::nullopt;
  return std::filesystem::path(std::string(page.folder, length));
}

/// File systems have coarse clocks.
constexpr std::chrono::seconds kCoarse{1};

}  // namespace

std::string recover_traces_of(pid_t process, std::filesystem::file_time_type begun) {
  std::string lines;
  for (const std::filesystem::path& live : trace::live_files_of(static_cast<std::uint32_t>(process))) {
    std::error_code gone;
    const std::filesystem::file_time_type written = std::filesystem::last_write_time(live, gone);
    if (gone || written + kCoarse < begun) continue;
    const auto folder = folder_of(live);
    if (!folder) continue;
    const auto report = trace::recover_rank(*folder);
    if (!report) {
      lines += fmt::format("tandem run: the trace {} was not ended by its program: {}\n", folder->string(),
                           report.error().message);
    } else if (report.value().ranks > 0) {
      lines += fmt::format("tandem run: the trace {} was not ended by its program: its last {} events were gathered\n",
                           folder->string(), report.value().events_added);
    }
  }
  return lines;
}

}  // namespace tandem::tools
