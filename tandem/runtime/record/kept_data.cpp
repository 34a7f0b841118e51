// tandem/runtime/record/kept_data.cpp: references to handles, and their owners.
#include "tandem/runtime/record/kept_data.hpp"

#include <fmt/format.h>

#include "tandem/runtime/submit/data_registry.hpp"
#include "tandem/base/exceptions.hpp"

namespace tandem::runtime {

KeptData::~KeptData() {
  while (!handles_.empty()) drop(**handles_.begin());
}

void KeptData::keep(Handle& handle) {
  if (!handles_.insert(&handle).second) return;
  handle.references.fetch_add(1, std::memory_order_relaxed);
  if (!handle.user_memory) handle.owners.fetch_add(1, std::memory_order_relaxed);
}

void KeptData::drop(Handle& handle) noexcept {
  handles_.erase(&handle);
  if (!handle.user_memory) DataRegistry::drop_owner(&handle);
  handle.drop_reference();
}

void KeptData::check(const DataRegistry& registry) const {
  for (const Handle* handle : handles_)
    if (!registry.owns(*handle))
      throw UsageError(
          fmt::format("a recorded graph uses {} after it was unregistered; rebind it to other data", handle->described()));
}

}  // namespace tandem::runtime
