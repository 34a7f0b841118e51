// tandem/base/process_stat.cpp: reads /proc/PID/stat.
#include "tandem/base/process_stat.hpp"

#include <fstream>
#include <iterator>
#include <sstream>
#include <string>

namespace tandem::base {

std::optional<ProcessStat> parse_process_stat(std::string_view line) {
  const std::size_t name_end = line.rfind(')');
  if (name_end == std::string_view::npos) return std::nullopt;
  std::istringstream words(std::string(line.substr(name_end + 1)));
  ProcessStat stat;
  if (!(words >> stat.state >> stat.parent)) return std::nullopt;
  std::string skipped;
  for (int i = 0; i < 9; ++i) words >> skipped;  // group, session, terminal, flags and faults
  std::uint64_t user = 0, system = 0;
  if (words >> user >> system) {
    stat.user_ticks = user;
    stat.system_ticks = system;
  }
  return stat;
}

std::optional<ProcessStat> process_stat(const std::filesystem::path& folder) {
  std::ifstream file(folder / "stat", std::ios::binary);
  if (!file) return std::nullopt;
  // The whole file is read: a name may have a line break.
  return parse_process_stat(std::string(std::istreambuf_iterator<char>(file), {}));
}

std::optional<ProcessStat> process_stat(std::uint32_t process) {
  return process_stat(std::filesystem::path("/proc") / std::to_string(process));
}

}  // namespace tandem::base
