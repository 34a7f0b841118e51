// tandem/api/runtime_shared.hpp: what the sources of the facade share.
#pragma once

#include <string>

#include "tandem/api/codelet.hpp"
#include "tandem/base/exceptions.hpp"
#include "tandem/dist/place.hpp"
#include "tandem/runtime/data/handle.hpp"

namespace tandem {

/// The handle of a Data object. Throws UsageError if it is empty: "cannot ACTION an empty Data object".
inline runtime::Handle& named(runtime::Handle* handle, const char* action) {
  if (handle == nullptr)
    throw UsageError(std::string("cannot ") + action + " an empty Data object; register data first");
  return *handle;
}

/// Whether the data has an owner, and is not a copy for each rank.
inline bool is_owned(runtime::Handle& handle) noexcept { return dist::place_of(handle).owner != dist::kEverywhere; }

struct NoWork {
  void operator()() const {}
};
using NoWorkCode = internal::TaskCode<internal::TypedCore<NoWork>>;

}  // namespace tandem
