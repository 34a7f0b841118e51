// tools/launcher/batch_hosts.cpp: variables and files of Slurm, PBS, OAR and LSF.
#include "tools/launcher/batch_hosts.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <sstream>

#include <fmt/core.h>

namespace tandem::tools {
namespace {

using base::Error;
using base::ErrorCode;
using base::Result;

constexpr std::size_t most_names = 1'000'000;

const std::string* find(const base::Environment& environment, std::string_view name) {
  for (const auto& [variable, value] : environment)
    if (variable == name) return value.empty() ? nullptr : &value;
  return nullptr;
}

std::optional<std::uint32_t> number(std::string_view text) {
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

Error malformed(std::string_view text) {
  return {ErrorCode::malformed, fmt::format("the list of hosts '{}' cannot be read: name them with --host", text)};
}

/// Counts ranks of a host that is the last one, or is new.
void count(std::vector<HostShare>& hosts, const std::string& name, std::uint32_t ranks) {
  const auto known = std::find_if(hosts.begin(), hosts.end(),
                                  [&](const HostShare& share) { return share.host == name; });
  if (known == hosts.end()) hosts.push_back({name, ranks});
  else known->ranks = known->ranks.value_or(0) + ranks;
}

/// Reads a name on each line, as often as the host has processes.
Result<std::vector<HostShare>> read_lines(const std::string& file, std::string_view variable) {
  std::ifstream stream(file);
  if (!stream) {
    return Error{ErrorCode::not_found, fmt::format("the file of hosts that {} names, {}, cannot be read: {}", variable,
                                                   file, std::strerror(errno))};
  }
  std::vector<HostShare> hosts;
  for (std::string line; std::getline(stream, line);) {
    std::istringstream words(line);
    std::string name, slots;
    if (!(words >> name) || name.front() == '#') continue;
    const auto stated = words >> slots ? number(slots) : std::optional<std::uint32_t>(1);  // LSF: "host 4"
    if (!stated) return malformed(line);
    count(hosts, name, *stated);
  }
  if (hosts.empty())
    return Error{ErrorCode::malformed, fmt::format("the file of hosts that {} names, {}, is empty", variable, file)};
  return hosts;
}

/// Expands the items of one pair of brackets: "1-3,07".
bool expand_range(std::string_view range, std::vector<std::string>& items) {
  const auto dash = range.find('-');
  const std::string_view first_text = range.substr(0, dash);
  const auto first = number(first_text);
  const auto last = dash == std::string_view::npos ? first : number(range.substr(dash + 1));
  if (!first || !last || *last < *first || *last - *first >= most_names) return false;
  for (std::uint32_t value = *first; value <= *last; ++value)
    items.push_back(fmt::format("{:0{}}", value, first_text.size()));
  return true;
}

bool expand_brackets(std::string_view inside, std::vector<std::string>& items) {
  for (std::size_t begin = 0; begin <= inside.size();) {
    const std::size_t comma = std::min(inside.find(',', begin), inside.size());
    if (!expand_range(inside.substr(begin, comma - begin), items) || items.size() > most_names) return false;
    begin = comma + 1;
  }
  return true;
}

/// Expands one entry: text and brackets in turn.
bool expand_entry(std::string_view entry, std::vector<std::string>& names) {
  std::vector<std::string> made{""};
  while (!entry.empty()) {
    const auto open = entry.find_first_of("[]");
    for (std::string& name : made) name += entry.substr(0, open);
    if (open == std::string_view::npos) break;
    const auto close = entry.find(']', open);
    if (entry[open] == ']' || close == std::string_view::npos) return false;
    std::vector<std::string> items, longer;
    if (!expand_brackets(entry.substr(open + 1, close - open - 1), items) || made.size() * items.size() > most_names)
      return false;
    for (const std::string& name : made)
      for (const std::string& item : items) longer.push_back(name + item);
    made = std::move(longer);
    entry.remove_prefix(close + 1);
  }
  if (made.front().empty() || names.size() + made.size() > most_names) return false;
  names.insert(names.end(), made.begin(), made.end());
  return true;
}

Result<BatchHosts> slurm(const base::Environment& environment, const std::string& list) {
  const auto names = expand_nodelist(list);
  if (!names) return names.error();
  BatchHosts job{
      "Slurm", {}, {"srun", "--overlap", "--nodes=1", "--ntasks=1", "--cpu-bind=none", "--mpi=none", "--quiet", "-w"}};
  for (const std::string& name : names.value()) job.hosts.push_back({name, std::nullopt});
  const bool asked =
      find(environment, "SLURM_NTASKS") != nullptr || find(environment, "SLURM_NTASKS_PER_NODE") != nullptr;
  const std::string* const tasks = find(environment, "SLURM_TASKS_PER_NODE");
  if (!asked || tasks == nullptr) return job;
  const auto counts = expand_tasks_per_node(*tasks);
  if (!counts) return counts.error();
  if (counts.value().size() != job.hosts.size()) return malformed(*tasks);
  for (std::size_t i = 0; i < job.hosts.size(); ++i) job.hosts[i].ranks = counts.value()[i];
  return job;
}

Result<BatchHosts> lsf(const base::Environment& environment) {
  BatchHosts job{"LSF", {}, {"blaunch"}};
  if (const std::string* file = find(environment, "LSB_DJOB_HOSTFILE")) {
    auto hosts = read_lines(*file, "LSB_DJOB_HOSTFILE");
    if (!hosts) return hosts.error();
    job.hosts = std::move(hosts).value();
    return job;
  }
  std::istringstream words(*find(environment, "LSB_MCPU_HOSTS"));
  for (std::string name, slots; words >> name;) {
    const auto stated = words >> slots ? number(slots) : std::nullopt;
    if (!stated) return malformed(words.str());
    count(job.hosts, name, *stated);
  }
  if (job.hosts.empty()) return malformed(words.str());
  return job;
}

Result<std::optional<BatchHosts>> some(Result<BatchHosts> job) {
  if (!job) return job.error();
  return std::optional<BatchHosts>(std::move(job).value());
}

}  // namespace

Result<std::vector<std::string>> expand_nodelist(std::string_view text) {
  std::vector<std::string> names;
  std::size_t begin = 0;
  int depth = 0;
  for (std::size_t at = 0; at <= text.size(); ++at) {
    const char letter = at < text.size() ? text[at] : ',';
    if (letter == '[') ++depth;
    if (letter == ']') --depth;
    if (depth < 0 || depth > 1) return malformed(text);
    if (letter != ',' || (depth > 0 && at < text.size())) continue;
    if (!expand_entry(text.substr(begin, at - begin), names)) return malformed(text);
    begin = at + 1;
  }
  return names;
}

Result<std::vector<std::uint32_t>> expand_tasks_per_node(std::string_view text) {
  std::vector<std::uint32_t> counts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t comma = std::min(text.find(',', begin), text.size());
    const std::string_view item = text.substr(begin, comma - begin);
    begin = comma + 1;
    const auto times = item.find("(x");
    const auto tasks = number(item.substr(0, times));
    const bool closed = times == std::string_view::npos || item.back() == ')';
    const auto repeated = times == std::string_view::npos || !closed
                              ? std::optional<std::uint32_t>(1)
                              : number(item.substr(times + 2, item.size() - times - 3));
    if (!tasks || !closed || !repeated || *repeated > most_names - counts.size()) return malformed(text);
    counts.insert(counts.end(), *repeated, *tasks);
  }
  return counts;
}

Result<std::optional<BatchHosts>> batch_hosts(const base::Environment& environment) {
  if (const std::string* list = find(environment, "SLURM_JOB_NODELIST")) return some(slurm(environment, *list));
  if (const std::string* file = find(environment, "OAR_NODEFILE")) {
    auto hosts = read_lines(*file, "OAR_NODEFILE");
    if (!hosts) return hosts.error();
    for (HostShare& share : hosts.value()) share.ranks.reset();
    return std::optional(BatchHosts{"OAR", std::move(hosts).value(), {"oarsh"}});
  }
  if (const std::string* file = find(environment, "PBS_NODEFILE")) {
    auto hosts = read_lines(*file, "PBS_NODEFILE");
    if (!hosts) return hosts.error();
    return std::optional(BatchHosts{"PBS", std::move(hosts).value(), {}});
  }
  if (find(environment, "LSB_DJOB_HOSTFILE") != nullptr || find(environment, "LSB_MCPU_HOSTS") != nullptr)
    return some(lsf(environment));
  return std::optional<BatchHosts>();
}

std::vector<HostShare> shares_for(std::optional<std::uint32_t> ranks, const BatchHosts& job) {
  std::uint64_t stated = 0;
  for (const HostShare& share : job.hosts) stated += share.ranks.value_or(0);
  std::vector<HostShare> hosts = job.hosts;
  if (ranks && *ranks != stated)
    for (HostShare& share : hosts) share.ranks.reset();
  return hosts;
}

}  // namespace tandem::tools
