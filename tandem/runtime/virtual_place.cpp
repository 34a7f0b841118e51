// tandem/runtime/virtual_place.cpp: each fiber has its own place.
#include "tandem/runtime/virtual_place.hpp"

#include "tandem/base/fiber_local.hpp"

namespace tandem::runtime {

const base::FiberLocal VirtualPlace::own_place_([]() noexcept -> void* { return &current_; }, sizeof current_);

}  // namespace tandem::runtime
