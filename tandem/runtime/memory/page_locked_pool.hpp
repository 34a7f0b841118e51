// tandem/runtime/memory/page_locked_pool.hpp: main memory whose pages stay where they are, so that devices copy from and to it by themselves.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <unordered_set>
#include <vector>

#include "tandem/base/log.hpp"
#include "tandem/runtime/memory/memory_node.hpp"
#include "tandem/runtime/memory/page_locked_report.hpp"
#include "tandem/runtime/memory/small_blocks.hpp"

namespace tandem::runtime {

/// A driver that gives out page-locked memory. Thread-safe.
class PageLocker {
 public:
  virtual ~PageLocker() = default;
  /// Whole pages; null: it refuses, and `why` says why.
  virtual void* allocate(std::size_t bytes, std::string& why) = 0;
  virtual void release(void* memory) noexcept = 0;
};

/// Page-locked memory up to a bound. Asking the driver costs some hundred microseconds, so what comes back is kept: small blocks are cut from chunks,
/// which stay until the end (`SmallBlocks`); large ones are kept by size, and go back to the driver when the bound leaves no room for another size.
///
/// Bytes that the driver has given never exceed the bound, and all of them go back to it at the end. Once the driver has refused, it is not asked
/// again, and the log has one warning; what is there is used further.
///
/// Threads: any. One mutex, which is held while the driver is asked.
class PageLockedPool {
 public:
  /// The log outlives this.
  PageLockedPool(std::unique_ptr<PageLocker> locker, std::size_t bound, base::Log& log);
  ~PageLockedPool();
  PageLockedPool(const PageLockedPool&) = delete;
  PageLockedPool& operator=(const PageLockedPool&) = delete;

  /// Memory for `bytes`, aligned to a cache line; null: within the bound there is none.
  void* allocate(std::size_t bytes);
  /// Takes back what `allocate` gave for `bytes`. False, and nothing has changed: it did not.
  bool release(void* memory, std::size_t bytes) noexcept;
  /// So far.
  PageLockedReport report() const;

 private:
  void* ask(std::size_t bytes);
  void* take_large(std::size_t size);
  void make_room(std::size_t size) noexcept;

  const std::unique_ptr<PageLocker> locker_;
  base::Log& log_;
  mutable std::mutex mutex_;  ///< guards all below
  bool refused_ = false;
  SmallBlocks small_;
  std::set<void*> chunks_;                          ///< of small blocks
  std::unordered_set<void*> large_;                 ///< that somebody has
  std::map<std::size_t, std::vector<void*>> kept_;  ///< large ones that nobody has, by size
  PageLockedReport report_;
};

/// Main memory from `pool`, and what the pool has no room for from the system.
std::unique_ptr<MemoryNode> make_page_locked_memory(std::shared_ptr<PageLockedPool> pool);

}  // namespace tandem::runtime
