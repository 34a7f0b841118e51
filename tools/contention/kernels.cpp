// tools/contention/kernels.cpp: the loops. Compiled with full optimisation, unlike the rest of the command.
#include "tools/contention/kernels.hpp"

#include <algorithm>
#include <array>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace tandem::tools::contention {
namespace {

struct KernelFacts {
  std::string_view name;
  Kernel kernel;
  unsigned arrays;  ///< that an iteration goes through
};
constexpr std::array<KernelFacts, 5> kernels{{{"primes", Kernel::primes, 0},
                                              {"memset", Kernel::memset, 1},
                                              {"copy", Kernel::copy, 2},
                                              {"triad", Kernel::triad, 3},
                                              {"fma", Kernel::fma, 0}}};
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

/// 64 independent sums, which is enough for two units of 512 bits with a latency of four cycles.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_THREAD__) && \
    !defined(__SANITIZE_ADDRESS__)
__attribute__((target_clones("avx512f", "arch=haswell", "default")))
#endif
double multiply_and_add() {
  constexpr unsigned sums = 64;
  double sum[sums];
  for (unsigned i = 0; i < sums; ++i) sum[i] = i;
  for (unsigned step = 0; step < 200'000; ++step)
    for (unsigned i = 0; i < sums; ++i) sum[i] = sum[i] * 0.999 + 1.0;
  double all = 0;
  for (unsigned i = 0; i < sums; ++i) all += sum[i];
  return all;
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
  for (const KernelFacts& known : kernels)
    if (known.name == name) return known.kernel;
  return std::nullopt;
}

std::string name_of(Kernel kernel) { return std::string(kernels[static_cast<std::size_t>(kernel)].name); }

std::uint64_t bytes_of(Kernel kernel, std::size_t count) {
  return std::uint64_t{kernels[static_cast<std::size_t>(kernel)].arrays} * count * sizeof(double);
}

double run_once(Kernel kernel, const Arrays& arrays, unsigned cursor) {
  switch (kernel) {
    case Kernel::primes: return count_primes();
    case Kernel::memset: return fill(arrays);
    case Kernel::copy: return copy(arrays);
    case Kernel::triad: return triad(arrays, cursor);
    case Kernel::fma: return multiply_and_add();
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
