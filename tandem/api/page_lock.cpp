// tandem/api/page_lock.cpp: locks pages by the module of CUDA.
#include "tandem/api/page_lock.hpp"

#include "tandem/base/config.hpp"
#include "tandem/base/exceptions.hpp"
#include "tandem/runtime/device/cuda/load_cuda.hpp"

namespace tandem {

PageLock::PageLock(const Runtime& rt, void* memory, std::size_t bytes) {
  if (rt.config().get_int("cuda") == 0 || bytes == 0) return;
  const auto module = runtime::load_cuda();
  if (!module.ok()) throw StartError(module.error().message);
  auto lock = module.value()->lock(rt.config().get_string("cuda.libraries"), memory, bytes);
  if (!lock.ok()) throw StartError(lock.error().message);
  lock_ = std::move(lock).value();
}

}  // namespace tandem
