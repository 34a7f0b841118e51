// tandem/linalg/blas_library_test.cpp: kernels that are too old for a processor are recognised, and products are tried.
#include "tandem/linalg/blas_library.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/base/blas_threads.hpp"

namespace tandem::linalg::blas_library_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(BlasLibrary, KernelsOfAnOldProcessorHaveWiderOnesOnANewOne) {
  EXPECT_THAT(wider_kernels("Prescott", Vectors::avx512), ElementsAre("SKYLAKEX", "HASWELL", "SANDYBRIDGE"));
  EXPECT_THAT(wider_kernels("Prescott", Vectors::avx2), ElementsAre("HASWELL", "SANDYBRIDGE"));
  EXPECT_THAT(wider_kernels("Sandybridge", Vectors::avx2), ElementsAre("HASWELL"));
  EXPECT_THAT(wider_kernels("Haswell", Vectors::avx512), ElementsAre("SKYLAKEX"));
}

TEST(BlasLibrary, NothingIsWiderThanWhatTheProcessorHas) {
  EXPECT_THAT(wider_kernels("SkylakeX", Vectors::avx512), IsEmpty());
  EXPECT_THAT(wider_kernels("Haswell", Vectors::avx2), IsEmpty());
  EXPECT_THAT(wider_kernels("Zen", Vectors::avx2), IsEmpty());
  EXPECT_THAT(wider_kernels("Nehalem", Vectors::sse), IsEmpty());
}

TEST(BlasLibrary, OtherLibrariesAndUnknownProcessorsNeedNoAdvice) {
  EXPECT_THAT(wider_kernels("", Vectors::avx512), IsEmpty());
  EXPECT_THAT(wider_kernels("ProcessorOfTheFuture", Vectors::avx512), IsEmpty());
}

TEST(BlasLibrary, TheBlasOfThisBuildComputesRightly) {
  base::restrict_blas_threads();
  const BlasTrial trial = try_blas();
  EXPECT_TRUE(trial.right);
  EXPECT_GT(trial.gflops, 0);
}

TEST(BlasLibrary, AnOpenBlasSaysItsVersionAndItsKernels) {
  const BlasLibrary& library = blas_library();
  if (library.version.empty()) GTEST_SKIP() << "another BLAS";
  EXPECT_THAT(library.version, testing::MatchesRegex("OpenBLAS [0-9]+\\.[0-9]+.*"));
  EXPECT_FALSE(library.kernels.empty());
}

}  // namespace
}  // namespace tandem::linalg::blas_library_test
