// tandem/base/topology.hpp: the cores that this process may use, their memory and caches, and binding to them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tandem/base/ids.hpp"
#include "tandem/base/result.hpp"

namespace tandem::base {

/// A core and its allowed hardware threads.
struct Core {
  CoreId id;                      ///< its index in Topology::cores()
  unsigned package = 0;           ///< the operating system's number of its package
  unsigned numa_node = 0;         ///< the operating system's number of the NUMA node nearest to it
  std::vector<unsigned> pus = {}; ///< the operating system's numbers of its hardware threads; never empty
};

struct NumaNode {
  unsigned os_index = 0;
  std::uint64_t bytes = 0;         ///< of local memory; 0 when the system does not say
  std::vector<CoreId> cores = {};  ///< the allowed cores that are local to it
};

/// A cache, data or unified.
struct Cache {
  unsigned level = 1;
  std::uint64_t bytes = 0;
  unsigned line_bytes = 0;
  std::vector<CoreId> cores = {};  ///< the allowed cores that share it
};

/// What this process may run on: the machine, less what a cgroup's cpuset forbids, less what the affinity mask of the
/// process forbids at the time of discovery. Cores are in hwloc's logical order, so that neighbours in the list are
/// neighbours in the machine. Invariant: at least one core. Immutable after construction, and so free to share between
/// threads.
class Topology {
 public:
  /// The machine of this process. Errors: unsupported, when hwloc cannot read it.
  static Result<Topology> discover();

  /// The machine, less what a cgroup's cpuset forbids: also cores that the affinity mask of the process forbids.
  /// Errors: unsupported.
  static Result<Topology> discover_host();

  /// Only these hardware threads of this topology, with cores in the order of the list. Errors: invalid_argument (one
  /// of them is missing, or the list is empty), exhausted.
  Result<Topology> restricted_to(std::span<const unsigned> pus) const;

  /// An imaginary machine, from a hwloc synthetic description such as "numa:2 l3:1 core:4 pu:1", for tests and for
  /// simulation. Binding to it does nothing. Errors: invalid_argument.
  static Result<Topology> synthetic(const std::string& description);

  Topology(Topology&&) noexcept;
  Topology& operator=(Topology&&) noexcept;
  ~Topology();

  std::span<const Core> cores() const noexcept;
  std::span<const NumaNode> numa_nodes() const noexcept;
  std::span<const Cache> caches() const noexcept;  ///< by level, then by first core
  std::size_t package_count() const noexcept;
  std::size_t pu_count() const noexcept;           ///< of all cores
  const std::string& cpu_model() const noexcept;   ///< the processor's own name; may be empty
  bool is_synthetic() const noexcept;

  /// The distance of two cores: the number of levels from the core up to the nearest ancestor that both share in the
  /// tree of machine, packages, groups and caches; 0 for one core. Only the order matters, not nanoseconds.
  unsigned distance(CoreId a, CoreId b) const;

  /// All other cores, nearest first; at equal distance the next ones in the list first, round its end, so that thieves
  /// start at different victims.
  std::vector<CoreId> nearest_first(CoreId from) const;

  /// Binds the calling thread to all allowed hardware threads of a core. Errors: unsupported, io (the system refused).
  Result<void> bind_this_thread(CoreId core) const;

  /// The index in numa_nodes() of the node nearest to a core.
  std::size_t numa_place_of(CoreId core) const;

  /// Puts absent pages of an area on the node at this index in numa_nodes() when they are touched. Errors: unsupported,
  /// io (the system refused).
  Result<void> bind_memory(void* memory, std::size_t bytes, std::size_t numa_place) const;

  /// The index in numa_nodes() of the node of an area: that of most of up to eight queried pages. Empty: not present,
  /// or not known. A system call for each page where there are several nodes, none where there is one.
  std::optional<std::size_t> numa_place_of(const void* memory, std::size_t bytes) const;

  /// The operating system's numbers of the hardware threads that the calling thread may run on. Empty when not known.
  std::vector<unsigned> binding_of_this_thread() const;

 private:
  friend class ScopedBinding;
  struct State;
  explicit Topology(std::unique_ptr<State> state) noexcept;
  static Result<Topology> discover(bool within_mask);
  std::unique_ptr<State> state_;
};

/// Binds the calling thread to a core, and restores its former binding at the end: for a thread of the application.
/// Constructed and destroyed on that thread; the topology outlives it.
class ScopedBinding {
 public:
  ScopedBinding(const Topology& topology, CoreId core);
  ~ScopedBinding();
  ScopedBinding(const ScopedBinding&) = delete;
  ScopedBinding& operator=(const ScopedBinding&) = delete;

  /// Success, or why the thread could not be bound.
  const Result<void>& result() const noexcept { return result_; }

 private:
  const Topology& topology_;
  std::vector<unsigned> former_;
  Result<void> result_;
};

}  // namespace tandem::base
