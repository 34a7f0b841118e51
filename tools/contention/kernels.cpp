// tools/contention/kernels.cpp: the loops. Compiled with full optimisation, unlike the rest of the command.
#include "tools/contention/kernels.hpp"

#include <algorithm>
#include <array>
#include <utility>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace tandem::tools::contention {
namespace {

constexpr std::array<std::pair<std::string_view, Kernel>, 4> kernels{
    {{"primes", Kernel::primes}, {"memset", Kernel::memset}, {"copy", Kernel::copy}, {"triad", Kernel::triad}}};
constexpr unsigned primes_below = 12'000;  // a few milliseconds, about as long as an array takes

double count_primes() {
  unsigned count = 0;
  for (unsigned n = 2; n < primes_below; ++n) {
    bool prime = true;
    for (unsigned divisor = 2; divisor * divisor <= n && prime; ++divisor) prime = n % divisor != 0;
    count += prime;
  }
  return count;
}

double fill(const Arrays& x) {
#if defined(__SSE2__)
  const __m128i value = _mm_set1_epi8(7);
  auto* const to = reinterpret_cast<__m128i*>(x.a);
  for (std::size_t i = 0; i < x.count / 2; i += 4) {
    _mm_stream_si128(to + i, value);
    _mm_stream_si128(to + i + 1, value);
    _mm_stream_si128(to + i + 2, value);
    _mm_stream_si128(to + i + 3, value);
  }
  _mm_sfence();
#else
  std::fill_n(x.a, x.count, 7.0);
#endif
  return x.a[x.count / 2];
}

double copy(const Arrays& x) {
  for (std::size_t i = 0; i < x.count; ++i) x.b[i] = x.a[i];
  return x.b[x.count / 2];
}

double triad(const Arrays& x, unsigned cursor) {
  constexpr double s = 0.4;  // so that repeated values stay finite
  if (cursor == 1) {
    for (std::size_t i = 0; i < x.count; ++i) x.c[i] = x.a[i] + s * x.b[i];
  } else {
    for (std::size_t i = 0; i < x.count; ++i) {
      double value = x.b[i];
      for (unsigned k = 0; k < cursor; ++k) value = x.a[i] + s * value;
      x.c[i] = value;
    }
  }
  return x.c[x.count / 2];
}

}  // namespace

std::optional<Kernel> kernel_named(std::string_view name) {
  for (const auto& [known, kernel] : kernels)
    if (known == name) return kernel;
  return std::nullopt;
}

std::string name_of(Kernel kernel) { return std::string(kernels[static_cast<std::size_t>(kernel)].first); }

std::uint64_t bytes_of(Kernel kernel, std::size_t count) { return static_cast<std::uint64_t>(kernel) * count * sizeof(double); }

double run_once(Kernel kernel, const Arrays& arrays, unsigned cursor) {
  switch (kernel) {
    case Kernel::primes: return count_primes();
    case Kernel::memset: return fill(arrays);
    case Kernel::copy: return copy(arrays);
    case Kernel::triad: return triad(arrays, cursor);
  }
  return 0;
}

bool has_non_temporal_stores() noexcept {
#if defined(__SSE2__)
  return true;
#else
  return false;
#endif
}

}  // namespace tandem::tools::contention
