// tandem/sim/platform_file.hpp: a platform as a TOML file that people write.
#pragma once

#include <filesystem>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tandem/base/result.hpp"
#include "tandem/sim_rank/kernel_times.hpp"
#include "tandem/sim_rank/platform.hpp"

namespace tandem::sim {

/// How long a kernel takes on a platform: `mean_ns` where a task's data takes `bytes`, and (its bytes /
/// `bytes`)^`power` times as long elsewhere.
struct KernelLaw {
  double mean_ns = 0;
  double spread = 0;  ///< standard deviation of one duration, relative to its mean
  double bytes = 0;   ///< 0: every task takes `mean_ns`
  double power = 1;   ///< 1.5 for products of square tiles
};

/// By codelet and kind of worker.
using KernelLaws = std::map<std::pair<std::string, DeviceKind>, KernelLaw>;

struct DescribedPlatform {
  std::string name = {};
  Platform platform = {};  ///< with one rank: a job has as many as its user says
  std::filesystem::path models = {};  ///< folder with what kernels take; empty: what this machine has learnt
  std::vector<KernelLaws> kernels{1};  ///< for each kind of node

  /// Nothing: the file has no such kernel.
  std::optional<KernelTime> time_of(const runtime::EmulatedTask& task, std::uint32_t node = 0) const;
};

using PlatformSettings = std::vector<std::pair<std::string, std::string>>;

/// Reads a platform. Every key but `name` has a default:
///
///     name = "henri"
///     machine = "node.toml"    # a node's file (runtime/machine/machine_file.hpp), from this file's folder: cores,
///                              # and latency and bandwidth if messages were measured; what follows goes before it
///     models = "models"        # a folder, from this file's folder: durations with 1, 2, 4 ... busy cores in its
///                              # folders 1, 2, 4 ..., as files of models (api/model_folder.hpp)
///     cores = 36               # of each node, which its ranks share
///     latency = "1.8us"        # of a message from node to node
///     bandwidth = 10.5         # GB/s at which a rank sends to other nodes, and receives
///     node_latency = "600ns"   # between two ranks of a node
///     node_bandwidth = 8
///     submit = "300ns"         # what Tandem takes: to submit a task,
///     task = "250ns"           # to run one, beside its kernel,
///     wake = "8us"             # to wake a worker that sleeps,
///     packet = "900ns"         # and to send or receive a packet;
///     copy = 2.5               # GB/s at which a core copies what ranks of a node send each other
///     contention = "henri"     # how kernels and messages share memory: a machine of the thesis, or a file, from this
///                              # file's folder (`tandem contention fit`)
///     node_spread = 0.02       # of the speeds of nodes: standard deviation, relative
///     run_spread = 0.01        # of a whole run
///     numa_nodes = 2           # of a node: cores and devices are spread over them
///     numa_bandwidth = 15      # GB/s of copies between two of them, in each direction,
///     numa_latency = "1us"
///     remote = 1.2             # how many times as long kernels take whose data lies on another one
///     nodes = "14 chetemi:18, 7 chifflet:24"  # of several kinds: so many, a platform's name or file, from this file's
///                              # folder, and cores, if others than there. Cores, NUMA nodes, devices and kernels are
///                              # theirs, all else is this file's
///     [devices.gtx]            # of each node; any name
///     kind = "cuda"            # or opencl
///     count = 2
///     memory = "11GB"          # of each; without: no limit
///     bandwidth = 12           # GB/s of copies from and to main memory, in each direction,
///     latency = "10us"
///     in_flight = 2            # tasks
///     [kernels.gemm.cpu]       # of codelet gemm on workers of kind cpu: else what was learnt
///     mean = "1.2ms"
///     bytes = "1200KiB"        # of all data of a task that takes the mean; without: every task takes it
///     power = 1.5              # other sizes: (bytes / these)^power
///     spread = 0.03
///
/// `settings`: keys, with those of their tables, and values that count instead of the file's; those of a kind of nodes
/// begin with its name, as in chifflet.remote.
/// Errors: io, malformed (file, line, and what to write), and those of the node's file.
base::Result<DescribedPlatform> read_platform(const std::filesystem::path& file, const PlatformSettings& settings = {});
/// `name` stands for the file in messages, `folder` for its folder.
base::Result<DescribedPlatform> parse_platform(std::string_view text, std::string_view name,
                                               const std::filesystem::path& folder = {},
                                               const PlatformSettings& settings = {});

}  // namespace tandem::sim
