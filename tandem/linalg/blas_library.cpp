// tandem/linalg/blas_library.cpp: asks OpenBLAS for its name and kernels, and compares results of the BLAS with plain
// loops.
#include "tandem/linalg/blas_library.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <limits>

#include <fmt/core.h>

#include "tandem/base/splitmix64.hpp"
#include "tandem/linalg/kernels/blas.hpp"

namespace tandem::linalg {
namespace {

const char* ask_library(const char* function) noexcept {
  void* const symbol = dlsym(RTLD_DEFAULT, function);
  const char* const answer = symbol == nullptr ? nullptr : reinterpret_cast<const char* (*)()>(symbol)();
  return answer == nullptr ? "" : answer;
}

/// The first two words of "OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH ...", without the spaces around.
std::string two_words(const std::string& text) {
  return text.substr(0, text.find(' ', text.find(' ') + 1));
}

/// A column-major matrix of random numbers in [-1, 1).
template <class T>
struct Random {
  std::size_t rows;
  std::vector<T> values;

  Random(std::size_t n, std::size_t columns, std::uint64_t seed) : rows(n), values(n * columns) {
    for (T& value : values) value = static_cast<T>(static_cast<double>(base::splitmix64(seed) >> 11) * 0x1p-52 - 1);
  }

  T at(std::size_t i, std::size_t j) const { return values[i + j * rows]; }
};

/// Whether a sum of `terms` products of numbers below 1 is the expected one, but for roundings.
template <class T>
bool agrees(T value, double expected, std::size_t terms) {
  return std::abs(static_cast<double>(value) - expected) <=
         4 * static_cast<double>(terms) * std::numeric_limits<T>::epsilon();
}

template <class T>
void update_symmetric(int n, int k, const T* a, T* c) {
  if constexpr (sizeof(T) == sizeof(double))
    cblas_dsyrk(CblasColMajor, CblasLower, CblasNoTrans, n, k, 1, a, n, 0, c, n);
  else cblas_ssyrk(CblasColMajor, CblasLower, CblasNoTrans, n, k, 1, a, n, 0, c, n);
}

template <class T>
void solve_lower(int n, int columns, const T* l, T* b) {
  if constexpr (sizeof(T) == sizeof(double))
    cblas_dtrsm(CblasColMajor, CblasLeft, CblasLower, CblasNoTrans, CblasUnit, n, columns, 1, l, n, b, n);
  else cblas_strsm(CblasColMajor, CblasLeft, CblasLower, CblasNoTrans, CblasUnit, n, columns, 1, l, n, b, n);
}

/// Checks C = A B and C = A A^T. The orders are no multiples of vectors, so that the kernels' edges are tested as well.
template <class T>
bool multiplies_rightly() {
  constexpr std::size_t m = 163, n = 131, k = 179;
  const Random<T> a(m, k, 1), b(k, n, 2);
  std::vector<T> product(m * n), square(m * m);
  internal::blas_gemm(CblasNoTrans, CblasNoTrans, m, n, k, T(1), a.values.data(), m, b.values.data(), k, T(0),
                      product.data(), m);
  update_symmetric<T>(m, k, a.values.data(), square.data());
  for (std::size_t j = 0; j < m; ++j)
    for (std::size_t i = 0; i < m; ++i) {
      double in_product = 0, in_square = 0;
      for (std::size_t l = 0; l < k; ++l) {
        if (j < n) in_product += static_cast<double>(a.at(i, l)) * static_cast<double>(b.at(l, j));
        in_square += static_cast<double>(a.at(i, l)) * static_cast<double>(a.at(j, l));
      }
      if (j < n && !agrees(product[i + j * m], in_product, k)) return false;
      if (i >= j && !agrees(square[i + j * m], in_square, k)) return false;
    }
  return true;
}

/// Checks L X = B, with a unit triangle of small numbers, whose solution stays small: L X gives B again.
template <class T>
bool solves_rightly() {
  constexpr std::size_t n = 163, columns = 67;
  Random<T> l(n, n, 3);
  for (T& value : l.values) value /= static_cast<T>(n);
  const Random<T> b(n, columns, 4);
  std::vector<T> x = b.values;
  solve_lower<T>(n, columns, l.values.data(), x.data());
  for (std::size_t j = 0; j < columns; ++j)
    for (std::size_t i = 0; i < n; ++i) {
      double sum = static_cast<double>(x[i + j * n]);
      for (std::size_t k = 0; k < i; ++k) sum += static_cast<double>(l.at(i, k)) * static_cast<double>(x[k + j * n]);
      if (!agrees(b.at(i, j), sum, n)) return false;
    }
  return true;
}

}  // namespace

const BlasLibrary& blas_library() {
  static const BlasLibrary library{two_words(ask_library("openblas_get_config")), ask_library("openblas_get_corename")};
  return library;
}

Vectors processor_vectors() noexcept {
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl"))
    return Vectors::avx512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return Vectors::avx2;
  return __builtin_cpu_supports("avx") ? Vectors::avx : Vectors::sse;
}

Vectors kernel_vectors(std::string_view kernels) noexcept {
  constexpr std::string_view with_sse[] = {
      "Katmai",  "Coppermine", "Northwood", "Prescott",     "Banias",    "Core2",  "Penryn", "Dunnington",
      "Nehalem", "Athlon",     "Opteron",   "Opteron_SSE3", "Barcelona", "Bobcat", "Atom",   "Nano"};
  constexpr std::string_view with_avx[] = {"Sandybridge", "Bulldozer", "Piledriver", "Steamroller"};
  constexpr std::string_view with_avx2[] = {"Haswell", "Zen", "Excavator"};
  const auto names = [&](const auto& list) { return std::find(std::begin(list), std::end(list), kernels) != std::end(list); };
  return names(with_sse) ? Vectors::sse : names(with_avx) ? Vectors::avx : names(with_avx2) ? Vectors::avx2 : Vectors::avx512;
}

std::vector<std::string> wider_kernels(std::string_view kernels, Vectors vectors) {
  std::vector<std::string> wider;
  if (kernels.empty()) return wider;
  const Vectors now = kernel_vectors(kernels);
  const std::pair<Vectors, const char*> values[] = {
      {Vectors::avx512, "SKYLAKEX"}, {Vectors::avx2, "HASWELL"}, {Vectors::avx, "SANDYBRIDGE"}};
  for (const auto& [uses, value] : values)
    if (uses <= vectors && uses > now) wider.emplace_back(value);
  return wider;
}

std::string blas_advice() {
  const BlasLibrary& library = blas_library();
  const Vectors vectors = processor_vectors();
  if (std::getenv("OPENBLAS_CORETYPE") != nullptr ||
      kernel_vectors(library.kernels) >= std::min(vectors, Vectors::avx2))
    return "";
  const auto wider = wider_kernels(library.kernels, vectors);
  if (wider.empty()) return "";
  return fmt::format(
      "{} computes with kernels for a {}, several times slower than this processor could: set OPENBLAS_CORETYPE={} "
      "(`tandem doctor` tries whether it computes rightly then), or use a newer BLAS",
      library.version, library.kernels, wider.front());
}

BlasTrial try_blas() {
  constexpr int n = 512;
  const Random<double> a(n, n, 5), b(n, n, 6);
  std::vector<double> c(static_cast<std::size_t>(n) * n);
  double best_s = std::numeric_limits<double>::infinity();
  for (int i = 0; i < 4; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    internal::blas_gemm(CblasNoTrans, CblasTrans, n, n, n, 1.0, a.values.data(), n, b.values.data(), n, 0.0, c.data(),
                        n);
    best_s = std::min(best_s, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  return {.gflops = 2e-9 * n * n * n / best_s,
          .right = multiplies_rightly<double>() && multiplies_rightly<float>() && solves_rightly<double>() &&
                   solves_rightly<float>()};
}

}  // namespace tandem::linalg
