// tools/contention/kernels.hpp: kernels of the computing cores while the network is measured, from no use of memory to
// nothing else.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tandem::tools::contention {

/// What one core does repeatedly.
enum class Kernel {
  primes,  ///< counts prime numbers by division: no memory
  memset,  ///< writes an array by non-temporal stores, past the caches (section 6.3.1)
  copy,    ///< STREAM: b[i] = a[i]
  triad,   ///< STREAM: c[i] = a[i] + s b[i], each element computed `cursor` times (section 5.3.5)
  fma,     ///< multiplies and adds in the widest vector registers: no memory, and most heat (section 5.2)
};

std::optional<Kernel> kernel_named(std::string_view name);
std::string name_of(Kernel kernel);

/// Memory of one core: three arrays, of which a kernel uses one, two or three.
struct Arrays {
  double* a = nullptr;
  double* b = nullptr;
  double* c = nullptr;
  std::size_t count = 0;  ///< of elements, a multiple of 8; the arrays are aligned to cache lines
};

/// Bytes that one iteration moves, counted as STREAM counts: without what caches fetch before a write.
std::uint64_t bytes_of(Kernel kernel, std::size_t count);
/// Runs one iteration. Returns a value that depends on the result.
double run_once(Kernel kernel, const Arrays& arrays, unsigned cursor);
/// Whether `memset` passes the caches on this processor.
bool has_non_temporal_stores() noexcept;

}  // namespace tandem::tools::contention
