// tools/machine/doctor.hpp: checks of this host for problems.
#pragma once

#include <sys/resource.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "tandem/base/config.hpp"
#include "tandem/base/topology.hpp"

namespace tandem::tools {

enum class Verdict : std::uint8_t {
  right,
  advice,  ///< it works, perhaps more slowly than it could
  wrong,   ///< something does not work, or is much slower
};

/// One line of the report.
struct Finding {
  std::string subject;      ///< "descriptors"
  Verdict verdict = Verdict::right;
  std::string found;        ///< the present state
  std::string remedy = {};  ///< what to do; empty: nothing
};

// Each check reads the system below `root`, which is "/" or a test's folder, and changes nothing.

Finding check_numa_balancing(const std::filesystem::path& root, std::size_t numa_nodes);
Finding check_governor(const std::filesystem::path& root);
/// Whether the energy of packages (`powercap`, a folder) and of NVIDIA's devices (`nvml`, a library) can be counted.
/// Without devices one finding.
std::vector<Finding> check_energy(const std::filesystem::path& powercap, const std::string& nvml);
/// The findings with the folders of options `energy.powercap` and `energy.nvml`.
std::vector<Finding> check_energy(const base::Config& config);
/// Space of the file system of /dev/shm, in which traces and libraries keep their files.
Finding check_shared_memory(std::uint64_t bytes, std::uint64_t free_bytes);
Finding check_descriptors(const rlimit& files);
/// One finding for IP, and one for each InfiniBand or RoCE adapter.
std::vector<Finding> check_networks(const std::filesystem::path& root);

/// A kernel call: its name, whether it works here, and what Tandem does without it.
struct KernelCall {
  std::string name;
  bool works = false;
  bool needed = false;  ///< nothing replaces it
  std::string without;
};
std::vector<KernelCall> probe_calls();
Finding check_calls(const std::vector<KernelCall>& calls);

/// The plan for `ranks` on this host.
Finding check_binding(const base::Topology& host, const base::Config& config, std::uint32_t ranks);

/// A file of a run that was killed.
struct Leftover {
  std::filesystem::path file;
  std::uint32_t process = 0;
  std::uint64_t bytes = 0;
  bool is_own = true;  ///< an ordinary file of this user
};
/// Live files of traces in `folder` whose process is gone. Other users can put files of such names there: only own ones
/// are removed.
std::vector<Leftover> find_leftovers(const std::filesystem::path& folder,
                                     const std::function<bool(std::uint32_t)>& is_alive);
Finding check_leftovers(const std::vector<Leftover>& leftovers);

}  // namespace tandem::tools
