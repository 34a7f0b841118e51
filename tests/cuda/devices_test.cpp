// tests/cuda/devices_test.cpp: CUDA devices: kernels from source and by functions, copies, several tasks in flight,
// failures. The devices are those of the driver in this folder, whose kernels are the functions below. The last test
// needs a real one.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/api/cuda_devices.hpp"
#include "tandem/api/device_test_support.hpp"
#include "tandem/api/test_support.hpp"
#include "tandem/comm/endpoint.hpp"
#include "tandem/comm/transport/loop/loop.hpp"
#include "tandem/cuda.hpp"
#include "tandem/device.hpp"
#include "tandem/opencl.hpp"
#include "tandem/runtime/device/cuda/load_cuda.hpp"
#include "tandem/runtime/device/opencl/load_opencl.hpp"
#include "tandem/runtime/memory/out_of_memory.hpp"
#include "tandem/runtime/runtime_core.hpp"
#include "tests/cuda/fake_cuda.hpp"

namespace tandem::devices_test {
namespace {

using test::ConstMatrix;
using test::CountingCopier;
using test::multiply;
using test::thrown_by;
using test::Word;
using testing::AllOf;
using testing::HasSubstr;

bool on_cuda(const WorkerDescription& worker) { return worker.device == DeviceKind::cuda; }

constexpr const char* kSource = R"(
  __global__ void axpy(size_t a, const size_t* x, size_t nx, size_t* y, size_t ny) {
    size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x;
    if (i < ny) y[i] += a * x[i];
  }
  __global__ void gemm(const size_t* a, size_t m, size_t k, size_t lda, const size_t* b, size_t kb, size_t n,
                       size_t ldb, size_t* c, size_t mc, size_t nc, size_t ldc) {
    size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x, j = blockIdx.y * size_t(blockDim.y) + threadIdx.y;
    if (i >= mc || j >= nc) return;
    size_t sum = 0;
    for (size_t l = 0; l < k; ++l) sum += a[i + l * lda] * b[l + j * ldb];
    c[i + j * ldc] += sum;
  }
  __global__ void bump(int by, int* value) { *value += by; }
  __global__ void step(int by, int* value) { *value = (*value * 3 + by) % 1000003; }
  __global__ void count(const size_t* x, size_t n, int* found) {
    *found = 0;
    for (size_t i = 0; i < n; ++i) *found += x[i] == 7;
  }
)";

/// What the sources do, for the driver that has no compiler.
void add_kernels(fake_cuda::Control& control) {
  using fake_cuda::Launch;
  control.add("axpy", {{8, 8, 8, 8, 8}, [](const Launch& launch) {
                         const auto count = launch.get<std::size_t>(4);
                         if (launch.threads() < count) std::abort();
                         for (std::size_t i = 0; i < count; ++i)
                           launch.get<Word*>(3)[i] += launch.get<Word>(0) * launch.get<const Word*>(1)[i];
                       }});
  control.add("gemm", {std::vector<std::size_t>(12, 8), [](const Launch& launch) {
                         const auto matrix = [&](std::size_t at) {
                           return MatrixView<Word>{launch.get<Word*>(at), launch.get<std::size_t>(at + 1),
                                                   launch.get<std::size_t>(at + 2), launch.get<std::size_t>(at + 3)};
                         };
                         if (launch.threads() < matrix(8).rows * matrix(8).cols) std::abort();
                         multiply(matrix(0), matrix(4), matrix(8));
                       }});
  control.add("bump", {{4, 8}, [](const Launch& launch) { *launch.get<int*>(1) += launch.get<int>(0); }});
  control.add("step", {{4, 8}, [](const Launch& launch) {
                         int& value = *launch.get<int*>(1);
                         value = (value * 3 + launch.get<int>(0)) % 1'000'003;
                       }});
  control.add("count", {{8, 8, 8}, [](const Launch& launch) {
                          int found = 0;
                          for (std::size_t i = 0; i < launch.get<std::size_t>(1); ++i)
                            found += launch.get<const Word*>(0)[i] == 7;
                          *launch.get<int*>(2) = found;
                        }});
}

struct Cuda : testing::Test {
  void SetUp() override {
    control.reset();
    add_kernels(control);
  }
  void TearDown() override {
    EXPECT_EQ(control.blocks, 0) << "memory of the device that was not given back";
    EXPECT_EQ(control.contexts, 0);
    EXPECT_EQ(control.graphs, 0);
    EXPECT_EQ(control.host_blocks, 0) << "page-locked memory that was not given back";
  }
  /// On `workers` cores and devices, whose copies are counted.
  std::unique_ptr<Runtime> start(unsigned workers = 2, const std::string& memory = "0",
                                 const std::string& devices = "1", test::LogLines* lines = nullptr,
                                 std::optional<std::string> sched = {}, const std::string& graphs = "false") {
    auto resources = test::test_resources(lines);
    const base::Config config = test::test_config({.workers = workers,
                                                   .sched = std::move(sched),
                                                   .more = {{"cuda", devices},
                                                            {"cuda.memory", memory},
                                                            {"cuda.depth", "4"},
                                                            {"cuda.graphs", graphs},
                                                            {"cuda.libraries", TANDEM_FAKE_CUDA}}});
    runtime::World world = make_real_world(config, *resources);
    add_cuda_devices(world, config, *resources->log);
    for (auto& [node, copier] : world.nodes) copier = std::make_unique<CountingCopier>(std::move(copier), bytes);
    return std::make_unique<Runtime>(std::move(resources), std::move(world), core_options(config));
  }
  CountingCopier::Bytes bytes;
  fake_cuda::Control& control = fake_cuda::control(TANDEM_FAKE_CUDA);
};

const auto kAxpy = Codelet("axpy", [](Word a, std::span<const Word> x, std::span<Word> y) {
                     for (std::size_t i = 0; i < x.size(); ++i) y[i] += a * x[i];
                   }).cuda(kSource, "axpy", [](Word, std::span<const Word> x, std::span<Word>) { return x.size(); });
const auto kGemm = Codelet("gemm", multiply).cuda(kSource, "gemm", [](ConstMatrix, ConstMatrix, MatrixView<Word> c) {
  return CudaRange(c.rows, c.cols);
});
const auto kBump = Codelet("bump", [](int by, int& v) { v += by; }).cuda(kSource, "bump", [](int, int&) { return 1; });

/// Waits until `is_so()`.
template <class IsSo>
void eventually(const IsSo& is_so) {
  for (int i = 0; i < 30'000 && !is_so(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_TRUE(is_so());
}

/// Numbers with a datum each.
struct Numbers {
  Numbers(Runtime& runtime, std::size_t count) : rt(runtime), values(count) {
    for (int& value : values) data.push_back(rt.data(value));
  }
  template <class Codelet>
  void bump_each(const Codelet& codelet, int by) {
    for (const auto& x : data) rt.submit(codelet, by, read_write(x));
  }
  std::vector<int> result() {
    for (auto& x : data) rt.wait(x);
    return values;
  }
  Runtime& rt;
  std::vector<int> values;
  std::vector<Data<int>> data;
};

TEST_F(Cuda, RunsAKernelInCudaCPlusPlus) {
  auto rt = start();
  test::expect_a_kernel_runs(*rt, bytes, kAxpy.can_run(on_cuda));
}

TEST_F(Cuda, TakesMatricesWithAnyLeadingDimension) {
  auto rt = start();
  test::expect_any_leading_dimension(*rt, kGemm.can_run(on_cuda));
}

TEST_F(Cuda, TakesScalarsAndValuesAndCompilesASourceOnce) {
  auto rt = start();
  test::expect_scalars_and_values(*rt, kBump.can_run(on_cuda));
  EXPECT_EQ(control.compilations, 1);
}

TEST_F(Cuda, CopiesWhatItMustAndNoMore) {
  auto rt = start(1);
  test::expect_fewest_copies(*rt, bytes, kAxpy.can_run(on_cuda));
}

TEST_F(Cuda, AddsToPrivateCopiesOnStreamsBesideEachOther) {
  auto rt = start(1);
  test::expect_sums(*rt, bytes, kAxpy, DeviceKind::cuda);
}

TEST_F(Cuda, RandomFlowsGiveWhatSequentialExecutionGives) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    test::RandomDeviceFlow flow(seed, DeviceKind::cuda);
    control.refuse_launches = 0;
    control.memory_bytes = std::size_t{64} << 20;
    // Sometimes with memory for few matrices at a time, by the budget or for want of more, and launches that are
    // refused.
    const unsigned devices = 1 + flow.draw(2), workers = 1 + flow.draw(3);
    auto rt = start(workers, flow.draw(2) == 0 ? "0" : std::to_string(flow.bytes_of_one * (3 + flow.draw(3))),
                    std::to_string(devices), nullptr, {}, seed % 2 == 0 ? "true" : "false");
    if (flow.draw(3) == 0) control.memory_bytes = 2 * flow.bytes_of_one * (3 + flow.draw(3));
    const bool refuses = flow.draw(2) == 0;
    const auto refuse_some = [&] {
      if (refuses && flow.draw(8) == 0) control.refuse_launches = 1;
    };
    ASSERT_TRUE(flow.play(std::move(rt), kAxpy, kGemm, !refuses, refuse_some)) << "seed " << seed;
  }
}

TEST_F(Cuda, CopiesDirectlyBetweenTwoDevices) {
  auto rt = start(1, "0", "2");
  test::expect_copies_between_two_devices(*rt, bytes, kAxpy);
  EXPECT_GE(control.peer_copies, 9);
}

TEST_F(Cuda, SaysWhatTheCompilerSays) {
  auto rt = start();
  int value = 1;
  auto x = rt->data("x", value);
  const auto bad = Codelet("bad", [](int&) {}).cuda("__global__ void bad(int* v) { *v = nonsense; }", "bad",
                                                    [](int&) { return 1; });
  rt->submit(bad.can_run(on_cuda), read_write(x));
  EXPECT_THAT(thrown_by<std::runtime_error>([&] { rt->wait(); }),
              AllOf(HasSubstr("kernel 'bad' does not compile"), HasSubstr("nonsense")));
  const auto missing_one = Codelet("missing", [](int&) {}).cuda(kSource, "no_such", [](int&) { return 1; });
  rt->submit(missing_one.can_run(on_cuda), write(x));
  EXPECT_THAT(thrown_by<std::runtime_error>([&] { rt->wait(); }), HasSubstr("no_such"));
  const auto other = Codelet("other", [](int&) {}).cuda(kSource, "bump", [](int&) { return 1; });
  rt->submit(other.can_run(on_cuda), write(x));
  EXPECT_THAT(thrown_by<std::runtime_error>([&] { rt->wait(); }),
              HasSubstr("'bump' has 2 parameters, and what is submitted makes 1"));
  const auto wide = Codelet("wide", [](double, int&) {}).cuda(kSource, "bump", [](double, int&) { return 1; });
  rt->submit(wide.can_run(on_cuda), 1.0, write(x));
  EXPECT_THAT(thrown_by<std::runtime_error>([&] { rt->wait(); }),
              HasSubstr("argument 1 of CUDA kernel 'bump' has 8 bytes, and its parameter 4"));
}

TEST_F(Cuda, GivesTasksThatDoNotFitToCores) {
  auto rt = start(1, "100");
  std::vector<Word> x(1'000, 2), y(1'000, 1);
  auto hx = rt->data("x", x), hy = rt->data("y", y);
  for (int i = 0; i < 5; ++i) rt->submit(kAxpy, Word{3}, read(hx), read_write(hy));
  for (int i = 0; i < 5; ++i) rt->submit(kAxpy.prefer_devices(), Word{3}, read(hx), read_write(hy));
  rt->wait();
  EXPECT_EQ(y, std::vector<Word>(1'000, 61));
  EXPECT_THAT(thrown_by<OutOfMemory>([&] { rt->submit(kAxpy.can_run(on_cuda), Word{3}, read(hx), read_write(hy)); }),
              AllOf(HasSubstr("cuda 0"), HasSubstr("budget is 100 bytes")));
}

TEST_F(Cuda, IsAnOption) {
  {
    Runtime rt(
        Options{.workers = 1, .more = {{"cuda", "1"}, {"cuda.libraries", TANDEM_FAKE_CUDA}, {"ranks", "alone"}}});
    std::vector<Word> x(10, 2), y(10, 1);
    rt.submit(kAxpy.can_run(on_cuda), Word{1}, read(rt.data(x)), read_write(rt.data(y)));
    rt.wait();
    EXPECT_EQ(y, std::vector<Word>(10, 3));
  }
  control.devices = 0;
  EXPECT_THAT(thrown_by<StartError>([] {
                Runtime(Options{.more = {{"cuda", "1"}, {"cuda.libraries", TANDEM_FAKE_CUDA}, {"ranks", "alone"}}});
              }),
              HasSubstr("the CUDA driver here has none"));
}

// Room for five vectors in main memory, and for three on each device.
TEST_F(Cuda, WorksBesideABudgetOfMainMemory) {
  const auto room_for = [](std::size_t vectors) { return std::to_string(vectors * test::kWordsOfOne * sizeof(Word)); };
  Runtime rt(Options{.workers = 2,
                     .more = {{"cuda", "2"},
                              {"cuda.libraries", TANDEM_FAKE_CUDA},
                              {"cuda.memory", room_for(3)},
                              {"memory", room_for(5)},
                              {"ranks", "alone"}}});
  test::expect_values_in_little_memory(rt, kAxpy, DeviceKind::cuda);
}

// A kind of devices knows nothing of another one's memory.
TEST_F(Cuda, ValuesGoToAnotherKindOfDevicesAndBack) {
  const auto opencl = runtime::load_opencl();
  if (!opencl.ok() || opencl.value()->find().empty()) GTEST_SKIP() << "there is no OpenCL device here";
  const auto both = kAxpy.opencl(
      "__kernel void axpy(ulong a, __global const ulong* x, ulong nx, __global ulong* y, ulong ny) {"
      " size_t i = get_global_id(0); y[i] += a * x[i]; }",
      "axpy", [](Word, std::span<const Word> x, std::span<Word>) { return x.size(); });
  Runtime rt(
      Options{.workers = 1,
              .more = {{"cuda", "1"}, {"cuda.libraries", TANDEM_FAKE_CUDA}, {"opencl", "1"}, {"ranks", "alone"}}});
  std::vector<Word> x(1'000, 2), y(1'000, 1);
  auto hx = rt.data("x", x), hy = rt.data("y", y);
  for (const DeviceKind kind :
       {DeviceKind::cuda, DeviceKind::opencl, DeviceKind::cuda, DeviceKind::cpu, DeviceKind::opencl, DeviceKind::cuda})
    rt.submit(both.can_run([kind](const WorkerDescription& worker) { return worker.device == kind; }), Word{3},
              read(hx), read_write(hy));
  rt.wait(hy);
  EXPECT_EQ(y, std::vector<Word>(1'000, 37));
}

TEST_F(Cuda, HasSeveralTasksInFlightOnStreamsOfTheirOwn) {
  auto rt = start(1);
  control.kernel_ns = 3'000'000;
  Numbers numbers(*rt, 24);
  numbers.bump_each(kBump.can_run(on_cuda), 1);
  EXPECT_EQ(numbers.result(), std::vector<int>(24, 1));
  EXPECT_GE(control.most_kernels, 3);
  EXPECT_LE(control.most_kernels, 4) << "no more than the depth";
}

TEST_F(Cuda, CopiesWhileKernelsRun) {
  auto rt = start(1);
  control.kernel_ns = 2'000'000;
  control.copy_ns = 500'000;
  Numbers numbers(*rt, 24);
  numbers.bump_each(kBump.can_run(on_cuda), 1);
  EXPECT_EQ(numbers.result(), std::vector<int>(24, 1));
  EXPECT_GE(control.copies_beside_kernels, 12);
}

TEST_F(Cuda, LeavesTasksToCoresWhenLaunchesAreRefused) {
  test::LogLines lines;
  auto rt = start(1, "0", "1", &lines);
  control.refuse_launches = 1'000;
  Numbers numbers(*rt, 8);
  numbers.bump_each(kBump, 1);
  numbers.bump_each(kBump.prefer_devices(), 1);
  EXPECT_EQ(numbers.result(), std::vector<int>(8, 2));
  EXPECT_EQ(control.kernels, 0);
  rt->submit(kBump.can_run(on_cuda), 1, read_write(numbers.data[0]));
  EXPECT_THAT(thrown_by<DeviceError>([&] { rt->wait(); }),
              AllOf(HasSubstr("bump"), HasSubstr("cuda 0 (Fake)"),
                    HasSubstr("the launch was refused: CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES")));
}

TEST_F(Cuda, LeavesTasksToCoresWhenTheDeviceHasNoMemoryLeft) {
  auto rt = start(1, "1GiB");
  control.memory_bytes = 4096;
  std::vector<Word> x(1'000, 2), y(1'000, 1);
  auto hx = rt->data("x", x), hy = rt->data("y", y);
  for (int i = 0; i < 10; ++i) rt->submit(kAxpy, Word{3}, read(hx), read_write(hy));
  rt->wait();
  EXPECT_EQ(y, std::vector<Word>(1'000, 61));
}

TEST_F(Cuda, ReusesMemoryAndGivesItUpWhenItIsShort) {
  auto rt = start(1);
  control.memory_bytes = 10'000;
  for (std::size_t count : {500U, 900U, 500U, 1'000U}) {  // the pieces that one leaves are of no use to the next
    std::vector<Word> x(count / 2, 1);
    auto hx = rt->data("x", x);
    std::vector<Word> y(count / 2, 1);
    auto hy = rt->data("y", y);
    rt->submit(kAxpy.can_run(on_cuda), Word{1}, read(hx), read_write(hy));
    rt->wait(hy);
    EXPECT_EQ(y[count / 2 - 1], 2U);
  }
}

TEST_F(Cuda, KeepsASixteenthOfTheMemoryForReuse) {
  auto rt = start(1);
  const std::size_t count = (std::size_t{64} << 20) / 16 / 2 / sizeof(Word);  // two of these are a sixteenth
  for (int round = 0; round < 2; ++round) {
    std::vector<Word> x(count, 1), y(count, 1), z(count, 1), u(count, 1);
    auto hx = rt->data("x", x), hy = rt->data("y", y), hz = rt->data("z", z), hu = rt->data("u", u);
    rt->submit(kAxpy.can_run(on_cuda), Word{1}, read(hx), read_write(hy));
    rt->submit(kAxpy.can_run(on_cuda), Word{1}, read(hz), read_write(hu));
    rt->wait();
    EXPECT_EQ(control.blocks, 4);
  }
  rt->wait();
  eventually([&] { return control.blocks == 2; });
}

// Whoever drops data, or makes it leave for other data, holds locks, and freeing memory waits for the device.
TEST_F(Cuda, NobodyWaitsForMemoryThatIsFreed) {
  auto rt = start(1);
  const std::size_t count = (std::size_t{64} << 20) / 8 / sizeof(Word);  // more than is kept
  {
    std::vector<Word> x(count, 1), y(count, 1);
    auto hx = rt->data("x", x), hy = rt->data("y", y);
    rt->submit(kAxpy.can_run(on_cuda), Word{1}, read(hx), read_write(hy));
    rt->wait();
    control.holds_frees = true;
  }
  rt->wait();
  eventually([&] { return control.frees_now > 0; });
  Numbers numbers(*rt, 20);
  numbers.bump_each(kBump.can_run(on_cuda), 1);
  EXPECT_EQ(numbers.result(), std::vector<int>(20, 1));
  EXPECT_GT(control.frees_now, 0) << "all that went on beside it";
  control.holds_frees = false;
}

TEST_F(Cuda, DataLeavesADeviceThatHasLessThanItsBudget) {
  constexpr std::size_t kCount = 2'000;
  auto rt = start(1, "1GiB");
  control.memory_bytes = 4 * kCount * sizeof(Word);
  std::vector<std::vector<Word>> values(12, std::vector<Word>(kCount, 1));
  std::vector<Data<Vector<Word>>> data;
  for (auto& value : values) data.push_back(rt->data(value));
  for (int round = 0; round < 3; ++round)
    for (std::size_t i = 1; i < data.size(); ++i)
      rt->submit(kAxpy.can_run(on_cuda), Word{1}, read(data[i - 1]), read_write(data[i]));
  std::vector<Word> expected(12, 1);
  for (int round = 0; round < 3; ++round)
    for (std::size_t i = 1; i < expected.size(); ++i) expected[i] += expected[i - 1];
  for (std::size_t i = 0; i < data.size(); ++i) {
    rt->wait(data[i]);
    EXPECT_EQ(values[i], std::vector<Word>(kCount, expected[i]));
  }
  EXPECT_LE(rt->core().memory().room().budget(1), std::size_t{5} * kCount * sizeof(Word));
}

TEST_F(Cuda, ATaskThatTheDeviceHasNoMemoryForFailsWithTheNumbers) {
  auto rt = start(1, "1GiB");
  control.memory_bytes = 10'000;
  std::vector<Word> x(1'000, 2), y(1'000, 1);
  rt->submit(kAxpy.can_run(on_cuda), Word{3}, read(rt->data(x)), read_write(rt->data(y)));
  EXPECT_THAT(thrown_by<OutOfMemory>([&] { rt->wait(); }),
              AllOf(HasSubstr("takes 16000 bytes"), HasSubstr("cuda 0"), HasSubstr("was 1073741824 bytes")));
  int value = 1;  // what fits runs
  auto small = rt->data(value);
  rt->submit(kBump.can_run(on_cuda), 1, read_write(small));
  rt->wait(small);
  EXPECT_EQ(value, 2);
}

TEST_F(Cuda, HasABudgetOfWhatIsFreeForTheRanksOfTheHost) {
  control.taken_bytes = std::size_t{16} << 20;
  for (const unsigned sharers : {1U, 3U}) {
    auto resources = test::test_resources();
    const base::Config config =
        test::test_config({.workers = 1, .more = {{"cuda", "1"}, {"cuda.libraries", TANDEM_FAKE_CUDA}}});
    runtime::World world = make_real_world(config, *resources);
    add_cuda_devices(world, config, *resources->log, sharers);
    Runtime rt(std::move(resources), std::move(world), core_options(config));
    EXPECT_EQ(rt.core().memory().room().budget(1), (std::size_t{36} << 20) / sharers);
  }
}

TEST_F(Cuda, CountsGranulesOfTheDriver) {
  auto rt = start(1, "20MiB");
  std::vector<std::uint8_t> large(1'500'000), small(1'000);
  const auto touch = Codelet("touch", [](std::span<std::uint8_t>) {}).cuda([](CudaQueue&, std::span<std::uint8_t>) {});
  auto hl = rt->data(large), hs = rt->data(small);
  rt->submit(touch.can_run(on_cuda), read_write(hl));
  rt->submit(touch.can_run(on_cuda), read_write(hs));
  rt->wait();
  EXPECT_EQ(rt->core().memory().room().used(1), (std::size_t{2} << 20) + 1'000);
}

TEST_F(Cuda, ADeviceThatIsLostInACopyGetsNoFurtherTasks) {
  test::LogLines lines;
  auto rt = start(1, "0", "1", &lines);
  Numbers numbers(*rt, 300);
  control.copies = 0;
  control.lose_at_copy = 1;  // the first: no value is on the device alone
  numbers.bump_each(kBump, 1);
  numbers.bump_each(kBump.prefer_devices(), 1);
  rt->wait();
  EXPECT_LT(control.copies, 60) << "not one for each task";
  EXPECT_THAT(lines.all(), HasSubstr("cuda 0 (Fake) is lost, and runs no further tasks"));
}

TEST_F(Cuda, ADeviceIsNotLostByACopyFromAnotherOne) {
  auto rt = start(1, "0", "2");
  const auto on = [](unsigned device) {
    return [device](const WorkerDescription& worker) { return worker.worker == device; };
  };
  int value = 1, other = 1;
  auto x = rt->data("x", value), y = rt->data("y", other);
  rt->submit(kBump.can_run(on(1)), 1, read_write(x));
  rt->wait();
  control.lose_at_copy = 1;
  rt->submit(kBump.can_run(on(2)), 1, read_write(x));
  EXPECT_THROW(rt->wait(), DeviceError);
  rt->submit(kBump.can_run(on(2)), 1, read_write(y));
  rt->wait(y);
  EXPECT_EQ(other, 2) << "the second device works";
  rt->submit(kBump.can_run(on(1)), 1, read_write(y));
  EXPECT_THROW(rt->wait(), DeviceError);
}

TEST_F(Cuda, LeavesAllToCoresWhenADeviceIsLost) {
  test::LogLines lines;
  auto rt = start(1, "0", "1", &lines);
  control.kernel_ns = 100'000;
  control.lose_at = 5;
  Numbers numbers(*rt, 40);
  numbers.bump_each(kBump, 1);
  rt->wait();
  for (int round = 0; round < 2; ++round) numbers.rt.submit(kBump, 1, read_write(numbers.data[39]));
  rt->wait(numbers.data[39]);
  EXPECT_EQ(numbers.values[39], 3);
  EXPECT_LE(control.kernels, 5 + 3) << "those that ran beside the one that failed";
}

TEST_F(Cuda, FailsTasksWhoseOnlyDeviceIsLost) {
  auto rt = start(1);
  control.lose_at = 1;
  int value = 0;
  auto x = rt->data("x", value);
  rt->submit(kBump.can_run(on_cuda), 1, read_write(x));
  EXPECT_THAT(thrown_by<DeviceError>([&] { rt->wait(); }),
              AllOf(HasSubstr("bump"), HasSubstr("CUDA_ERROR_LAUNCH_FAILED")));
}

TEST_F(Cuda, CallsFunctionsWithAStream) {
  auto rt = start();
  std::vector<double> a(6, 1), b(6, 2), c(4, 1);
  auto ha = rt->data("a", MatrixView<double>{a.data(), 2, 3, 2}),
       hb = rt->data("b", MatrixView<double>{b.data(), 3, 2, 3}),
       hc = rt->data("c", MatrixView<double>{c.data(), 2, 2, 2});
  using In = MatrixView<const double>;
  const auto multiply_by_blas = Codelet("dgemm", [](double, In, In, MatrixView<double>) {
                                }).cuda([](CudaQueue& queue, double alpha, In left, In right, MatrixView<double> to) {
    using Gemm = int(void*, int, int, int, int, int, const double*, const double*, int, const double*, int,
                     const double*, double*, int);
    const double one = 1;
    const int status = reinterpret_cast<Gemm*>(queue.blas_function("cublasDgemm_v2"))(
        queue.blas(), 0, 0, 2, 2, 3, &alpha, left.data, 2, right.data, 3, &one, to.data, 2);
    if (status != 0) throw std::runtime_error("no product");
  });
  rt->submit(multiply_by_blas.can_run(on_cuda), 2.0, read(ha), read(hb), read_write(hc));
  rt->wait(hc);
  EXPECT_EQ(c, std::vector<double>(4, 13));
  // What another function has left in the handle does not hinder this one.
  const auto change = Codelet("change", [](MatrixView<double>) {}).cuda([](CudaQueue& queue, MatrixView<double>) {
    using SetMode = int(void*, int);
    reinterpret_cast<SetMode*>(queue.blas_function("cublasSetPointerMode_v2"))(queue.blas(), 1);
  });
  for (int i = 0; i < 8; ++i) {  // in each of the lanes
    rt->submit(change.can_run(on_cuda), read_write(hc));
    rt->submit(multiply_by_blas.can_run(on_cuda), 2.0, read(ha), read(hb), read_write(hc));
  }
  rt->wait(hc);
  EXPECT_EQ(c, std::vector<double>(4, 13 + 8 * 12));
}

TEST_F(Cuda, TakesAnyNumberOfArguments) {
  constexpr std::size_t kMatrices = 17;
  control.add("sum", {std::vector<std::size_t>(4 * kMatrices, 8), [](const fake_cuda::Launch& launch) {
                        for (std::size_t i = 1; i < kMatrices; ++i) {
                          EXPECT_EQ(launch.get<std::size_t>(4 * i + 1), 2U);
                          EXPECT_EQ(launch.get<std::size_t>(4 * i + 2), 3U);
                          *launch.get<Word*>(0) += *launch.get<const Word*>(4 * i);
                        }
                      }});
  auto rt = start();
  const auto sum = Codelet("sum", [](MatrixView<Word> to, auto... from) { to(0, 0) += (from(0, 0) + ...); })
                       .cuda("__global__ void sum(...)", "sum", [](auto...) { return 1; });
  std::vector<std::vector<Word>> values(kMatrices, std::vector<Word>(6, 1));
  std::vector<Data<Matrix<Word>>> data;
  for (std::size_t i = 0; i < kMatrices; ++i) {
    values[i][0] = i;
    data.push_back(rt->data(MatrixView<Word>{values[i].data(), 2, 3, 2}));
  }
  [&]<std::size_t... i>(std::index_sequence<i...>) {
    rt->submit(sum.can_run(on_cuda), read_write(data[0]), read(data[i + 1])...);
  }(std::make_index_sequence<kMatrices - 1>());
  rt->wait(data[0]);
  EXPECT_EQ(values[0][0], 16U * 17 / 2);
}

TEST_F(Cuda, LaunchesASourceThatIsKeptWithoutReadingItAgain) {
  auto rt = start();
  const auto source = std::make_shared<CudaSource>(CudaSource{kSource, "bump", ""});
  int value = 0;
  auto x = rt->data(value);
  const auto bump = Codelet("bump", [](int&) {}).cuda([source](CudaQueue& queue, int& v) {
    const int by = 1;
    const CudaArgument arguments[] = {{&by, sizeof(by)}, {&v, 0}};
    queue.launch_kept(source, arguments, 1);
  });
  rt->submit(bump.can_run(on_cuda), read_write(x));
  rt->wait(x);
  source->text = "nonsense";
  rt->submit(bump.can_run(on_cuda), read_write(x));
  rt->wait(x);
  EXPECT_EQ(value, 2);
}

/// Runs `bump` with `range`, for which a core could stand in. Returns what `wait` throws; empty: nothing.
std::string failure_with(Runtime& rt, const CudaRange& range) {
  int value = 0;
  auto x = rt.data(value);
  const auto bump =
      Codelet("bump", [](int by, int& v) { v += by; }).cuda(kSource, "bump", [range](int, int&) { return range; });
  rt.submit(bump.prefer_devices().can_run([](const WorkerDescription& worker) { return on_cuda(worker); }), 1,
            read_write(x));
  try {
    rt.wait();
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

TEST_F(Cuda, ARangeBeyondTheLimitsIsAnError) {
  auto rt = start();
  CudaRange range(1);
  range.block = {2'048, 1, 1};
  EXPECT_THAT(
      failure_with(*rt, range),
      HasSubstr("'bump' is to run with blocks of 2048 threads in dimension 1, of which cuda 0 (Fake) has 1024"));
  range.block = {64, 64, 1};
  EXPECT_THAT(failure_with(*rt, range),
              HasSubstr("blocks of 4096 threads, and cuda 0 (Fake) runs it with 1024 at most"));
  range = CudaRange(1, 70'000);
  range.block = {1, 1, 1};
  EXPECT_THAT(failure_with(*rt, range),
              HasSubstr("70000 blocks in dimension 2, of which cuda 0 (Fake) has 65535 at most"));
  range = CudaRange(std::numeric_limits<std::size_t>::max());
  range.block = {512, 1, 1};
  EXPECT_THAT(failure_with(*rt, range), HasSubstr("blocks in dimension 1"));
  range = CudaRange(1);
  range.shared_bytes = 300'000;
  EXPECT_THAT(failure_with(*rt, range),
              HasSubstr("300000 bytes of shared memory for a block, of which cuda 0 (Fake) has 232448 at most"));
  EXPECT_EQ(control.kernels, 0);
}

TEST_F(Cuda, GivesAKernelAllTheSharedMemoryOfABlock) {
  auto rt = start();
  CudaRange range(1);
  for (const unsigned shared : {49'152U, 100'000U, 60'000U, 232'448U}) {
    range.shared_bytes = shared;
    EXPECT_EQ(failure_with(*rt, range), "") << shared;
  }
  EXPECT_EQ(control.kernels, 4);
}

TEST_F(Cuda, WhatAReadNumberMakesThrowFailsTheTask) {
  auto rt = start();
  int value = 1;
  auto x = rt->data("x", value);
  const auto reads = Codelet("reads", [](int&) {}).cuda([](CudaQueue& queue, int& v) {
    queue.read_int(&v, [](int) { throw std::runtime_error("no such number"); });
  });
  rt->submit(reads.can_run(on_cuda), read_write(x));
  EXPECT_THAT(thrown_by<std::runtime_error>([&] { rt->wait(); }), HasSubstr("no such number"));
  rt->submit(kBump.can_run(on_cuda), 1, write(x));
  rt->wait();
}

TEST_F(Cuda, WarnsOfFewerDevicesThanTheOptionAsksFor) {
  testing::internal::CaptureStderr();
  Runtime(Options{.workers = 1, .more = {{"cuda", "3"}, {"cuda.libraries", TANDEM_FAKE_CUDA}, {"ranks", "alone"}}});
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("option cuda asks for 3 devices, and this machine has 2 CUDA devices"));
}

TEST_F(Cuda, ReadsNumbersBeforeATaskEnds) {
  auto rt = start();
  std::vector<Word> x(100, 1);
  x[3] = x[70] = 7;
  std::atomic<int> found{0};
  const auto count = Codelet("count", [](std::span<const Word>, std::span<Word>) {})
                         .cuda([&found](CudaQueue& queue, std::span<const Word> from, std::span<Word>) {
                           const std::size_t size = from.size();
                           void* const result = queue.scratch(sizeof(int));
                           const CudaArgument arguments[] = {{from.data(), 0}, {&size, sizeof(size)}, {result, 0}};
                           queue.launch({kSource, "count", ""}, arguments, 1);
                           queue.read_int(result, [&found](int value) { found = value; });
                         })
                         .can_run(on_cuda);
  std::vector<Word> y(1, 0);
  auto hx = rt->data("x", x), hy = rt->data("y", y);
  rt->submit(count, read(hx), write(hy));
  int seen = 0;
  rt->submit("see", [&](std::span<const Word>) { seen = found; }, read(hy));
  rt->wait();
  EXPECT_EQ(seen, 2);
}

/// Policies that learn take part since the driver measures what each task takes.
struct CudaStretches : Cuda, testing::WithParamInterface<const char*> {};
INSTANTIATE_TEST_SUITE_P(Policies, CudaStretches, testing::Values("lws", "plan"));

TEST_P(CudaStretches, HaveScratchMemoryThatGrows) {
  auto rt = start(1, "0", "1", nullptr, GetParam());
  std::vector<Word> x(100, 7);
  const auto count = Codelet("count", [](std::size_t, std::span<Word>) {})
                         .cuda([](CudaQueue& queue, std::size_t scratch_bytes, std::span<Word> data) {
                           const std::size_t size = data.size();
                           const CudaArgument arguments[] = {
                               {data.data(), 0}, {&size, sizeof(size)}, {queue.scratch(scratch_bytes), 0}};
                           queue.launch({kSource, "count", ""}, arguments, 1);
                         })
                         .can_run(on_cuda);
  int value = 0;
  auto hx = rt->data("x", x);
  auto hv = rt->data(value);
  for (int i = 0; i < 200; ++i) {
    rt->submit(count, std::size_t{64} << i % 9, read_write(hx));
    rt->submit(kBump.can_run(on_cuda), i, read_write(hv));
  }
  rt->wait(hx);
  rt->wait(hv);
  EXPECT_EQ(value, 199 * 200 / 2);
  EXPECT_GT(rt->statistics().workers[1].posted_behind, 0U);
}

TEST_F(Cuda, PostsNoneBehindATaskThatReadsANumber) {
  auto rt = start(1, "0", "1", nullptr, "lws");
  std::vector<Word> x(100, 7);
  std::atomic<int> seen{0};
  std::vector<int> seen_at_launch;
  const auto count = Codelet("count", [](std::span<Word>) {})
                         .cuda([&](CudaQueue& queue, std::span<Word> data) {
                           seen_at_launch.push_back(seen);
                           const std::size_t size = data.size();
                           void* const result = queue.scratch(sizeof(int));
                           const CudaArgument arguments[] = {{data.data(), 0}, {&size, sizeof(size)}, {result, 0}};
                           queue.launch({kSource, "count", ""}, arguments, 1);
                           queue.read_int(result, [&seen](int found) { seen += found; });
                         })
                         .can_run(on_cuda);
  auto hx = rt->data("x", x);
  for (int i = 0; i < 20; ++i) rt->submit(count, read_write(hx));
  rt->wait();
  ASSERT_EQ(seen_at_launch.size(), 20U);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(seen_at_launch[static_cast<std::size_t>(i)], 100 * i);
  EXPECT_EQ(rt->statistics().workers[1].posted_behind, 0U);
}

/// Chains of small tasks whose order shows in their values, with graphs.
struct CudaGraphs : Cuda {
  static int stepped(int value, int by) { return (value * 3 + by) % 1'000'003; }
  static CudaArgument address_of(const int& value) { return {&value, 0}; }
  static void launch_step(CudaQueue& queue, int by, int& value) {
    const CudaArgument arguments[] = {{&by, sizeof(by)}, address_of(value)};
    queue.launch({kSource, "step", ""}, arguments, 1);
  }
  std::unique_ptr<Runtime> start_with_graphs(const std::string& sched = "lws") {
    return start(1, "0", "1", nullptr, sched, "true");
  }
  static std::uint64_t behind(Runtime& rt) { return rt.statistics().workers.back().posted_behind; }
};

const auto kStep = Codelet("step", [](int by, int& v) { v = CudaGraphs::stepped(v, by); })
                       .cuda(kSource, "step", [](int, int&) { return 1; })
                       .can_run(on_cuda);
void expect_replays_of_a_chain(Runtime& rt, int tasks, int replays) {
  int value = 1, expected = 1;
  auto x = rt.data(value);
  Graph graph = rt.record([&] {
    for (int i = 0; i < tasks; ++i) rt.submit(kStep, i, read_write(x));
  });
  for (int replay = 0; replay < replays; ++replay) {
    rt.replay(graph);
    for (int i = 0; i < tasks; ++i) expected = CudaGraphs::stepped(expected, i);
  }
  rt.wait(x);
  EXPECT_EQ(value, expected);
}
/// Two kernels.
const auto kTwoSteps = Codelet("two steps", [](int, int&) {})
                           .cuda([](CudaQueue& queue, int by, int& v) {
                             CudaGraphs::launch_step(queue, by, v);
                             CudaGraphs::launch_step(queue, by + 1, v);
                           })
                           .can_run(on_cuda);
/// A kernel before and one behind the use of scratch memory, with which it leaves a batch.
const auto kStepsWithScratch = Codelet("scratch", [](int, int&) {})
                                   .cuda([](CudaQueue& queue, int by, int& v) {
                                     CudaGraphs::launch_step(queue, by, v);
                                     queue.scratch(64);
                                     CudaGraphs::launch_step(queue, by + 1, v);
                                   })
                                   .can_run(on_cuda);
/// Which reads its value: none is posted behind it.
const auto kReadingStep = Codelet("reading", [](int, int&) {})
                              .cuda([](CudaQueue& queue, int by, int& v) {
                                CudaGraphs::launch_step(queue, by, v);
                                queue.read_int(&v, [](int) {});
                              })
                              .can_run(on_cuda);

TEST_F(CudaGraphs, LaunchWhatComesAgain) {
  control.event_ns = 1'000;  // or kernels that take long on a slow machine are launched one by one
  for (const char* sched : {"lws", "plan"}) {
    auto rt = start_with_graphs(sched);
    const int kernels_before = control.kernels, launches_before = control.graph_launches;
    expect_replays_of_a_chain(*rt, 100, 20);
    EXPECT_EQ(control.kernels - kernels_before, 2'000);
    EXPECT_GT(behind(*rt), 1'000U) << sched;
    EXPECT_GT(control.graph_launches, launches_before + 20) << sched;
    EXPECT_GT(control.graphs, 0);
  }
}

TEST_F(CudaGraphs, AreNotMadeOfWhatChangesEachTime) {
  auto rt = start_with_graphs();
  int value = 1, expected = 1;
  auto x = rt->data(value);
  for (int i = 0; i < 3'000; ++i) {
    rt->submit(kStep, i, read_write(x));
    expected = stepped(expected, i);
  }
  rt->wait(x);
  EXPECT_EQ(value, expected);
  EXPECT_EQ(control.graph_launches, 0);
}

TEST_F(CudaGraphs, AreDoneWithoutWhereTheDriverRefusesThem) {
  auto rt = start_with_graphs();
  control.refuse_graphs = true;
  expect_replays_of_a_chain(*rt, 50, 10);
  EXPECT_EQ(control.graph_launches, 0);
}

TEST_F(CudaGraphs, KeepTheOrderOfAllThatIsPosted) {
  int launches = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    std::mt19937_64 random(seed);
    auto rt = start_with_graphs(random() % 2 == 0 ? "lws" : "plan");
    control.graph_launches = 0;
    control.kernel_ns = random() % 2 == 0 ? 0 : 5'000;
    Numbers numbers(*rt, 1 + random() % 3);
    for (int& value : numbers.values) value = 1;
    std::vector<int> expected = numbers.values;
    struct Step {
      unsigned kind, at;
      int by;
    };
    std::vector<Step> steps(20 + random() % 100);
    const auto draw = [&random](std::size_t below) { return static_cast<unsigned>(random() % below); };
    for (Step& step : steps) step = {draw(20), draw(expected.size()), static_cast<int>(draw(3))};
    std::vector<TaskRef> tasks;
    Graph graph = rt->record([&] {
      for (const Step& step : steps) {
        const auto& x = numbers.data[step.at];
        if (step.kind == 0) rt->submit(kStepsWithScratch, step.by, read_write(x));
        else if (step.kind == 1) rt->submit(kReadingStep, step.by, read_write(x));
        else if (step.kind < 6) rt->submit(kTwoSteps, step.by, read_write(x));
        else rt->submit(kStep, step.by, read_write(x));
      }
    });
    for (int replay = 0; replay < 8; ++replay) {
      rt->replay(graph);
      // One more between two replays, which a core runs.
      const auto core_step = [](int& v) { v = stepped(v, 5); };
      const bool has_more = random() % 3 == 0;
      if (has_more) rt->submit("core", core_step, read_write(numbers.data[0]));
      for (const Step& step : steps) {
        int& value = expected[step.at];
        value = stepped(value, step.by);
        if (step.kind == 0 || (step.kind > 1 && step.kind < 6)) value = stepped(value, step.by + 1);
      }
      if (has_more) expected[0] = stepped(expected[0], 5);
    }
    EXPECT_EQ(numbers.result(), expected) << "seed " << seed;
    launches += control.graph_launches;
  }
  EXPECT_GT(launches, 40);
}

TEST_F(CudaGraphs, SayWhichTaskADeviceRefusesLater) {
  auto rt = start_with_graphs();
  control.event_ns = 1'000;  // or kernels that take long on a slow machine are launched one by one
  int value = 1;
  auto x = rt->data("x", value);
  Graph graph = rt->record([&] {
    for (int i = 0; i < 200; ++i) rt->submit(kStep, i, read_write(x));
  });
  for (int replay = 0; replay < 4; ++replay) rt->replay(graph);
  rt->wait();
  EXPECT_GT(control.graph_launches, 0);
  control.refuse_launches = 20;
  rt->replay(graph);
  EXPECT_THAT(thrown_by<DeviceError>([&] { rt->wait(); }),
              AllOf(HasSubstr("step"), HasSubstr("cuda 0 (Fake)"), HasSubstr("OUT_OF_RESOURCES")));
}

TEST_F(CudaGraphs, FailWithTheDevice) {
  auto rt = start_with_graphs();
  int value = 1;
  auto x = rt->data("x", value);
  Graph graph = rt->record([&] {
    for (int i = 0; i < 100; ++i) rt->submit(kStep, i, read_write(x));
  });
  for (int replay = 0; replay < 5; ++replay) rt->replay(graph);
  rt->wait();
  control.lose_at = 60;
  rt->replay(graph);
  EXPECT_THAT(thrown_by<DeviceError>([&] { rt->wait(); }),
              AllOf(HasSubstr("step"), HasSubstr("CUDA_ERROR_LAUNCH_FAILED")));
}

TEST_F(Cuda, WaitsForWhatAFunctionHasPostedBeforeItThrew) {
  auto rt = start();
  control.kernel_ns = 5'000'000;
  int value = 0;
  auto x = rt->data("x", value);
  const auto fails = Codelet("fails", [](int&) {}).cuda([](CudaQueue& queue, int& v) {
    const int by = 1;
    const CudaArgument arguments[] = {{&by, sizeof(by)}, {&v, 0}};
    queue.launch({kSource, "bump", ""}, arguments, 1);
    throw std::runtime_error("changed its mind");
  });
  rt->submit(fails.can_run(on_cuda), write(x));
  EXPECT_THAT(thrown_by<std::runtime_error>([&] { rt->wait(); }), HasSubstr("changed its mind"));
  EXPECT_EQ(control.kernels, 1);
  EXPECT_EQ(control.kernels_now, 0);
}

TEST_F(Cuda, LeavesTasksToCoresWhenALibraryIsMissing) {
  auto rt = start(1);
  control.has_blas = false;
  const auto by_blas = Codelet("by blas", [](int& v) { v = 1; }).cuda([](CudaQueue& queue, int&) { queue.blas(); });
  Numbers numbers(*rt, 8);
  for (const auto& x : numbers.data) rt->submit(by_blas, read_write(x));
  EXPECT_EQ(numbers.result(), std::vector<int>(8, 1));
  rt->submit(by_blas.can_run(on_cuda), read_write(numbers.data[0]));
  EXPECT_THAT(thrown_by<DeviceError>([&] { rt->wait(); }), HasSubstr("cuBLAS gives no handle"));
}

TEST_F(Cuda, LeavesTheContextOfTheProgramsThreadAlone) {
  int of_program = 0;
  const auto set = fake_cuda::function<int(void*)>(TANDEM_FAKE_CUDA, "cuCtxSetCurrent");
  const auto get = fake_cuda::function<int(void**)>(TANDEM_FAKE_CUDA, "cuCtxGetCurrent");
  set(&of_program);
  void* now = nullptr;
  {
    auto rt = start(1, "0", "2");
    get(&now);
    EXPECT_EQ(now, &of_program);
    Numbers numbers(*rt, 8);
    numbers.bump_each(kBump, 1);
    EXPECT_EQ(numbers.result(), std::vector<int>(8, 1));
    const PageLock lock(*rt, numbers.values.data(), numbers.values.size() * sizeof(int));
  }
  get(&now);
  EXPECT_EQ(now, &of_program);
  set(nullptr);
}

TEST_F(Cuda, CopiesPagesThatAreLockedAtOnce) {
  Runtime rt(Options{.workers = 1, .more = {{"cuda", "1"}, {"cuda.libraries", TANDEM_FAKE_CUDA}, {"ranks", "alone"}}});
  control.pageable_copies = 0;  // those that measured the links
  std::vector<Word> x(10'000, 2), y(10'000, 1);
  const PageLock lock_x(rt, x.data(), x.size() * sizeof(Word));
  {
    const PageLock lock_y(rt, y.data(), y.size() * sizeof(Word));
    auto hx = rt.data(x), hy = rt.data(y);
    rt.submit(kAxpy.can_run(on_cuda), Word{1}, read(hx), read_write(hy));
    rt.wait(hy);
    EXPECT_EQ(control.pageable_copies, 0);
  }
  auto hy = rt.data(y);
  rt.submit(kAxpy.can_run(on_cuda), Word{1}, read(rt.data(x)), read_write(hy));
  rt.wait(hy);
  EXPECT_EQ(y, std::vector<Word>(10'000, 5));
  EXPECT_EQ(control.pageable_copies, 2) << "y to the device and back";
}

/// Beside a runtime with a CUDA device, for page-locked memory.
struct PageLocked : Cuda {
  std::unique_ptr<Runtime> start_with(const std::string& page_locked, const std::string& memory = "0") {
    return std::make_unique<Runtime>(Options{.workers = 1,
                                             .more = {{"cuda", "1"},
                                                      {"cuda.libraries", TANDEM_FAKE_CUDA},
                                                      {"cuda.memory", memory},
                                                      {"cuda.page_locked", page_locked},
                                                      {"sched", "lws"},
                                                      {"ranks", "alone"}}});
  }
  /// Data that Tandem allocates goes to the device and back, some times. Returns its values.
  std::vector<Word> go_to_and_fro(Runtime& rt, int rounds = 3) {
    std::vector<Word> found;
    for (int round = 0; round < rounds; ++round) {
      auto x = rt.vector<Word>("x", kCount), y = rt.vector<Word>("y", kCount);
      const auto fill = [](std::span<Word> values) { std::fill(values.begin(), values.end(), 2); };
      rt.submit("fill", fill, write(x));
      rt.submit("fill", fill, write(y));
      rt.submit(kAxpy.can_run(on_cuda), Word{3}, read(x), read_write(y));
      rt.submit("read", [&](std::span<const Word> values) { found.push_back(values[kCount - 1]); }, read(y));
      rt.wait();
    }
    return found;
  }
  static constexpr std::size_t kCount = 100'000;
};

TEST_F(PageLocked, DataThatTandemAllocatesIsCopiedAtOnce) {
  auto rt = start_with("64MiB");
  EXPECT_EQ(go_to_and_fro(*rt, 6), std::vector<Word>(6, 8));
  EXPECT_EQ(control.pageable_copies, 0);
  const auto report = rt->statistics().page_locked;
  EXPECT_EQ(report.bound, std::size_t{64} << 20);
  EXPECT_EQ(report.allocations, 12U);
  EXPECT_LE(report.from_driver, 4U) << "later rounds use what those before the last one have left";
  EXPECT_GE(report.most_used, 2 * kCount * sizeof(Word));
  EXPECT_THAT(rt->statistics().table(), HasSubstr("page-locked memory: "));
}

TEST_F(PageLocked, IsNotThereWithoutDevicesOrWithABoundOfNothing) {
  {
    Runtime rt(Options{.workers = 1, .more = {{"cuda.libraries", TANDEM_FAKE_CUDA}, {"ranks", "alone"}}});
    EXPECT_EQ(rt.statistics().page_locked.bound, 0U);
    EXPECT_EQ(control.host_allocations, 0);
    EXPECT_EQ(control.contexts, 0);
    EXPECT_EQ(control.graphs, 0);
  }
  auto rt = start_with("0");
  EXPECT_EQ(go_to_and_fro(*rt, 1), std::vector<Word>{8});
  EXPECT_GT(control.pageable_copies, 0);
  EXPECT_EQ(rt->statistics().page_locked.allocations, 0U);
  EXPECT_THAT(rt->statistics().table(), testing::Not(HasSubstr("page-locked")));
}

TEST_F(PageLocked, GoesOnWithPlainMemoryWhenTheDriverRefuses) {
  testing::internal::CaptureStderr();
  {
    auto rt = start_with("64MiB");
    control.host_bytes = 900'000;  // one of the two vectors
    EXPECT_EQ(go_to_and_fro(*rt), (std::vector<Word>{8, 8, 8}));
    EXPECT_GT(control.pageable_copies, 0);
    const auto report = rt->statistics().page_locked;
    EXPECT_GE(report.allocations, 2U) << "one piece of memory, which is used again";
    EXPECT_EQ(report.from_driver, 1U);
    EXPECT_EQ(report.allocations + report.refused, 6U);
  }
  const std::string said = testing::internal::GetCapturedStderr();
  const std::size_t first = said.find("CUDA_ERROR_OUT_OF_MEMORY");
  EXPECT_NE(first, std::string::npos) << said;
  EXPECT_EQ(said.find("CUDA_ERROR_OUT_OF_MEMORY", first + 1), std::string::npos) << said;
}

TEST_F(PageLocked, ColumnsWithGapsPassThroughIt) {
  for (const bool has_some : {true, false}) {
    auto rt = start_with(has_some ? "64MiB" : "0");
    control.copies_of_columns = 0;
    constexpr std::size_t kSize = 40, kLeading = 70;
    std::vector<Word> a(kLeading * kSize), b(kLeading * kSize), c(kLeading * kSize, 1);
    for (std::size_t i = 0; i < a.size(); ++i) a[i] = i % 13, b[i] = i % 7;
    std::vector<Word> expected = c;
    const auto view = [](std::vector<Word>& of) { return MatrixView<Word>{of.data(), kSize, kSize, kLeading}; };
    const auto constant = [](std::vector<Word>& of) { return ConstMatrix{of.data(), kSize, kSize, kLeading}; };
    multiply(constant(a), constant(b), view(expected));
    auto ha = rt->data("a", view(a)), hb = rt->data("b", view(b)), hc = rt->data("c", view(c));
    rt->submit(kGemm.can_run(on_cuda), read(ha), read(hb), read_write(hc));
    rt->wait(hc);
    EXPECT_EQ(c, expected) << "rows between the columns' ends are as they were";
    EXPECT_EQ(control.copies_of_columns, has_some ? 0 : 4);
    EXPECT_EQ(rt->statistics().page_locked.allocations, has_some ? 4U : 0U);
    EXPECT_EQ(rt->statistics().page_locked.used, 0U) << "given back with the copy";
    if (!has_some) continue;
    std::vector<Word> pages = a;
    const PageLock lock(*rt, pages.data(), pages.size() * sizeof(Word));
    auto locked = rt->data("locked", view(pages));
    rt->submit(kGemm.can_run(on_cuda), read(locked), read(hb), read_write(hc));
    rt->wait();
    EXPECT_EQ(control.copies_of_columns, 1) << "the device reads locked memory itself";
  }
}

TEST_F(PageLocked, ValuesThatLeaveADeviceGoToIt) {
  auto rt = start_with("64MiB", std::to_string(3 * 10'000 * sizeof(Word)));
  std::vector<Data<Vector<Word>>> all;
  for (int i = 0; i < 8; ++i) {
    all.push_back(rt->vector<Word>("x" + std::to_string(i), 10'000));
    rt->submit("fill", [i](std::span<Word> values) { std::fill(values.begin(), values.end(), i); }, write(all.back()));
  }
  for (int round = 0; round < 3; ++round)
    for (int i = 1; i < 8; ++i) rt->submit(kAxpy.can_run(on_cuda), Word{1}, read(all[i - 1]), read_write(all[i]));
  std::vector<Word> values(8), expected{0, 1, 2, 3, 4, 5, 6, 7};
  for (int round = 0; round < 3; ++round)
    for (int i = 1; i < 8; ++i) expected[i] += expected[i - 1];
  for (int i = 0; i < 8; ++i)
    rt->submit("read", [&values, i](std::span<const Word> from) { values[i] = from[9'999]; }, read(all[i]));
  rt->wait();
  EXPECT_EQ(values, expected);
  EXPECT_EQ(control.pageable_copies, 0);
}

// Three ranks, each with a device: rank 0 writes on its device, the others read what arrives on theirs, and rank 0
// reads their answers.
TEST_F(PageLocked, ValuesFromOtherRanksArriveInIt) {
  constexpr std::uint32_t kRanks = 3;
  constexpr int kRounds = 4;
  comm::LoopNetwork network({.ranks = kRanks});
  std::vector<std::string> errors(kRanks);
  std::vector<std::uint64_t> allocations(kRanks, 0);
  std::vector<Word> found;
  const auto play = [&](std::uint32_t rank) {
    auto resources = test::test_resources();
    const base::Config config = test::test_config(
        {.workers = 1,
         .more = {
             {"cuda", "1"}, {"cuda.libraries", TANDEM_FAKE_CUDA}, {"cuda.page_locked", "64MiB"}, {"bind", "false"}}});
    runtime::World world = make_real_world(config, *resources);
    add_cuda_devices(world, config, *resources->log);
    auto endpoint = comm::Endpoint::open_loop(network, comm::Rank(rank), {}, *resources->log, nullptr);
    Runtime rt(std::move(resources), std::move(world), core_options(config), std::move(endpoint), {}, nullptr);
    auto x = rt.vector<Word>("x", kCount, DataOptions{.owner = 0});
    std::vector<Data<Vector<Word>>> answers;
    for (std::uint32_t i = 0; i < kRanks; ++i)
      answers.push_back(rt.vector<Word>("answer", kCount, DataOptions{.owner = static_cast<int>(i)}));
    const auto fill = [](std::span<Word> values) { std::fill(values.begin(), values.end(), 1); };
    rt.submit("fill", fill, write(x));
    for (const auto& answer : answers) rt.submit("fill", fill, write(answer));
    for (int round = 0; round < kRounds; ++round) {
      rt.submit(kAxpy.can_run(on_cuda), Word{1}, read(answers[0]), read_write(x));
      for (const auto& answer : answers) rt.submit(kAxpy.can_run(on_cuda), Word{2}, read(x), read_write(answer));
      for (std::uint32_t i = 1; i < kRanks; ++i)
        rt.submit(kAxpy.can_run(on_cuda), Word{1}, read(answers[i]), read_write(x));
    }
    auto result = rt.vector<Word>("result", 1, DataOptions{.owner = 0});
    rt.submit("read", [&](std::span<const Word> values, std::span<Word>) { found.push_back(values[kCount - 1]); },
              read(x), write(result));
    rt.wait();
    allocations[rank] = rt.statistics().page_locked.allocations;
    EXPECT_EQ(rt.statistics().page_locked.refused, 0U);
  };
  std::vector<std::thread> threads;
  for (std::uint32_t rank = 0; rank < kRanks; ++rank)
    threads.emplace_back([&, rank] {
      try {
        play(rank);
      } catch (const std::exception& error) {
        errors[rank] = error.what();
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(errors, std::vector<std::string>(kRanks));
  Word x = 1, answer = 1;  // all answers are the same
  for (int round = 0; round < kRounds; ++round) {
    x += answer;
    answer += 2 * x;
    x += (kRanks - 1) * answer;
  }
  EXPECT_EQ(found, std::vector<Word>{x});
  EXPECT_EQ(control.pageable_copies, 0) << "from and to what the ranks have received";
  for (std::uint32_t rank = 1; rank < kRanks; ++rank)
    EXPECT_GE(allocations[rank], 2U) << "its answer, and x that arrives";
}

TEST(CudaDriver, IsNamedWhenItIsMissing) {
  const auto module = runtime::load_cuda();
  ASSERT_TRUE(module.ok()) << module.error().message;
  const auto found = module.value()->find("/nonexistent");
  if (found.ok()) GTEST_SKIP() << "the driver is where the dynamic loader looks";
  EXPECT_THAT(found.error().message, AllOf(HasSubstr("CUDA driver"), HasSubstr("libcuda.so.1")));
  EXPECT_THAT(thrown_by<StartError>([] {
                Runtime(Options{.more = {{"cuda", "1"}, {"cuda.libraries", "/nonexistent"}, {"ranks", "alone"}}});
              }),
              HasSubstr("option cuda asks for devices, and there is no CUDA driver here"));
}

struct RealCuda : testing::Test {
  void SetUp() override {
    const auto found = runtime::load_cuda().value()->find("");
    if (!found.ok()) GTEST_SKIP() << found.error().message;
    if (found.value().empty()) GTEST_SKIP() << "the CUDA driver has no device";
  }
};

TEST_F(RealCuda, RunsAKernelOnADevice) {
  Runtime rt(Options{.workers = 1, .more = {{"cuda", "1"}, {"ranks", "alone"}}});
  std::vector<Word> x(1'000'000, 2), y(1'000'000, 1);
  auto hx = rt.data(x), hy = rt.data(y);
  for (int i = 0; i < 10; ++i) rt.submit(kAxpy.can_run(on_cuda), Word{3}, read(hx), read_write(hy));
  rt.wait(hy);
  EXPECT_EQ(y, std::vector<Word>(1'000'000, 61));
}

// What the ends of tasks in a graph rely on: its events count as recorded once it is launched, and not before they have
// passed.
TEST_F(RealCuda, LaunchesGraphs) {
  Runtime rt(
      Options{.workers = 1, .sched = "lws", .more = {{"cuda", "1"}, {"cuda.graphs", "true"}, {"ranks", "alone"}}});
  int value = 1, expected = 1;
  auto x = rt.data(value);
  Graph graph = rt.record([&] {
    for (int i = 0; i < 200; ++i) rt.submit(kStep, i, read_write(x));
  });
  for (int replay = 0; replay < 50; ++replay) {
    rt.replay(graph);
    for (int i = 0; i < 200; ++i) expected = CudaGraphs::stepped(expected, i);
    int seen = 0;
    rt.submit("see", [&seen](const int& v) { seen = v; }, read(x));
    rt.wait();
    ASSERT_EQ(seen, expected) << replay;
  }
}

TEST_F(RealCuda, AddsToPrivateCopies) {
  Runtime rt(Options{.workers = 2, .more = {{"cuda", "1"}, {"ranks", "alone"}}});
  std::vector<Word> x(1'000'000, 2), y(1'000'000, 1);
  auto hx = rt.data(x), hy = rt.data(y);
  test::add_up(hy);
  for (Word a = 1; a <= 40; ++a) rt.submit(a % 4 == 0 ? kAxpy : kAxpy.can_run(on_cuda), a, read(hx), reduce(hy));
  rt.wait(hy);
  EXPECT_EQ(y, std::vector<Word>(1'000'000, 1 + 820 * 2));
}

}  // namespace
}  // namespace tandem::devices_test
