// tools/contention/team.hpp: threads that compute, each on a core of its own, for a given time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "tandem/base/result.hpp"
#include "tandem/base/topology.hpp"
#include "tools/contention/kernels.hpp"

namespace tandem::tools::contention {

/// Time of a clock that never goes back.
std::int64_t steady_now_ns() noexcept;

/// Memory on one NUMA node where the system allows that. Its pages are touched when it is made.
class NodeMemory {
 public:
  /// `numa_place` empty: the system chooses the node. Errors: exhausted, with the size.
  static base::Result<NodeMemory> create(const base::Topology& topology, std::size_t bytes,
                                         std::optional<std::size_t> numa_place);
  NodeMemory(NodeMemory&& other) noexcept;
  NodeMemory& operator=(NodeMemory&& other) noexcept;
  ~NodeMemory();

  std::byte* data() const noexcept { return data_; }
  std::size_t bytes() const noexcept { return bytes_; }

 private:
  NodeMemory() = default;
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

/// How often something was done in steady state: between the end of its first and the beginning of its last repetition.
struct SteadyRate {
  std::uint64_t count = 0;
  double seconds = 0;
  double per_second() const noexcept { return seconds > 0 ? static_cast<double>(count) / seconds : 0; }
};
/// The rate from the end times of repetitions, without the first and the last one. Empty: there are less than four.
std::optional<SteadyRate> steady_rate(std::span<const std::int64_t> ends_ns);
inline constexpr std::size_t least_repetitions = 4;

/// The result of all computing cores together.
struct TeamRate {
  double per_second = 0;  ///< iterations of all cores per second of processor time
  double cpu_share = 1;   ///< share of its time that the least served core got; below 1 where other programs run
};

/// Arrays of all computing cores on one node.
class Team {
 public:
  struct Options {
    std::vector<base::CoreId> cores;        ///< in the order in which they join
    std::optional<std::size_t> numa_place;  ///< of the arrays
    std::size_t array_bytes = 0;
    Kernel kernel = Kernel::memset;
    unsigned cursor = 1;
  };
  /// Makes a team. Errors: exhausted.
  static base::Result<Team> create(const base::Topology& topology, Options options);

  /// Runs the kernel on the first `count` cores while `meanwhile` runs in the calling thread, and for `seconds` at
  /// least.
  template <class Meanwhile>
  TeamRate run(unsigned count, double seconds, Meanwhile meanwhile) {
    Work work(*this, count, seconds);
    meanwhile();
    return work.finish();
  }

  const Options& options() const noexcept { return options_; }

 private:
  class Work {
   public:
    Work(const Team& team, unsigned count, double seconds);
    ~Work();
    TeamRate finish();

   private:
    struct State;
    std::unique_ptr<State> state_;
  };
  explicit Team(const base::Topology& topology) : topology_(&topology) {}

  const base::Topology* topology_;
  Options options_;
  std::vector<NodeMemory> memory_;
};

}  // namespace tandem::tools::contention
