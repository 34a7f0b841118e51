// tandem/api/page_lock.hpp: memory of the program from which CUDA devices copy fast.
#pragma once

#include <cstddef>
#include <memory>

#include "tandem/api/runtime.hpp"

namespace tandem {

/// Locks the pages of some memory while it lives, if the runtime has CUDA devices. Copies between them and that memory then go at full speed: the
/// driver copies other memory twice. Locking takes about as long as writing the memory, so do it once for data that comes and goes.
/// It outlives the data there, and ends before the memory does. Throws StartError when pages cannot be locked.
class PageLock {
 public:
  /// Of `bytes` bytes at `memory`. No two locks share a page.
  PageLock(const Runtime& rt, void* memory, std::size_t bytes);

 private:
  std::shared_ptr<void> lock_;
};

}  // namespace tandem
