// tandem/api/data.cpp: calls of `Data` to the runtime that it was registered with.
#include "tandem/api/data.hpp"

#include "tandem/runtime/submit/data_registry.hpp"
#include "tandem/base/exceptions.hpp"

namespace tandem::internal {

void drop_owner(runtime::Handle* handle) noexcept { runtime::DataRegistry::drop_owner(handle); }

void check_registered(runtime::Handle* handle, const char* action) {
  if (named(handle, action).registry == nullptr)
    throw UsageError(std::string("cannot ") + action + " " + handle->described() + ": it was unregistered before");
}

void unregister(runtime::Handle* handle) {
  check_registered(handle, "unregister");
  about_to_use(handle, true);
  handle->registry.load()->unregister(*handle);
}

}  // namespace tandem::internal
