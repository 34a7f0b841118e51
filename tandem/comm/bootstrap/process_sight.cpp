// tandem/comm/bootstrap/process_sight.cpp: the variables and parents of processes.
#include "tandem/comm/bootstrap/process_sight.hpp"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <string_view>

#include "tandem/base/process_stat.hpp"

namespace tandem::comm::internal {
namespace {

namespace fs = std::filesystem;

struct Process {
  int parent = 0;
  bool ended = false;                     ///< a zombie
  std::optional<std::string> variables = {};  ///< each ends with a zero byte; none: hidden
};

std::optional<std::string> content(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream) return std::nullopt;
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

std::optional<Process> read_process(const fs::path& folder) {
  const auto stat = base::process_stat(folder);
  if (!stat) return std::nullopt;
  return Process{.parent = stat->parent, .ended = stat->has_ended(), .variables = content(folder / "environ")};
}

std::map<int, Process> read_processes(const fs::path& proc) {
  std::map<int, Process> processes;
  std::error_code failed;
  for (fs::directory_iterator at(proc, failed), end; !failed && at != end; at.increment(failed)) {
    const std::string name = at->path().filename();
    int pid = 0;
    const auto [read, error] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (error != std::errc() || read != name.data() + name.size()) continue;
    if (auto process = read_process(at->path())) processes.emplace(pid, std::move(*process));
  }
  return processes;
}

bool has_all(const Process& process, const std::vector<std::string>& wanted) {
  if (!process.variables || process.ended) return false;
  const std::string all = std::string(1, '\0') + *process.variables;
  return std::all_of(wanted.begin(), wanted.end(), [&](const std::string& variable) {
    return all.find(std::string(1, '\0') + variable + std::string(1, '\0')) != std::string::npos;
  });
}

/// The nearest ancestor that was started without the variables of a rank. 0: none is in sight.
int launcher_of(const std::map<int, Process>& processes, int self, const std::vector<std::string>& ours) {
  auto at = processes.find(self);
  while (at != processes.end() && has_all(at->second, ours)) {
    const int parent = at->second.parent;
    if (parent <= 0) return 0;
    at = processes.find(parent);
    if (at != processes.end() && !has_all(at->second, ours)) return parent;
  }
  return 0;
}

}  // namespace

Sight look_for_process(const fs::path& proc, int self, const std::vector<std::string>& ours,
                       const std::vector<std::string>& wanted) {
  const std::map<int, Process> processes = read_processes(proc);
  const int launcher = launcher_of(processes, self, ours);
  bool all_in_sight = launcher > 0;
  for (const auto& [pid, process] : processes) {
    if (has_all(process, wanted)) return Sight::present;
    // A program may hide its variables, or write over them.
    const bool readable = process.variables && process.variables->find('=') != std::string::npos;
    if (process.parent == launcher && !process.ended && !readable) all_in_sight = false;
  }
  return all_in_sight ? Sight::absent : Sight::unknown;
}

}  // namespace tandem::comm::internal
