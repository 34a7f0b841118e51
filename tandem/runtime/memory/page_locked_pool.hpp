// tandem/runtime/memory/page_locked_pool.hpp: main memory with locked pages, which devices read and write without the
// processor.
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

/// A driver that allocates page-locked memory. Thread-safe.
class PageLocker {
 public:
  virtual ~PageLocker() = default;
  /// Allocates whole pages; null: the driver refuses, and `why` says why.
  virtual void* allocate(std::size_t bytes, std::string& why) = 0;
  virtual void release(void* memory) noexcept = 0;
};

/// Page-locked memory up to a bound. A call of the driver costs some hundred microseconds, so released blocks are kept:
/// small blocks are cut from chunks, which stay until the end (`SmallBlocks`); large ones are kept by size, and return
/// to the driver when the bound leaves no room for another size.
///
/// Bytes from the driver never exceed the bound, and all of them return to it at the end. Once the driver has refused,
/// it is not called again, and the log gets one warning; blocks that exist are used further.
///
/// Threads: any. One mutex, held while the driver is called.
class PageLockedPool {
 public:
  /// The log outlives this.
  PageLockedPool(std::unique_ptr<PageLocker> locker, std::size_t bound, base::Log& log);
  ~PageLockedPool();
  PageLockedPool(const PageLockedPool&) = delete;
  PageLockedPool& operator=(const PageLockedPool&) = delete;

  /// Allocates memory for `bytes`, aligned to a cache line; null: the bound leaves none.
  void* allocate(std::size_t bytes);
  /// Releases memory that `allocate` gave for `bytes`. False: the pool did not give it, and nothing has changed.
  bool release(void* memory, std::size_t bytes) noexcept;
  /// Counts so far.
  PageLockedReport report() const;

 private:
  void* ask(std::size_t bytes);
  void* take_large(std::size_t size);
  void make_room(std::size_t size) noexcept;

  const std::unique_ptr<PageLocker> locker_;
  base::Log& log_;
  mutable std::mutex mutex_;  ///< guards all members below
  bool refused_ = false;
  SmallBlocks small_;
  std::set<void*> chunks_;                          ///< chunks of small blocks
  std::unordered_set<void*> large_;                 ///< large blocks in use
  std::map<std::size_t, std::vector<void*>> kept_;  ///< free large blocks, by size
  PageLockedReport report_;
};

/// Makes main memory from `pool`; when the pool has no room, from the system.
std::unique_ptr<MemoryNode> make_page_locked_memory(std::shared_ptr<PageLockedPool> pool);

}  // namespace tandem::runtime
