// tandem/api/opencl_test.cpp: OpenCL devices: kernels in OpenCL C, random flows between main memory and the device,
// numbers of copies.
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <dlfcn.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/api/opencl_devices.hpp"
#include "tandem/api/device_test_support.hpp"
#include "tandem/api/test_support.hpp"
#include "tandem/device.hpp"
#include "tandem/opencl.hpp"
#include "tandem/runtime/device/opencl/load_opencl.hpp"
#include "tandem/runtime/memory/out_of_memory.hpp"

namespace tandem::opencl_test {
namespace {

using test::ConstMatrix;
using test::CountingCopier;
using test::multiply;
using test::thrown_by;
using test::Word;
using testing::AllOf;
using testing::HasSubstr;

bool on_opencl(const WorkerDescription& worker) { return worker.device == DeviceKind::opencl; }

/// Why there is nothing to test; empty: there is a device.
std::string missing() {
  const auto module = runtime::load_opencl();
  if (!module.ok()) return module.error().message;
  return module.value()->find().empty() ? "there is no OpenCL device here; pocl-opencl-icd is one" : "";
}

struct OpenCl : testing::Test {
  void SetUp() override {
    if (const std::string why = missing(); !why.empty()) GTEST_SKIP() << why;
  }
  /// Makes a runtime with `workers` cores and one device, and counts its copies.
  std::unique_ptr<Runtime> start(unsigned workers = 2, const std::string& memory = "0",
                                 const std::string& devices = "1", const std::string& sched = "lws") {
    auto resources = test::test_resources();
    const base::Config config = test::test_config(
        {.workers = workers, .sched = sched, .more = {{"opencl", devices}, {"opencl.memory", memory}}});
    runtime::World world = make_real_world(config, *resources);
    add_opencl_devices(world, config, *resources->log);
    for (auto& [node, copier] : world.nodes) copier = std::make_unique<CountingCopier>(std::move(copier), bytes);
    return std::make_unique<Runtime>(std::move(resources), std::move(world), core_options(config));
  }
  CountingCopier::Bytes bytes;
};

constexpr const char* kSource = R"(
  __kernel void axpy(ulong a, __global const ulong* x, ulong nx, __global ulong* y, ulong ny) {
    size_t i = get_global_id(0);
    y[i] += a * x[i];
  }
  __kernel void gemm(__global const ulong* a, ulong m, ulong k, ulong lda, __global const ulong* b, ulong kb, ulong n, ulong ldb,
                     __global ulong* c, ulong mc, ulong nc, ulong ldc) {
    size_t i = get_global_id(0), j = get_global_id(1);
    ulong sum = 0;
    for (ulong l = 0; l < k; ++l) sum += a[i + l * lda] * b[l + j * ldb];
    c[i + j * ldc] += sum;
  }
  __kernel void bump(int by, __global int* value) { *value += by; }
)";


const auto kAxpy = Codelet("axpy", [](Word a, std::span<const Word> x, std::span<Word> y) {
                     for (std::size_t i = 0; i < x.size(); ++i) y[i] += a * x[i];
                   }).opencl(kSource, "axpy", [](Word, std::span<const Word> x, std::span<Word>) { return x.size(); });

const auto kGemm = Codelet("gemm", multiply).opencl(kSource, "gemm", [](ConstMatrix, ConstMatrix, MatrixView<Word> c) {
  return OpenClRange(c.rows, c.cols);
});

TEST_F(OpenCl, RunsAKernelInOpenClC) {
  auto rt = start();
  test::expect_a_kernel_runs(*rt, bytes, kAxpy.can_run(on_opencl));
}

TEST_F(OpenCl, TakesMatricesWithAnyLeadingDimension) {
  auto rt = start();
  test::expect_any_leading_dimension(*rt, kGemm.can_run(on_opencl));
}

TEST_F(OpenCl, TakesScalarsAndValues) {
  auto rt = start();
  const auto bump = Codelet("bump", [](int by, int& v) { v += by; }).opencl(kSource, "bump",
                                                                            [](int, int&) { return 1; });
  test::expect_scalars_and_values(*rt, bump.can_run(on_opencl));
}

TEST_F(OpenCl, TakesAnyNumberOfArguments) {
  constexpr std::size_t kMatrices = 17;
  std::string source = "__kernel void sum(__global ulong* m0, ulong rows0, ulong cols0, ulong ld0";
  std::string body = ") { *m0 += 0";
  for (std::size_t i = 1; i < kMatrices; ++i) {
    const std::string n = std::to_string(i);
    source += ", __global const ulong* m" + n + ", ulong rows" + n + ", ulong cols" + n + ", ulong ld" + n;
    body += " + *m" + n + " * rows" + n + " * cols" + n;
  }
  const auto sum = Codelet("sum", [](MatrixView<Word> to, auto... from) { to(0, 0) += (from(0, 0) + ...); })
                       .opencl(source + body + "; }", "sum", [](auto...) { return 1; });
  auto rt = start();
  std::vector<std::vector<Word>> values(kMatrices, std::vector<Word>(6, 1));
  std::vector<Data<Matrix<Word>>> data;
  for (std::size_t i = 0; i < kMatrices; ++i) {
    values[i][0] = i;
    data.push_back(rt->data(MatrixView<Word>{values[i].data(), 2, 3, 2}));
  }
  [&]<std::size_t... i>(std::index_sequence<i...>) {
    rt->submit(sum.can_run(on_opencl), read_write(data[0]), read(data[i + 1])...);
  }(std::make_index_sequence<kMatrices - 1>());
  rt->wait(data[0]);
  EXPECT_EQ(values[0][0], 6U * 16 * 17 / 2);
}

/// Type of OpenCL's clEnqueueFillBuffer, for the program's own calls; the module that uses OpenCL has loaded the
/// library.
using FillBuffer = int(void* queue, void* memory, const void* pattern, std::size_t pattern_bytes, std::size_t offset,
                       std::size_t bytes, unsigned wait_count, const void* waits, void* event);
FillBuffer* fill_buffer() {
  void* const library = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
  return library != nullptr ? reinterpret_cast<FillBuffer*>(dlsym(library, "clEnqueueFillBuffer")) : nullptr;
}

// The task first launches a short kernel, then posts long work by its own calls.
TEST_F(OpenCl, ATaskEndsWithWhatItPostsToTheNativeQueue) {
  FillBuffer* const fill = fill_buffer();
  ASSERT_NE(fill, nullptr);
  auto rt = start(1);
  constexpr std::size_t kCount = 2'000'000;
  constexpr Word kTimes = 20;
  std::vector<Word> x(kCount, 0);
  int first = 0;
  auto hx = rt->data("x", x);
  auto hf = rt->data("first", first);
  const auto post = Codelet("post", [](int&, std::span<Word>) {
                    }).also(DeviceKind::opencl, [fill](const Context& context, int& v, std::span<Word> to) {
    auto& queue = *static_cast<OpenClQueue*>(context.queue);
    const int by = 1;
    const OpenClArgument arguments[] = {{&by, sizeof(by)}, {&v, 0}};
    queue.launch({kSource, "bump", ""}, arguments, 1);
    for (Word i = 1; i <= kTimes; ++i)
      if (fill(queue.native_queue(), queue.native_memory(to.data()), &i, sizeof(i), 0, kCount * sizeof(Word), 0,
               nullptr, nullptr) != 0)
        throw std::runtime_error("no fill");
  });
  for (int round = 1; round <= 3; ++round) {
    rt->submit(post.can_run(on_opencl), read_write(hf), write(hx));
    rt->wait(hx);
    rt->wait(hf);
    EXPECT_EQ(first, round);
    ASSERT_EQ(x, std::vector<Word>(kCount, kTimes)) << "in round " << round;
    std::fill(x.begin(), x.end(), 0);
    rt->submit("clear", [](std::span<Word>) {}, write(hx));
  }
}

// The values that the first kernel has written are nowhere else, so a core must not go on with them.
TEST_F(OpenCl, ATaskThatIsRefusedBehindALaunchRunsNowhereElse) {
  auto rt = start(1);
  int value = 0;
  auto x = rt->data("x", value);
  const auto bump =
      Codelet("bump", [](int by, int& v) { v += by; }).opencl(kSource, "bump", [](int, int&) { return 1; });
  const auto twice =
      Codelet("twice", [](int& v) { v += 2; }).also(DeviceKind::opencl, [](const Context& context, int& v) {
        const int by = 1;
        const OpenClArgument arguments[] = {{&by, sizeof(by)}, {&v, 0}};
        static_cast<OpenClQueue*>(context.queue)->launch({kSource, "bump", ""}, arguments, 1);
        throw DeviceError(DeviceEffect::refused, "no second launch");
      });
  rt->submit(bump.can_run(on_opencl), 1, read_write(x));
  rt->submit(twice.prefer_devices(), read_write(x));
  try {
    rt->wait(x);
    EXPECT_EQ(value, 3) << "a core has run it from the beginning";
  } catch (const DeviceError& error) {
    EXPECT_THAT(error.what(), HasSubstr("no second launch"));
  }
}

TEST_F(OpenCl, LaunchesASourceThatIsKeptWithoutReadingItAgain) {
  auto rt = start(1);
  const auto source = std::make_shared<OpenClSource>(OpenClSource{kSource, "bump", ""});
  int value = 0;
  auto x = rt->data(value);
  const auto bump = Codelet("bump", [](int&) {}).also(DeviceKind::opencl, [source](const Context& context, int& v) {
    const int by = 1;
    const OpenClArgument arguments[] = {{&by, sizeof(by)}, {&v, 0}};
    static_cast<OpenClQueue*>(context.queue)->launch_kept(source, arguments, 1);
  });
  rt->submit(bump.can_run(on_opencl), read_write(x));
  rt->wait(x);
  source->text = "nonsense";
  rt->submit(bump.can_run(on_opencl), read_write(x));
  rt->wait(x);
  EXPECT_EQ(value, 2);
}

TEST_F(OpenCl, ARangeThatTheDeviceCannotRunIsAnError) {
  auto rt = start(1);
  int value = 0;
  auto x = rt->data("x", value);
  const auto bump = Codelet("bump", [](int by, int& v) { v += by; }).opencl(kSource, "bump", [](int, int&) {
    OpenClRange range(1'000'000);
    range.local = {1'000'000, 1, 1};
    return range;
  });
  rt->submit(bump.prefer_devices().can_run(on_opencl), 1, read_write(x));
  EXPECT_THAT(thrown_by<UsageError>([&] { rt->wait(); }),
              AllOf(HasSubstr("OpenCL kernel 'bump'"), HasSubstr("opencl 0"), HasSubstr("CL_INVALID_WORK")));
}

TEST_F(OpenCl, WarnsOfFewerDevicesThanTheOptionAsksFor) {
  const std::size_t count = runtime::load_opencl().value()->find().size();
  testing::internal::CaptureStderr();
  Runtime(Options{.workers = 1, .more = {{"opencl", std::to_string(count + 1)}, {"ranks", "alone"}}});
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("option opencl asks for " + std::to_string(count + 1) + " devices, and this machine has " +
                        std::to_string(count) + " OpenCL device"));
}

TEST_F(OpenCl, CopiesWhatItMustAndNoMore) {
  auto rt = start(1);
  test::expect_fewest_copies(*rt, bytes, kAxpy.can_run(on_opencl));
}

TEST_F(OpenCl, AddsToPrivateCopies) {
  auto rt = start(1);
  test::expect_sums(*rt, bytes, kAxpy, DeviceKind::opencl);
}

TEST_F(OpenCl, RandomFlowsGiveWhatSequentialExecutionGives) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    test::RandomDeviceFlow flow(seed, DeviceKind::opencl);
    // Some runs have memory for only a few matrices at a time.
    static const char* const kSchedulers[] = {"lws", "dm", "dmda", "dmdas", "dmdar", "heteroprio", "darts", "plan"};
    const unsigned workers = 1 + flow.draw(3);
    auto rt = start(workers, flow.draw(2) == 0 ? "0" : std::to_string(flow.bytes_of_one * (3 + flow.draw(3))), "1",
                    kSchedulers[seed % 4]);
    ASSERT_TRUE(flow.play(std::move(rt), kAxpy, kGemm)) << "seed " << seed;
  }
}

// PoCL shows several devices when POCL_DEVICES names several.
TEST_F(OpenCl, CopiesBetweenTwoDevices) {
  if (runtime::load_opencl().value()->find().size() < 2) GTEST_SKIP() << "there is one OpenCL device only";
  auto rt = start(1, "0", "2");
  test::expect_copies_between_two_devices(*rt, bytes, kAxpy);
}

TEST_F(OpenCl, PostsTasksBehindTheOneThatTheyWaitFor) {
  // Two chains that meet are replayed; the values show the order of kernels.
  std::vector<std::vector<Word>> results;
  for (const char* const stretch : {"1", "16"}) {
    const bool is_off = std::string(stretch) == "1";
    auto resources = test::test_resources();
    const base::Config config =
        test::test_config({.workers = 1, .sched = "lws", .more = {{"opencl", "1"}, {"device_stretch", stretch}}});
    runtime::World world = make_real_world(config, *resources);
    add_opencl_devices(world, config, *resources->log);
    Runtime rt(std::move(resources), std::move(world), core_options(config));
    std::vector<Word> x(50, 1), y(50, 2);
    auto hx = rt.data("x", x), hy = rt.data("y", y);
    const auto axpy = kAxpy.can_run(on_opencl);
    Graph graph = rt.record([&] {
      for (Word i = 0; i < 40; ++i) {
        rt.submit(axpy, i, read(hx), read_write(hy));
        if (i % 5 == 4) rt.submit(axpy, i + 1, read(hy), read_write(hx));
      }
    });
    for (int replay = 0; replay < 20; ++replay) rt.replay(graph);
    rt.wait(hx);
    rt.wait(hy);
    results.push_back(x);
    results.push_back(y);
    std::uint64_t behind = 0;
    for (const auto& worker : rt.statistics().workers) behind += worker.posted_behind;
    EXPECT_EQ(behind == 0, is_off) << behind;
  }
  EXPECT_EQ(results[0], results[2]);
  EXPECT_EQ(results[1], results[3]);
}

TEST_F(OpenCl, SaysWhatTheCompilerSays) {
  auto rt = start();
  int value = 1;
  auto x = rt->data("x", value);
  const auto bad = Codelet("bad", [](int&) {}).opencl("__kernel void bad(__global int* v) { *v = nonsense; }", "bad",
                                                      [](int&) { return 1; });
  rt->submit(bad.can_run(on_opencl), read_write(x));
  EXPECT_THAT(thrown_by<std::runtime_error>([&] { rt->wait(); }),
              AllOf(HasSubstr("kernel 'bad' does not compile"), HasSubstr("nonsense")));
  const auto missing_one = Codelet("missing", [](int&) {}).opencl(kSource, "no_such", [](int&) { return 1; });
  rt->submit(missing_one.can_run(on_opencl), write(x));
  EXPECT_THAT(thrown_by<std::runtime_error>([&] { rt->wait(); }), HasSubstr("no kernel 'no_such'"));
  const auto other = Codelet("other", [](int&) {}).opencl(kSource, "bump", [](int&) { return 1; });
  rt->submit(other.can_run(on_opencl), write(x));
  EXPECT_THAT(thrown_by<std::runtime_error>([&] { rt->wait(); }),
              HasSubstr("'bump' has 2 parameters, and what is submitted makes 1"));
}

TEST_F(OpenCl, GivesTasksThatDoNotFitToCores) {
  auto rt = start(1, "100");
  std::vector<Word> x(1'000, 2), y(1'000, 1);
  auto hx = rt->data("x", x), hy = rt->data("y", y);
  for (int i = 0; i < 10; ++i) rt->submit(kAxpy, Word{3}, read(hx), read_write(hy));
  rt->wait();
  EXPECT_EQ(y, std::vector<Word>(1'000, 61));
  EXPECT_THAT(thrown_by<OutOfMemory>([&] { rt->submit(kAxpy.can_run(on_opencl), Word{3}, read(hx), read_write(hy)); }),
              AllOf(HasSubstr("opencl 0"), HasSubstr("budget is 100 bytes")));
}

TEST_F(OpenCl, IsAnOption) {
  Runtime rt(Options{.workers = 1, .more = {{"opencl", "1"}, {"ranks", "alone"}}});
  std::vector<Word> x(10, 2), y(10, 1);
  rt.submit(kAxpy.can_run(on_opencl), Word{1}, read(rt.data(x)), read_write(rt.data(y)));
  rt.wait();
  EXPECT_EQ(y, std::vector<Word>(10, 3));
}

TEST_F(OpenCl, HasLinksThatAreMeasuredForASchedulerThatLooksAhead) {
  const auto said = [](const std::string& sched) {
    testing::internal::CaptureStderr();
    Runtime(Options{.workers = 1, .more = {{"opencl", "1"}, {"sched", sched}, {"log", "info"}, {"ranks", "alone"}}});
    return testing::internal::GetCapturedStderr();
  };
  EXPECT_THAT(said("auto"), AllOf(HasSubstr("copies from main memory to the memory of opencl 0"),
                                  HasSubstr(" to main memory: "), HasSubstr(" GB/s and ")));
  EXPECT_THAT(said("lws"), testing::Not(HasSubstr("copies from")));
}

// Five vectors fit into main memory, and three on the device.
TEST_F(OpenCl, WorksBesideABudgetOfMainMemory) {
  const auto room_for = [](std::size_t vectors) { return std::to_string(vectors * test::kWordsOfOne * sizeof(Word)); };
  Runtime rt(
      Options{.workers = 2,
              .more = {{"opencl", "1"}, {"opencl.memory", room_for(3)}, {"memory", room_for(5)}, {"ranks", "alone"}}});
  test::expect_values_in_little_memory(rt, kAxpy, DeviceKind::opencl);
}

}  // namespace
}  // namespace tandem::opencl_test
