// tandem/api/page_lock.hpp: locks memory of the program, so that CUDA devices copy from it fast.
#pragma once

#include <cstddef>
#include <memory>

#include "tandem/api/runtime.hpp"

namespace tandem {

/// Locks the pages of some memory while it lives, if the runtime has CUDA devices. Copies between them and that memory
/// then run at full speed, since the driver copies other memory twice. Locking takes about as long as writing the
/// memory, so lock memory that is used repeatedly once. The lock outlives the data there, and ends before the memory
/// does. Throws StartError when pages cannot be locked.
class PageLock {
 public:
  /// Locks `bytes` bytes at `memory`. No two locks share a page.
  PageLock(const Runtime& rt, void* memory, std::size_t bytes);

 private:
  std::shared_ptr<void> lock_;
};

}  // namespace tandem
