// tools/machine/doctor.cpp: the checks of `tandem doctor`.
#include "tools/machine/doctor.hpp"

#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <map>
#include <optional>

#include <fmt/core.h>
#include <fmt/format.h>

#include "tandem/api/world.hpp"
#include "tandem/base/core_plan.hpp"
#include "tandem/base/cpu_quota.hpp"
#include "tandem/base/energy_counter.hpp"
#include "tandem/base/nvml.hpp"
#include "tandem/base/file_descriptor.hpp"
#include "tandem/base/units.hpp"
#include "tandem/trace/live.hpp"
#include "tools/counted.hpp"
#include "tools/system_files.hpp"

namespace tandem::tools {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t little_shared_memory = 64u << 20;  ///< four ranks with traces of the default size
constexpr rlim_t few_descriptors = 1024;                   ///< some hundred ranks need more

std::string limit_text(rlim_t limit) { return limit == RLIM_INFINITY ? "unlimited" : fmt::format("{}", limit); }

}  // namespace

Finding check_numa_balancing(const fs::path& root, std::size_t numa_nodes) {
  const auto value = first_word(root / "proc/sys/kernel/numa_balancing");
  if (!value || *value == "0") return {"NUMA balancing", Verdict::right, value ? "off" : "not in this kernel"};
  if (numa_nodes < 2) return {"NUMA balancing", Verdict::right, "on, with one NUMA node"};
  return {"NUMA balancing", Verdict::wrong, "on: the kernel moves pages, and stops threads while it does",
          "as root: sysctl kernel.numa_balancing=0"};
}

Finding check_governor(const fs::path& root) {
  std::map<std::string, unsigned> governors;
  for (const fs::path& processor : entries_of(root / "sys/devices/system/cpu"))
    if (const auto governor = first_word(processor / "cpufreq/scaling_governor")) ++governors[*governor];
  if (governors.empty()) return {"frequency", Verdict::right, "not controlled by this system"};
  std::string found;
  for (const auto& [name, count] : governors)
    found += fmt::format("{}{} on {} processors", found.empty() ? "" : ", ", name, count);
  if (governors.size() == 1 && governors.contains("performance")) return {"frequency", Verdict::right, found};
  return {"frequency", Verdict::advice, found, "as root: cpupower frequency-set -g performance"};
}

std::vector<Finding> check_energy(const base::Config& config) {
  return check_energy(config.get_string("energy.powercap"), config.get_string("energy.nvml"));
}

std::vector<Finding> check_energy(const fs::path& powercap, const std::string& nvml) {
  std::vector<Finding> findings;
  const base::EnergyCounters packages = base::find_powercap_counters(powercap);
  std::string names;
  for (const auto& counter : packages.counters) names += (names.empty() ? "" : ", ") + counter->name();
  const std::string without = "; programs run without it, and options stats and objective know less";
  if (packages.missing.empty()) findings.push_back({"energy", Verdict::right, "counters of " + names});
  else findings.push_back({"energy", Verdict::advice, (names.empty() ? "" : "counters of " + names + "; ") + packages.missing + without, packages.remedy});
  const auto library = base::Nvml::load(nvml);
  if (!library.ok()) return findings;  // no such devices
  for (unsigned device = 0; device < library.value()->device_count(); ++device) {
    const auto counter = library.value()->counter(device);
    const std::string subject = fmt::format("energy, nvidia {}", device);
    if (counter.ok()) findings.push_back({subject, Verdict::right, "counted by the device"});
    else findings.push_back({subject, Verdict::advice, counter.error().message + without, "use devices that count, or give running_watts and idle_watts in the file of option machine"});
  }
  return findings;
}

Finding check_shared_memory(std::uint64_t bytes, std::uint64_t free_bytes) {
  if (bytes == 0)
    return {"shared memory", Verdict::wrong, "there is no /dev/shm",
            "mount it: mount -t tmpfs tmpfs /dev/shm; in a container: --shm-size=1g"};
  const std::string found = fmt::format("/dev/shm has {}, {} are free", readable_bytes(bytes),
                                        free_bytes > 0 ? readable_bytes(free_bytes) : "0 bytes");
  if (free_bytes >= little_shared_memory) return {"shared memory", Verdict::right, found};
  return {"shared memory", Verdict::wrong, found + ": too little for traces of several ranks",
          "make it larger (in a container: --shm-size=1g), remove old files, or set --tandem.trace.live=FOLDER"};
}

Finding check_descriptors(const rlimit& files) {
  const std::string found = fmt::format("up to {}; this shell allows {}, and ranks raise that",
                                        limit_text(files.rlim_max), limit_text(files.rlim_cur));
  if (files.rlim_max == RLIM_INFINITY || files.rlim_max > few_descriptors)
    return {"descriptors", Verdict::right, found};
  return {"descriptors", Verdict::wrong, found + ": too few for hundreds of ranks",
          "raise the hard limit: `nofile` in /etc/security/limits.conf, or LimitNOFILE of the batch system's service"};
}

std::vector<Finding> check_networks(const fs::path& root) {
  std::vector<std::string> up;
  for (const fs::path& entry : entries_of(root / "sys/class/net")) {
    const std::string name = entry.filename();
    const auto state = first_word(entry / "operstate");
    if (name == "lo" || state.value_or("down") != "up") continue;
    const auto speed = first_word(entry / "speed");
    const auto node = first_word(entry / "device/numa_node");
    std::string text = name;
    if (speed && *speed != "-1") text += fmt::format(" {} Mbit/s", *speed);
    if (node && *node != "-1") text += fmt::format(" at NUMA node {}", *node);
    up.push_back(text);
  }
  std::vector<Finding> findings;
  if (up.empty())
    findings.push_back(
        {"network", Verdict::advice, "no interface but loopback is up", "jobs of several hosts need one"});
  else
    findings.push_back({"network", Verdict::right, fmt::format("{}", fmt::join(up, ", "))});
  for (const fs::path& card : entries_of(root / "sys/class/infiniband"))
    for (const fs::path& port : entries_of(card / "ports")) {
      std::ifstream stream(port / "state");
      std::string state;
      std::getline(stream, state);
      const auto layer = first_word(port / "link_layer");
      const bool active = state.find("ACTIVE") != std::string::npos;
      const std::string text = fmt::format("{} port {} ({}): {}", card.filename().string(), port.filename().string(),
                                           layer.value_or("?"), state.empty() ? "state unknown" : state);
      findings.push_back({"RDMA", active ? Verdict::right : Verdict::advice, text,
                          active ? "" : "connect the port, or ignore it; `ibstat` shows more"});
    }
  return findings;
}

std::vector<KernelCall> probe_calls() {
  std::vector<KernelCall> calls;
  const auto add = [&](const char* name, bool works, bool needed, const char* without) {
    calls.push_back({name, works, needed, without});
  };
#ifdef SYS_epoll_pwait2
  const base::FileDescriptor epoll(epoll_create1(EPOLL_CLOEXEC));
  epoll_event event;
  const timespec none{};
  add("epoll_pwait2", syscall(SYS_epoll_pwait2, epoll.get(), &event, 1, &none, nullptr, 0) >= 0, false,
      "waits by ppoll, a little slower");
#else
  add("epoll_pwait2", false, false, "waits by ppoll, a little slower");
#endif
  const base::FileDescriptor process(static_cast<int>(syscall(SYS_pidfd_open, getpid(), 0)));
  add("pidfd_open", static_cast<bool>(process), true, "tandem run cannot watch its ranks");
  const base::FileDescriptor memory(memfd_create("tandem-doctor", MFD_CLOEXEC));
  add("memfd_create", static_cast<bool>(memory), true, "ranks of one host cannot share memory");
  char from = 1, to = 0;
  const iovec source{&from, 1}, target{&to, 1};
  add("process_vm_readv", process_vm_readv(getpid(), &target, 1, &source, 1, 0) == 1, false,
      "large messages are copied twice");
  return calls;
}

Finding check_calls(const std::vector<KernelCall>& calls) {
  std::string working, missing;
  bool wrong = false;
  for (const KernelCall& call : calls) {
    if (call.works) working += (working.empty() ? "" : ", ") + call.name;
    else missing += fmt::format("{}{} ({})", missing.empty() ? "" : ", ", call.name, call.without);
    wrong |= !call.works && call.needed;
  }
  if (missing.empty()) return {"kernel calls", Verdict::right, working};
  return {"kernel calls", wrong ? Verdict::wrong : Verdict::advice, "not there, or denied: " + missing,
          "use Linux 5.11 or later; in a container permit the calls (a newer runtime, or its seccomp profile)"};
}

Finding check_binding(const base::Topology& host, const base::Config& config, std::uint32_t ranks) {
  const auto plan = base::plan_host(host, 0, ranks, base::BindTo::core, base::MapBy::core);
  const auto quota = base::cpu_quota();
  std::size_t fewest = SIZE_MAX, most = 0;
  bool crowded = false;
  for (const base::RankCores& rank : plan) {
    crowded |= rank.crowded;
    const auto own = host.restricted_to(rank.pus);
    if (!own) return {"binding", Verdict::wrong, own.error().message, "see `tandem machine`"};
    const std::size_t workers = plan_workers(own.value(), quota, config, {ranks, !rank.crowded}).size();
    fewest = std::min(fewest, workers);
    most = std::max(most, workers);
  }
  std::string found = fmt::format("{} cores; {} here: {} each{}", host.cores().size(),
                                  ranks == 1 ? "one rank" : fmt::format("{} ranks", ranks),
                                  fewest == most ? fmt::format("{} {}", most, most == 1 ? "worker" : "workers")
                                                 : fmt::format("{} to {} workers", fewest, most),
                                  crowded ? ", not bound" : "");
  if (quota) found += fmt::format("; the cgroup grants the time of {:.2f} processors", *quota);
  if (crowded)
    return {"binding", Verdict::wrong, found + ": more ranks than cores", "start at most one rank for each core"};
  return {"binding", Verdict::right, found};
}

std::vector<Leftover> find_leftovers(const fs::path& folder, const std::function<bool(std::uint32_t)>& is_alive) {
  std::vector<Leftover> leftovers;
  for (const fs::path& file : entries_of(folder)) {
    const std::string name = file.filename();
    constexpr std::string_view prefix = trace::live_prefix;
    if (!name.starts_with(prefix)) continue;
    std::uint32_t process = 0;
    const char* const end = name.data() + name.size();
    const auto [dot, error] = std::from_chars(name.data() + prefix.size(), end, process);
    if (error != std::errc() || dot == end || *dot != '.' || is_alive(process)) continue;
    struct stat status {};
    if (::lstat(file.c_str(), &status) != 0) continue;
    const bool is_file = S_ISREG(status.st_mode);
    leftovers.push_back({.file = file,
                         .process = process,
                         .bytes = is_file ? static_cast<std::uint64_t>(status.st_size) : 0,
                         .is_own = is_file && status.st_uid == ::geteuid()});
  }
  return leftovers;
}

Finding check_leftovers(const std::vector<Leftover>& leftovers) {
  const auto is_own = [](const Leftover& leftover) { return leftover.is_own; };
  const auto own = static_cast<std::size_t>(std::ranges::count_if(leftovers, is_own));
  const std::size_t others = leftovers.size() - own;
  const std::string of_others =
      others == 0 ? "" : fmt::format("{} of other users, which they can remove", counted(others, "file"));
  if (own == 0) return {"leftovers", Verdict::right, others == 0 ? "none" : "none of yours; " + of_others};
  std::uint64_t bytes = 0;
  for (const Leftover& leftover : leftovers) bytes += leftover.is_own ? leftover.bytes : 0;
  return {"leftovers", Verdict::wrong,
          fmt::format("{} {} of memory, such as {}{}",
                      own == 1 ? "one file of a killed run keeps" : fmt::format("{} files of killed runs keep", own),
                      readable_bytes(bytes), std::ranges::find_if(leftovers, is_own)->file.string(),
                      of_others.empty() ? "" : "; " + of_others),
          "tandem doctor --clean completes these traces and removes the files"};
}

}  // namespace tandem::tools
