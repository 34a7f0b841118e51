// tandem/linalg/blas_threads_test.cpp: one thread per BLAS call, seen from outside the library.
#include "tandem/linalg/blas_threads.hpp"

#include <gtest/gtest.h>

namespace tandem::linalg {
namespace {

TEST(BlasThreads, OnlyTheCallerWorksAfterTheRestriction) {
  BlasThreads::restrict_to_one();
  EXPECT_EQ(BlasThreads::observed_threads(), 1);
}

TEST(BlasThreads, TheSwitchIsFoundOnce) { EXPECT_EQ(BlasThreads::restrict_to_one(), BlasThreads::restrict_to_one()); }

}  // namespace
}  // namespace tandem::linalg
