// tandem/runtime/record/kept_data.cpp: references to handles, and their owners.
#include "tandem/runtime/record/kept_data.hpp"

#include <fmt/format.h>

#include "tandem/runtime/submit/data_registry.hpp"
#include "tandem/base/exceptions.hpp"

namespace tandem::runtime {

KeptData::~KeptData() {
  while (!handles_.empty()) drop(**handles_.begin());
  for (Handle* const handle : replaced_) handle->drop_reference();
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

void KeptData::replace(Handle& from, Handle& to, DataRegistry& registry) {
  replaced_.push_back(&from);
  from.references.fetch_add(1, std::memory_order_relaxed);
  keep(to);
  drop(from);
  if (replaced_.size() <= most_replaced_) return;
  forget_replaced(registry);
  most_replaced_ = 8 + 2 * replaced_.size();  // so that each call looks at two, amortised
}

void KeptData::forget_recorded_tasks(DataRegistry& registry, bool all) noexcept {
  for (Handle* const handle : handles_) registry.forget_recorded_tasks(*handle, all);
  forget_replaced(registry, all);
}

void KeptData::forget_replaced(DataRegistry& registry, bool all) noexcept {
  std::erase_if(replaced_, [&](Handle* handle) {
    if (registry.forget_recorded_tasks(*handle, all)) return false;
    handle->drop_reference();
    return true;
  });
}

void KeptData::check(const DataRegistry& registry) const {
  for (const Handle* handle : handles_)
    if (!registry.owns(*handle))
      throw UsageError(fmt::format("a recorded graph uses {} after it was unregistered; rebind it to other data",
                                   handle->described()));
}

}  // namespace tandem::runtime
