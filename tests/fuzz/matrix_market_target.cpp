// tests/fuzz/matrix_market_target.cpp: a matrix in NIST's format.
#include <sstream>
#include <string>

#include "tandem/linalg/matrix_market.hpp"
#include "tests/fuzz/target.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tandem::linalg;
  std::istringstream input(std::string(reinterpret_cast<const char*>(data), size));
  const auto file = read_matrix_market(input, "fuzz.mtx");
  // A few bytes may say a matrix of terabytes, which only a dense one needs.
  if (file && file.value().rows < 100 && file.value().cols < 100) {
    (void)to_dense<double>(file.value()).ok();
    (void)to_dense<std::complex<float>>(file.value()).ok();
  }
  return 0;
}
