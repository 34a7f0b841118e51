// tandem/runtime/memory/memory_node.hpp: a place where replicas can be, and how bytes get from one place to another.
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

/// Which messages to and from other ranks may be read and written in a memory, instead of in main memory.
enum class MessageMemory : std::uint8_t {
  none,  ///< no messages: only copiers reach it
  host,  ///< all: it is memory of this process, which the processor reads and writes
  cuda,  ///< those over a network that knows the memory of CUDA devices; the processor must not touch it
};

/// A memory: main memory, a NUMA node, a device's. Any worker may allocate and release at any time.
class MemoryNode {
 public:
  virtual ~MemoryNode() = default;
  virtual std::string name() const = 0;  ///< in messages
  /// Memory for `bytes`, aligned to a cache line; null when the node has none left. No datum takes more than `kMostDataBytes`.
  virtual void* allocate(std::size_t bytes) = 0;
  /// Takes back what `allocate` gave for `bytes`.
  virtual void release(void* memory, std::size_t bytes) noexcept = 0;
  /// What memory for `bytes` takes of the node, in bytes: budgets count that. At least `bytes`, and always the same.
  virtual std::size_t footprint(std::size_t bytes) const noexcept { return bytes; }
  /// A copy from or to this memory has failed, since a device was lost: whether that was the device of this memory, for
  /// good. Any thread. For a copy between this memory and main memory it is not asked.
  virtual bool is_lost() noexcept { return false; }
  /// What is asked once, before any data exists.
  virtual MessageMemory messages() const noexcept { return MessageMemory::none; }
};

/// Where a transfer reads and writes. Leading dimensions are in elements.
struct CopyRequest {
  NodeIndex from_node = 0;     ///< 0: main memory
  NodeIndex to_node = 0;       ///< 0: main memory
  const void* from = nullptr;  ///< as the node has allocated it
  void* to = nullptr;          ///< as the node has allocated it
  std::size_t from_ld = 0;     ///< distance of columns there
  std::size_t to_ld = 0;       ///< distance of columns there
  Shape shape;                 ///< of the data
};

/// Whether a copy has been made, or will be.
enum class CopyState { done, posted };

/// Called when a copy has ended; null: the bytes have arrived, else why they have not.
using CopyEnded = std::function<void(const std::exception_ptr& failure)>;

/// Moves bytes between its node and main memory, and between nodes whose copiers are of the same class. `start` either
/// copies at once, or posts the copy and calls `ended` later, once, from any thread, with no lock held; nobody polls a
/// device for it. What it throws, or reports as a failure, fails the tasks that wait for the copy. A `DeviceError` that
/// says `lost` also takes the device from which, or to which, the copy was out of service; of a copy between two
/// devices, those whose memory says so (`MemoryNode::is_lost`). Called by workers, several at a time.
class Copier {
 public:
  virtual ~Copier() = default;
  /// Copies, or posts a copy.
  virtual CopyState start(const CopyRequest& request, CopyEnded ended) = 0;
  /// Ends, or gives up, what is posted: no call comes from a thread of the copier any more. Then `start` is not called again.
  virtual void finish() noexcept {}
};

/// Whether each of them copies between both their nodes: they are of the same class.
inline bool reach_each_other(const Copier& a, const Copier& b) noexcept { return typeid(a) == typeid(b); }

/// Memory of the process.
std::unique_ptr<MemoryNode> make_main_memory();
/// Copies with the processor, at once: for nodes whose memory it can address.
std::unique_ptr<Copier> make_processor_copier();

/// Copies a matrix column by column, or at once where both sides are packed.
void copy_matrix(const CopyRequest& request) noexcept;

}  // namespace tandem::runtime
