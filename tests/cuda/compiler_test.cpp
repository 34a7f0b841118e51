// tests/cuda/compiler_test.cpp: what NVRTC makes of sources. Needs NVRTC, but no device.
#include <complex>
#include <stdexcept>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/linalg/kernels/cuda_functions.hpp"
#include "tandem/runtime/device/cuda/cuda_compiler.hpp"
#include "tandem/runtime/memory/device_error.hpp"

namespace tandem::runtime::cuda::compiler_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr const char* kSource = R"(
  extern "C" __global__ void plain(double a, const double* x, size_t nx, double* y, size_t ny) {
    size_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < ny) y[i] += a * x[i];
  }
  __global__ void mangled(int* v) { *v += BY; }
  template <class T> __global__ void scaled(T* v, size_t n) { for (size_t i = 0; i < n; ++i) v[i] *= T(2); }
)";

#define TANDEM_CUDA_KERNELS(...) #__VA_ARGS__
constexpr const char* kRows =
#include "tandem/linalg/kernels/cuda_rows.inc"
    ;
#undef TANDEM_CUDA_KERNELS

struct CudaCompiler : testing::Test {
  Compiler compiler{"", 0};
  void SetUp() override {
    try {
      compiler.compile({kSource, "plain", "-DBY=1"}, 80);
    } catch (const DeviceError& error) {
      GTEST_SKIP() << error.what();
    }
  }
  std::string failure(const CudaSource& source) {
    try {
      compiler.compile(source, 80);
    } catch (const std::runtime_error& error) {
      return error.what();
    }
    return "it compiles";
  }
};

TEST_F(CudaCompiler, FindsKernelsByTheirNamesInCPlusPlus) {
  const CompiledKernel plain = compiler.compile({kSource, "plain", "-DBY=1"}, 80);
  EXPECT_EQ(plain.symbol, "plain");
  EXPECT_EQ(std::string(plain.code.data() + 1, 3), "ELF");
  EXPECT_EQ(compiler.compile({kSource, "mangled", "-DBY=1"}, 80).symbol, "_Z7mangledPi");
  const CompiledKernel scaled = compiler.compile({kSource, "scaled<float>", "-DBY=1 --use_fast_math"}, 90);
  EXPECT_THAT(scaled.symbol, HasSubstr("scaled"));
  EXPECT_THAT(std::string(scaled.code.begin(), scaled.code.end()), HasSubstr(scaled.symbol));
}

TEST_F(CudaCompiler, MakesPtxForDevicesThatAreNewerThanItself) {
  const CompiledKernel kernel = compiler.compile({kSource, "mangled", "-DBY=1"}, 999);
  const std::string text(kernel.code.data());
  EXPECT_THAT(text, AllOf(HasSubstr(".version"), HasSubstr(".target sm_"), HasSubstr(kernel.symbol)));
}

TEST_F(CudaCompiler, CompilesTheKernelsOfTiles) {
  const auto expect_code = [&]<class T>(T) {
    using Symbols = linalg::internal::CudaSymbols<T>;
    for (const char* const kernel : {Symbols::exchange_rows, Symbols::laswp})
      EXPECT_FALSE(compiler.compile({kRows, kernel, ""}, 90).code.empty()) << kernel;
  };
  expect_code(float());
  expect_code(double());
  expect_code(std::complex<float>());
  expect_code(std::complex<double>());
}

TEST_F(CudaCompiler, RepeatsWhatNvrtcSays) {
  EXPECT_THAT(failure({"__global__ void bad(int* v) { *v = nonsense; }", "bad", ""}),
              AllOf(HasSubstr("kernel 'bad' does not compile for compute capability 8.0"), HasSubstr("nonsense"),
                    HasSubstr("tandem.cu(1)")));
  EXPECT_THAT(failure({kSource, "no_such", "-DBY=1"}), HasSubstr("no_such"));
  EXPECT_THAT(failure({kSource, "plain", ""}), HasSubstr("BY"));
  EXPECT_THAT(failure({kSource, "plain", "--no-such-option"}), HasSubstr("no-such-option"));
}

TEST(CudaCompilerMissing, IsAFailureOfTheDevice) {
  const Compiler compiler("/nonexistent", 0);
  try {
    compiler.compile({kSource, "plain", "-DBY=1"}, 80);
    GTEST_SKIP() << "NVRTC is where the dynamic loader looks";
  } catch (const DeviceError& error) {
    EXPECT_EQ(error.effect(), DeviceEffect::refused);
    EXPECT_THAT(error.what(), AllOf(HasSubstr("'plain' is CUDA source"), HasSubstr("/nonexistent/libnvrtc.so")));
  }
}

TEST(CudaLibraries, AreThoseThatTheDriverRuns) {
  const std::vector<LibraryFile> files{{"x.so.11", 11}, {"x.so.13", 13}, {"x.so.12", 12}, {"x.so"}};
  EXPECT_THAT(files_for_driver(files, 12'040), testing::ElementsAre("x.so.12", "x.so.11", "x.so"));
  EXPECT_THAT(files_for_driver(files, 13'000), testing::ElementsAre("x.so.13", "x.so.12", "x.so.11", "x.so"));
  EXPECT_THAT(files_for_driver(files, 0), testing::ElementsAre("x.so.13", "x.so.12", "x.so.11", "x.so"))
      << "a driver that does not say its version";
}

// A name without a version may be of any.
TEST(CudaLibraries, ACompilerThatIsNewerThanTheDriverIsNotUsed) {
  const auto failure = [](int driver_version) -> std::string {
    try {
      Compiler(TANDEM_FAKE_CUDA, driver_version).compile({kSource, "plain", ""}, 90);
    } catch (const DeviceError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(failure(12'000), "");
  EXPECT_THAT(failure(11'080),
              HasSubstr("NVRTC cannot be used: it is of CUDA 12.4, and the driver runs CUDA 11.8 and older"));
}

}  // namespace
}  // namespace tandem::runtime::cuda::compiler_test
