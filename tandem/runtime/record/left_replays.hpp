// tandem/runtime/record/left_replays.hpp: replays that outlive their graph, because the wait for them failed.
#pragma once

#include <memory>
#include <vector>

#include "tandem/runtime/record/graph.hpp"
#include "tandem/runtime/record/kept_data.hpp"

namespace tandem::runtime {

/// The instances of graphs that were destroyed while the wait for their replays failed (`StuckError`). Their tasks may
/// still run, so their memory and their data stay until they have ended. Used by the submitting thread.
class LeftReplays {
 public:
  explicit LeftReplays(RuntimeCore& runtime) : runtime_(runtime) {}
  LeftReplays(const LeftReplays&) = delete;
  LeftReplays& operator=(const LeftReplays&) = delete;

  void keep(std::vector<std::unique_ptr<Instance>> instances, KeptData data);
  /// Frees the instances that have ended.
  void free_ended() noexcept { free(false); }
  /// Frees all instances; no worker may run any more.
  void free_all() noexcept { free(true); }
  std::size_t size() const noexcept { return left_.size(); }

 private:
  struct Left {
    std::vector<std::unique_ptr<Instance>> instances;
    KeptData data;
  };
  void free(bool all) noexcept;

  RuntimeCore& runtime_;
  std::vector<std::unique_ptr<Left>> left_;  ///< one entry per graph
};

}  // namespace tandem::runtime
