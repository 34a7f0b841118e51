// tandem/runtime/worker/timed_copy.hpp: one timed copy from a memory to another.
#pragma once

#include <cstddef>
#include <optional>

#include "tandem/clock/clock.hpp"
#include "tandem/runtime/memory/memory_node.hpp"

namespace tandem::runtime {

/// Memory in a node; the node outlives it.
class Block {
 public:
  Block(MemoryNode& node, std::size_t bytes) : node_(node), bytes_(bytes), memory_(node.allocate(bytes)) {}
  ~Block() {
    if (memory_ != nullptr) node_.release(memory_, bytes_);
  }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  void* memory() const noexcept { return memory_; }  ///< null: allocation failed

 private:
  MemoryNode& node_;
  std::size_t bytes_;
  void* memory_;
};

/// Copies `bytes` bytes from `request.from` to `request.to`, and waits for the end. Returns the duration in ns; none:
/// the copy has failed. Any thread.
std::optional<double> timed_copy(Copier& copier, CopyRequest request, std::size_t bytes, const clock::Clock& clock);

}  // namespace tandem::runtime
