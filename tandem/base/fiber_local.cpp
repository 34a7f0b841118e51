// tandem/base/fiber_local.cpp: the list of variables, and what the compiler keeps by thread.
#include "tandem/base/fiber_local.hpp"

#include <cxxabi.h>

#include <algorithm>
#include <cerrno>

#include "tandem/base/assert.hpp"

namespace tandem::base {

namespace {

struct Variable {
  FiberLocal::Address address;
  std::size_t bytes;
};

/// All of them. Constant-initialised, so that objects of other files may add themselves before `main`.
struct List {
  std::array<Variable, 16> variables{};
  std::size_t count = 0, bytes = 0;
};
constinit List list;

// The exceptions that are handled now, and how many are not caught yet (Itanium ABI, 2.2.2).
const FiberLocal exceptions([]() noexcept -> void* { return abi::__cxa_get_globals(); },
                            sizeof(void*) + sizeof(unsigned));
const FiberLocal error_number([]() noexcept -> void* { return &errno; }, sizeof errno);

}  // namespace

FiberLocal::FiberLocal(Address address, std::size_t bytes) noexcept {
  TANDEM_ASSERT(list.count < list.variables.size() && list.bytes + bytes <= sizeof(Values));
  list.variables[list.count++] = {address, bytes};
  list.bytes += bytes;
}

void FiberLocal::exchange(Values& values) noexcept {
  std::byte* kept = values.data();
  for (std::size_t i = 0; i < list.count; ++i) {
    const Variable& one = list.variables[i];
    auto* const own = static_cast<std::byte*>(one.address());
    std::swap_ranges(own, own + one.bytes, kept);
    kept += one.bytes;
  }
}

}  // namespace tandem::base
