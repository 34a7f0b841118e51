// tandem/linalg/blas_threads_test.cpp: one thread per BLAS call, seen from outside the library.
#include "tandem/linalg/blas_threads.hpp"

#include <gtest/gtest.h>

#include "tandem/base/blas_threads.hpp"

namespace tandem::linalg::blas_threads_test {
namespace {

TEST(BlasThreads, OnlyTheCallerWorksAfterTheRestriction) {
  base::restrict_blas_threads();
  EXPECT_EQ(observed_blas_threads(), 1);
}

}  // namespace
}  // namespace tandem::linalg::blas_threads_test
