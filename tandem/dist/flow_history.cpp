// tandem/dist/flow_history.cpp: checkpoints, and sketches for other ranks.
#include "tandem/dist/flow_history.hpp"

#include <algorithm>

#include "tandem/dist/flow_sketch.hpp"

namespace tandem::dist {

/// Adds a checkpoint at a multiple of the stride. When there are many, every second one stays, so those of all ranks
/// stay comparable.
void FlowHistory::add_checkpoint(std::uint64_t position) {
  if (position % stride_ == 0) checkpoints_.emplace_back(position, digest_);
  if (checkpoints_.size() > kCheckpoints) {
    stride_ *= 2;
    std::erase_if(checkpoints_, [this](const auto& known) { return known.first % stride_ != 0; });
  }
  next_checkpoint_ = (position / stride_ + 1) * stride_;
}

void FlowHistory::restart(std::uint64_t position) {
  digest_ = 0;
  start_ = position;
  stride_ = kKept;
  next_checkpoint_ = (position / stride_ + 1) * stride_;
  checkpoints_.clear();
}

FlowSketch FlowHistory::sketch(std::uint64_t position) const {
  FlowSketch sketch;
  sketch.start = start_;
  sketch.position = position;
  sketch.checkpoints = checkpoints_;
  const std::uint64_t known = std::min<std::uint64_t>(position - start_, kKept);
  for (std::uint64_t at = position - known + 1; at <= position; ++at) {
    const Entry& entry = entries_[at % kKept];
    sketch.digests.push_back(entry.digest);
    FlowOperation operation{.kind = entry.kind, .executor = entry.executor, .file = entry.file != nullptr ? entry.file : "",
                            .line = entry.line, .uses = entry.uses, .accesses = {}};
    for (std::size_t i = 0; i < std::min<std::size_t>(entry.uses, kUsesKept); ++i)
      operation.accesses.emplace_back(static_cast<AccessMode>(entry.kept[i] % 8), entry.kept[i] / 8);
    sketch.operations.push_back(std::move(operation));
  }
  return sketch;
}

}  // namespace tandem::dist
