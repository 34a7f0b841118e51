// tandem/analysis/verdict/worker_kinds.hpp: the kind of each worker of a run.
#pragma once

#include <cstdint>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "tandem/analysis/history/history.hpp"

namespace tandem::analysis {

/// The kinds of worker of a run, numbered in the order of their names. The names are those of `history`, which must
/// outlive this.
class WorkerKinds {
 public:
  explicit WorkerKinds(const History& history);

  const std::vector<std::string_view>& names() const noexcept { return names_; }
  bool are_several() const noexcept { return names_.size() > 1; }
  /// The kind of a worker; 0 for an unknown one. O(1) where all workers are of one kind.
  std::uint32_t of(std::uint32_t rank, std::uint16_t worker) const noexcept {
    if (!are_several()) return 0;
    const auto found = numbers_.find({rank, worker});
    return found == numbers_.end() ? 0 : found->second;
  }

 private:
  std::vector<std::string_view> names_;
  std::map<std::pair<std::uint32_t, std::uint16_t>, std::uint32_t> numbers_;  ///< by rank and worker
};

}  // namespace tandem::analysis
