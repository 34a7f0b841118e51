// tandem/runtime/memory/memory_node.hpp: a memory for replicas, and copies between memories.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <typeinfo>

#include "tandem/runtime/data/handle.hpp"

namespace tandem::runtime {

/// Which messages to and from other ranks may read and write a memory, instead of main memory.
enum class MessageMemory : std::uint8_t {
  none,  ///< no messages: only copiers reach it
  host,  ///< all messages: it is memory of this process, which the processor reads and writes
  cuda,  ///< messages over a network that knows the memory of CUDA devices; the processor must not touch it
};

/// A memory: main memory, a NUMA node, a device's. Any worker may allocate and release at any time.
class MemoryNode {
 public:
  virtual ~MemoryNode() = default;
  virtual std::string name() const = 0;  ///< in messages
  /// Allocates memory for `bytes`, aligned to a cache line; null: the node has none left. `bytes` is at most
  /// `kMostDataBytes`.
  virtual void* allocate(std::size_t bytes) = 0;
  /// Releases memory that `allocate` gave for `bytes`.
  virtual void release(void* memory, std::size_t bytes) noexcept = 0;
  /// Bytes of the node that memory for `bytes` takes, for budgets. At least `bytes`, and always the same.
  virtual std::size_t footprint(std::size_t bytes) const noexcept { return bytes; }
  /// Called when a copy between this memory and another device's has failed because a device was lost: whether it was
  /// the device of this memory, for good. Any thread. Not called for a copy between this memory and main memory.
  virtual bool is_lost() noexcept { return false; }
  /// Which messages may use this memory. Called once, before any data exists.
  virtual MessageMemory messages() const noexcept { return MessageMemory::none; }
};

/// Source and target of a transfer. Leading dimensions are in elements.
struct CopyRequest {
  NodeIndex from_node = 0;     ///< 0: main memory
  NodeIndex to_node = 0;       ///< 0: main memory
  const void* from = nullptr;  ///< as the node has allocated it
  void* to = nullptr;          ///< as the node has allocated it
  std::size_t from_ld = 0;     ///< distance of columns at the source
  std::size_t to_ld = 0;       ///< distance of columns at the target
  Shape shape;                 ///< of the data
};

/// State of a copy after `start`: ended, or under way.
enum class CopyState { done, posted };

/// Called when a copy has ended; null: the bytes have arrived, else the failure.
using CopyEnded = std::function<void(const std::exception_ptr& failure)>;

/// Moves bytes between its node and main memory, and between nodes whose copiers are of the same class. `start` copies
/// at once, or posts the copy and calls `ended` later, once, from any thread, with no lock held; no worker polls a
/// device for it. A failure that it throws or reports fails the tasks that wait for the copy. A `DeviceError` that says
/// `lost` also takes the copy's device out of service; for a copy between two devices, those whose memory reports it
/// (`MemoryNode::is_lost`). Called by workers, several at a time.
class Copier {
 public:
  virtual ~Copier() = default;
  /// Makes a copy, or posts it.
  virtual CopyState start(const CopyRequest& request, CopyEnded ended) = 0;
  /// Ends or abandons posted copies: afterwards no thread of the copier makes a call, and `start` is not called again.
  virtual void finish() noexcept {}
};

/// Whether each of the two copies between both their nodes: they are of the same class.
inline bool reach_each_other(const Copier& a, const Copier& b) noexcept { return typeid(a) == typeid(b); }

/// Makes main memory, the memory of the process.
std::unique_ptr<MemoryNode> make_main_memory();
/// Makes a copier that copies with the processor, at once, for nodes that the processor addresses.
std::unique_ptr<Copier> make_processor_copier();

/// Copies a matrix column by column, or at once where both sides are packed.
void copy_matrix(const CopyRequest& request) noexcept;

}  // namespace tandem::runtime
