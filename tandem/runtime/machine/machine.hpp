// tandem/runtime/machine/machine.hpp: the workers, the memories and the links of a machine, as a value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tandem/runtime/data/node_index.hpp"
#include "tandem/runtime/machine/machine_network.hpp"
#include "tandem/runtime/task/codelet_core.hpp"

namespace tandem::runtime {

/// Power of a worker, in W.
struct WorkerPower {
  double running_watts = 0;  ///< while a kernel runs
  double idle_watts = 0;     ///< while no kernel runs; at most `running_watts`

  bool operator==(const WorkerPower&) const = default;  ///< equal in both powers
};

/// A worker, and where it works.
struct MachineWorker {
  DeviceKind kind = DeviceKind::cpu;  ///< which implementations of codelets it runs
  NodeIndex node = 0;                 ///< memory that it works in
  int core = -1;                      ///< core to which its thread is bound; -1: any
  unsigned numa_node = 0;             ///< NUMA node of the core, counted from 0
  /// PCI address of its device in /sys/bus/pci/devices; empty: not known, or a CPU worker.
  std::string bus_address = {};
  std::optional<WorkerPower> power = {};  ///< given power; none: not known
};

/// Kind of a memory.
enum class NodeKind : std::uint8_t {
  main,     ///< where the application's pointers live
  numa,     ///< memory of another NUMA node than main memory: the processor addresses both
  device,   ///< memory of a device
  storage,  ///< memory without workers: replicas go there when main memory is full
};

/// A memory.
struct MachineNode {
  NodeKind kind = NodeKind::main;    ///< what it is
  std::string name = "main memory";  ///< for messages and traces
  std::size_t budget = 0;            ///< bytes of replicas that may be there; 0: no limit
  unsigned numa_node = 0;            ///< NUMA node of kind `numa`, counted from 0
};

/// How copies go from one memory to another.
struct MachineLink {
  NodeIndex from = 0;                ///< memory
  NodeIndex to = 0;                  ///< memory
  double bytes_per_ns = 8;           ///< rate in bytes per ns, or GB/s
  std::int64_t latency_ns = 10'000;  ///< until the first byte has arrived
  LinkSource source = LinkSource::assumed;  ///< source of all its figures
  /// Rate while all links of the machine copy at once; none: not known.
  std::optional<double> loaded_bytes_per_ns = {};
  /// Rate while large messages come and go, and no other link copies; none: not known.
  std::optional<double> beside_messages_bytes_per_ns = {};

  /// Duration of a copy of `bytes`, in ns. `load` goes from 0, nothing else is under way, to 1, as when
  /// `loaded_bytes_per_ns` was measured; the time grows linearly between them, and does not depend on it without that
  /// rate. `has_messages`: large messages are under way, and add what they would add to a lone copy.
  double copy_ns(std::size_t bytes, double load = 0, bool has_messages = false) const noexcept {
    const auto size = static_cast<double>(bytes);
    double copy_ns = static_cast<double>(latency_ns) + size / bytes_per_ns;
    if (loaded_bytes_per_ns && load != 0) copy_ns += load * (size / *loaded_bytes_per_ns - size / bytes_per_ns);
    if (beside_messages_bytes_per_ns && has_messages)
      copy_ns += size / *beside_messages_bytes_per_ns - size / bytes_per_ns;
    return copy_ns;
  }
};

/// A machine: found on a host, or made up by a test. A plain value; several threads may read it.
///
/// CPU workers come first. Node 0 is main memory. `check` says whether it is whole.
class Machine {
 public:
  std::vector<MachineWorker> workers;           ///< CPU workers first
  std::vector<MachineNode> nodes{MachineNode{}};  ///< memories; main memory first
  std::vector<MachineLink> links;               ///< those that are known; at most one for each pair and direction
  std::vector<MachineNetwork> networks;         ///< messages to other ranks, if known; at most one for each transport
  std::vector<std::vector<unsigned>> distance;  ///< between the cores of CPU workers

  /// Adds a memory. Returns its number.
  NodeIndex add_node(MachineNode node);
  /// Adds links with these figures in both directions.
  void add_links(NodeIndex a, NodeIndex b, double bytes_per_ns, std::int64_t latency_ns, LinkSource source);

  /// Adds a link, or replaces the one between its memories in its direction.
  void set_link(const MachineLink& link);
  /// Adds a network, or replaces the one of its transport.
  void set_network(MachineNetwork network);

  unsigned cpu_workers() const noexcept;  ///< number of CPU workers
  /// The memory to which replicas go when main memory is full.
  std::optional<NodeIndex> storage() const noexcept;
  /// Whether some memory has a budget.
  bool has_budgets() const noexcept;
  /// Whether workers differ in kind or memory, so that it matters which of them runs a task.
  bool is_mixed() const noexcept;
  /// The link from one memory to another; with assumed figures if none is known.
  MachineLink link(NodeIndex from, NodeIndex to) const noexcept;

  /// Throws UsageError that says what is wrong, such as a worker of a memory that does not exist.
  void check() const;
};

}  // namespace tandem::runtime
