// tandem/comm/bootstrap/job_roll.hpp: which ranks of a job have joined, published and ended.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace tandem::comm::internal {

/// What a rendezvous knows of its job's ranks, kept in counts so that each question and each event costs the logarithm
/// of the number of ranks at most, times the few generations that are alive: the server asks after every round.
///
/// The n-th program of a rank that joins belongs to generation n - 1. A value. Not thread-safe.
class JobRoll {
 public:
  explicit JobRoll(std::uint32_t size) : joined_(size, 0), ranks_by_joins_{{0, size}} {}

  /// A program of the rank joins. Returns its generation.
  std::uint32_t join(std::uint32_t rank);
  /// The connection of a member of that generation has ended.
  void leave(std::uint32_t rank, std::uint32_t generation);
  /// A member publishes its address, once.
  void publish(std::uint32_t rank, std::uint32_t generation);
  /// The rank's process has ended. The first reason stays.
  void end(std::uint32_t rank, std::string reason);

  /// Why the rank will not publish any more; null while its process runs.
  const std::string* reason_of_end(std::uint32_t rank) const;
  /// A rank that has ended without joining a generation that has members, or without publishing in one whose members
  /// have published: they may wait for it for ever.
  std::optional<std::uint32_t> never_came() const;
  /// The first generation that a rank may still be in or join; 0 while some rank has not joined.
  std::uint32_t oldest_generation() const;
  /// Forgets older generations, whose entries no rank asks for any more.
  void forget_before(std::uint32_t generation);

  /// How many entries all calls of `never_came` have looked at, for tests of its cost.
  std::uint64_t steps() const noexcept { return steps_; }

 private:
  struct Generation {
    std::uint32_t members = 0;            ///< ranks connected now
    std::uint32_t published_members = 0;  ///< connected ranks that have published
    std::uint32_t ended_unpublished = 0;  ///< ended ranks that have no address here
    std::set<std::uint32_t> published;    ///< ranks, also those that have left
  };
  Generation& at(std::uint32_t number);
  bool is_missing(std::uint32_t rank, std::uint32_t number, const Generation& generation) const;

  std::vector<std::uint32_t> joined_;                          ///< how often, by rank
  std::map<std::uint32_t, std::uint32_t> ranks_by_joins_;      ///< how many ranks have joined so often
  std::map<std::uint32_t, std::uint32_t> ended_by_joins_;      ///< how many of them have ended
  std::map<std::uint32_t, std::string> ended_;                 ///< reasons, by rank
  std::map<std::uint32_t, Generation> generations_;
  mutable std::uint64_t steps_ = 0;
};

}  // namespace tandem::comm::internal
