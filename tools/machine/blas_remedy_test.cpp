// tools/machine/blas_remedy_test.cpp: which kernels the doctor recommends, by the results of trials.
#include "tools/machine/blas_remedy.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tandem::tools::blas_remedy_test {
namespace {

using linalg::BlasTrial;
using linalg::Vectors;
using testing::HasSubstr;

const linalg::BlasLibrary prescott{"OpenBLAS 0.3.21", "Prescott"};

TEST(BlasRemedy, TheWidestKernelsThatComputeRightlyAreTaken) {
  std::vector<std::string> tried;
  const auto attempt = [&](const std::string& kernels) -> std::optional<BlasTrial> {
    tried.push_back(kernels);
    if (kernels == "SKYLAKEX") return BlasTrial{60, false};
    return BlasTrial{30, true};
  };
  const auto remedy = find_remedy(prescott, Vectors::avx512, {8, true}, attempt);
  ASSERT_TRUE(remedy);
  EXPECT_EQ(remedy->kernels, "HASWELL");
  EXPECT_THAT(tried, testing::ElementsAre("SKYLAKEX", "HASWELL"));
}

TEST(BlasRemedy, KernelsThatCannotRunOrAreNoFasterAreNone) {
  EXPECT_FALSE(find_remedy(prescott, Vectors::avx512, {8, true}, [](const std::string&) { return std::nullopt; }));
  EXPECT_FALSE(find_remedy(prescott, Vectors::avx512, {8, true},
                           [](const std::string&) { return BlasTrial{8.1, true}; }));
}

TEST(BlasRemedy, WrongResultsAreReplacedBySlowerRightOnes) {
  EXPECT_TRUE(find_remedy(prescott, Vectors::avx2, {50, false},
                          [](const std::string&) { return BlasTrial{20, true}; }));
}

TEST(BlasRemedy, TheDoctorSaysRatesAndTheRemedy) {
  const Finding slow = check_blas({prescott, false, {8, true}, BlasRemedy{"SKYLAKEX", {50, true}}});
  EXPECT_EQ(slow.verdict, Verdict::wrong);
  EXPECT_THAT(
      slow.found,
      HasSubstr(
          "kernels for Prescott: 8.0 GFlop/s on one core; 50.0, and right results, with OPENBLAS_CORETYPE=SKYLAKEX"));
  EXPECT_THAT(slow.remedy, HasSubstr("export OPENBLAS_CORETYPE=SKYLAKEX"));
  const Finding slight =
      check_blas({{"OpenBLAS 0.3.21", "Haswell"}, false, {40, true}, BlasRemedy{"SKYLAKEX", {50, true}}});
  EXPECT_EQ(slight.verdict, Verdict::advice);
}

TEST(BlasRemedy, AChoiceThatIsThereStaysUnlessItComputesWrongly) {
  EXPECT_EQ(check_blas({prescott, true, {8, true}}).verdict, Verdict::right);
  const Finding wrong = check_blas({prescott, true, {8, false}});
  EXPECT_EQ(wrong.verdict, Verdict::wrong);
  EXPECT_THAT(wrong.remedy, HasSubstr("unset OPENBLAS_CORETYPE"));
}

TEST(BlasRemedy, AnotherBlasIsRightWithoutAName) {
  EXPECT_EQ(check_blas({{}, false, {40, true}}).verdict, Verdict::right);
}

}  // namespace
}  // namespace tandem::tools::blas_remedy_test
