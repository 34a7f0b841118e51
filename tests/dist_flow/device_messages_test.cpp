// tests/dist_flow/device_messages_test.cpp: messages that are read, and written, in the memory of a device.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "deterministic_job.hpp"
#include "ranks.hpp"
#include "tandem/runtime/runtime_core.hpp"

namespace tandem::dist_test::device_messages_test {
namespace {

using testing::Each;
using testing::HasSubstr;

constexpr std::size_t kWords = 4096;  // 32 KiB
constexpr std::size_t kBytes = kWords * sizeof(std::uint64_t);
using Words = Data<Vector<std::uint64_t>>;

bool is_device(const WorkerDescription& worker) { return worker.device == DeviceKind::user; }

/// Runs on the device of its rank.
template <class Kernel>
auto on_device(const char* name, Kernel kernel) {
  return Codelet(name, kernel).also(DeviceKind::user, kernel).can_run(is_device);
}
const auto fill_there = on_device("fill", [](std::uint64_t first, std::span<std::uint64_t> to) {
  for (std::size_t i = 0; i < to.size(); ++i) to[i] = first + i;
});
const auto add_there = on_device("add", [](std::span<const std::uint64_t> from, std::span<std::uint64_t> to) {
  for (std::size_t i = 0; i < to.size(); ++i) to[i] += from[i];
});
const Codelet copy("copy", [](std::span<const std::uint64_t> from, std::span<std::uint64_t> to) {
  std::ranges::copy(from, to.begin());
});

void expect_well(const std::vector<Ending>& endings) {
  for (std::size_t rank = 0; rank < endings.size(); ++rank) EXPECT_EQ(endings[rank].error, "") << "rank " << rank;
}

/// What rank 0 counts of 10 versions, each of which its device writes and rank 1 reads.
struct Sent {
  std::uint64_t from_devices = 0;
  bool in_main_memory = false;  ///< some version came there
};
Sent send_ten(const JobSetup& setup, std::size_t words = kWords) {
  Sent sent;
  expect_well(run_job(setup, [&](Runtime& rt) {
    const Words value = rt.vector<std::uint64_t>("value", words, {.owner = 0});
    std::vector<Words> seen;
    for (std::uint64_t round = 0; round < 10; ++round) {
      rt.submit(fill_there, 100 * round, write(value));
      seen.push_back(rt.vector<std::uint64_t>("seen", words, {.owner = 1}));
      rt.submit(copy, read(value), write(seen.back()));
    }
    rt.wait();
    if (rt.rank() == 0) sent = {rt.flow_statistics().sent_from_devices, value.handle()->home.pointer != nullptr};
    for (std::uint64_t round = 0; round < seen.size(); ++round)
      if (auto view = rt.acquire_at_owner(read(seen[round]))) {
        EXPECT_EQ((**view)[words - 1], 100 * round + words - 1);
      }
  }));
  return sent;
}

/// What rank 1 counts of 10 versions that rank 0 writes, each of which its device adds up.
struct Received {
  std::uint64_t in_devices = 0;
  bool in_main_memory = false;  ///< some version came there
};
template <class Fill, class Add>
Received receive_ten(const JobSetup& setup, const Fill& fill, const Add& add, std::size_t words = kWords) {
  Received received;
  expect_well(run_job(setup, [&](Runtime& rt) {
    const Words value = rt.vector<std::uint64_t>("value", words, {.owner = 0}),
                sum = rt.vector<std::uint64_t>("sum", words, {.owner = 1});
    rt.submit("zero", [](std::span<std::uint64_t> to) { std::ranges::fill(to, 0); }, write(sum));
    for (std::uint64_t round = 0; round < 10; ++round) {
      rt.submit(fill, 100 * round, write(value));
      rt.submit(add, read(value), read_write(sum));
    }
    rt.wait();
    if (rt.rank() == 1) received = {rt.flow_statistics().received_in_devices, value.handle()->home.pointer != nullptr};
    if (auto view = rt.acquire_at_owner(read(sum))) {
      EXPECT_EQ((**view)[words - 1], 4500 + 10 * (words - 1));
    }
  }));
  return received;
}

const Codelet fill_here("fill", [](std::uint64_t first, std::span<std::uint64_t> to) {
  for (std::size_t i = 0; i < to.size(); ++i) to[i] = first + i;
});
const auto add_anywhere =
    Codelet("add", [](std::span<const std::uint64_t> from, std::span<std::uint64_t> to) {
      for (std::size_t i = 0; i < to.size(); ++i) to[i] += from[i];
    }).also(DeviceKind::user, [](std::span<const std::uint64_t> from, std::span<std::uint64_t> to) {
      for (std::size_t i = 0; i < to.size(); ++i) to[i] += from[i];
    });

TEST(DeviceMessages, AValueComesIntoTheDeviceThatReadsItAndMainMemoryGetsNoCopy) {
  for (const bool copies : {true, false})
    for (const bool remote : {true, false}) {
      const JobSetup setup{.devices = 1, .network = {.remote_copy = remote, .copies = copies}};
      const Received from_main = receive_ten(setup, fill_here, add_there),
                     from_device = receive_ten(setup, fill_there, add_there);
      EXPECT_EQ(from_main.in_devices, 10U);
      EXPECT_FALSE(from_main.in_main_memory);
      EXPECT_EQ(from_device.in_devices, 10U) << "from one device to another";
      EXPECT_FALSE(from_device.in_main_memory);
    }
}

TEST(DeviceMessages, WhatCoresMayReadFirstComesToMainMemory) {
  for (const Received& received :
       {receive_ten({.devices = 1}, fill_here, add_anywhere), receive_ten({.devices = 2}, fill_here, add_there)}) {
    EXPECT_EQ(received.in_devices, 0U);
    EXPECT_TRUE(received.in_main_memory);
  }
}

TEST(DeviceMessages, WhatIsNotAnnouncedComesToMainMemory) {
  EXPECT_EQ(receive_ten({.devices = 1}, fill_here, add_there, 16).in_devices, 0U);
  JobSetup setup{.devices = 1};
  setup.flow.transfers.device_message_bytes = 1;
  EXPECT_EQ(receive_ten(setup, fill_here, add_there, 16).in_devices, 0U) << "it comes with its envelope";
  EXPECT_EQ(receive_ten(setup, fill_there, add_there, 16).in_devices, 10U) << "those of devices are announced";
  EXPECT_EQ(
      receive_ten({.devices = 1, .device_messages = runtime::MessageMemory::none}, fill_here, add_there).in_devices,
      0U);
}

TEST(DeviceMessages, IntoMemoryOfCudaTheNetworkWrites) {
  JobSetup setup{.devices = 1, .device_messages = runtime::MessageMemory::cuda};
  setup.network.remote_copy = true;
  for (const bool knows : {true, false}) {
    setup.network.cuda_memory = knows;
    const Received received = receive_ten(setup, fill_here, add_there);
    EXPECT_EQ(received.in_devices, knows ? 10U : 0U);
    EXPECT_EQ(received.in_main_memory, !knows);
  }
}

TEST(DeviceMessages, WithoutMemoryInTheDeviceMainMemoryDoes) {
  for (const std::size_t budget : {std::size_t{0}, 3 * kBytes}) {
    // The first allocation there is that of the message: the sum of rank 1 is written by a core, and brought for the
    // same task.
    const Received received =
        receive_ten({.devices = 1, .device_bytes = budget, .device_refusals = 1}, fill_here, add_there);
    EXPECT_EQ(received.in_devices, 9U);
  }
}

TEST(DeviceMessages, ALostDeviceReceivesNoMore) {
  expect_well(run_job({.devices = 1}, [&](Runtime& rt) {
    const Words value = rt.vector<std::uint64_t>("value", kWords, {.owner = 0}),
                sum = rt.vector<std::uint64_t>("sum", kWords, {.owner = 1});
    rt.core().memory().end_messages_from(1);
    rt.submit(fill_there, std::uint64_t{0}, write(sum));
    rt.submit(fill_here, std::uint64_t{1}, write(value));
    rt.submit(add_there, read(value), read_write(sum));
    rt.wait();
    EXPECT_EQ(rt.flow_statistics().received_in_devices, 0U);
  }));
}

TEST(DeviceMessages, ABroadcastComesToMainMemory) {
  expect_well(run_job({.ranks = 3, .devices = 1}, [](Runtime& rt) {
    const Words value = rt.vector<std::uint64_t>("value", kWords, {.owner = 0});
    std::vector<Words> sums;
    for (std::uint32_t rank = 1; rank < 3; ++rank)
      sums.push_back(rt.vector<std::uint64_t>("sum", kWords, {.owner = rank}));
    for (const Words& sum : sums) rt.submit(fill_there, std::uint64_t{5}, write(sum));
    Graph graph = rt.record([&] {  // which knows all recipients
      rt.submit(fill_here, std::uint64_t{7}, write(value));
      for (const Words& sum : sums) rt.submit(add_there, read(value), read_write(sum));
    });
    rt.replay(graph);
    rt.wait();
    EXPECT_EQ(rt.flow_statistics().received_in_devices, 0U);
    for (const Words& sum : sums)
      if (auto view = rt.acquire_at_owner(read(sum))) {
        EXPECT_EQ((**view)[5], 12U + 2 * 5);
      }
  }));
}

TEST(DeviceMessages, AFailureComesInPlaceOfTheValueThatADeviceAwaits) {
  const auto endings = run_job({.devices = 1}, [](Runtime& rt) {
    const Words value = rt.vector<std::uint64_t>("value", kWords, {.owner = 0}),
                sum = rt.vector<std::uint64_t>("sum", kWords, {.owner = 1});
    rt.submit(fill_there, std::uint64_t{5}, write(sum));
    rt.submit("bad", [](std::span<std::uint64_t>) { throw std::runtime_error("no luck"); }, write(value));
    rt.submit(add_there, read(value), read_write(sum));
    rt.wait();
  });
  for (const Ending& ending : endings) EXPECT_THAT(ending.error, HasSubstr("no luck"));
}

TEST(DeviceMessages, ARankThatLeavesEndsTheWaitOfADevice) {
  const auto endings = run_job({.devices = 1}, [](Runtime& rt) {
    const Words value = rt.vector<std::uint64_t>("value", kWords, {.owner = 0}),
                sum = rt.vector<std::uint64_t>("sum", kWords, {.owner = 1});
    rt.submit(fill_there, std::uint64_t{5}, write(sum));
    if (rt.rank() == 0) throw std::runtime_error("gone");
    rt.submit(fill_here, std::uint64_t{1}, write(value));
    rt.submit(add_there, read(value), read_write(sum));
    rt.wait();
  });
  EXPECT_EQ(endings[0].error, "gone");
  EXPECT_THAT(endings[1].error, HasSubstr("rank 0 left in the middle of the flow"));
}

TEST(DeviceMessages, AValueLeavesFromTheDeviceThatHasItAndMainMemoryGetsNoCopy) {
  const Sent sent = send_ten({.devices = 1});
  EXPECT_EQ(sent.from_devices, 10U);
  EXPECT_FALSE(sent.in_main_memory);
}

TEST(DeviceMessages, TheyAreReadWhereverTheNetworkCopies) {
  for (const bool copies : {true, false})
    for (const bool remote : {true, false}) {
      const Sent sent = send_ten({.devices = 1, .network = {.remote_copy = remote, .copies = copies}});
      EXPECT_EQ(sent.from_devices, 10U);
      EXPECT_FALSE(sent.in_main_memory);
    }
}

TEST(DeviceMessages, WithoutTheOptionTheyPassMainMemory) {
  JobSetup setup{.devices = 1};
  setup.flow.transfers.device_message_bytes = SIZE_MAX;
  const Sent sent = send_ten(setup);
  EXPECT_EQ(sent.from_devices, 0U);
  EXPECT_TRUE(sent.in_main_memory);
}

TEST(DeviceMessages, SmallOnesPassMainMemory) {
  EXPECT_EQ(send_ten({.devices = 1}, 16).from_devices, 0U);
  JobSetup setup{.devices = 1};
  setup.flow.transfers.device_message_bytes = 1;
  EXPECT_EQ(send_ten(setup, 16).from_devices, 10U);
}

TEST(DeviceMessages, AMemoryThatOnlyCopiersReachShowsNoMessages) {
  const Sent sent = send_ten({.devices = 1, .device_messages = runtime::MessageMemory::none});
  EXPECT_EQ(sent.from_devices, 0U);
  EXPECT_TRUE(sent.in_main_memory);
}

// The memory is plain memory here: what counts is which links are given its addresses.
TEST(DeviceMessages, MemoryOfCudaIsShownToNetworksThatReadIt) {
  JobSetup setup{.devices = 1, .device_messages = runtime::MessageMemory::cuda};
  setup.network.cuda_memory = true;
  Sent sent = send_ten(setup);
  EXPECT_EQ(sent.from_devices, 10U);
  EXPECT_FALSE(sent.in_main_memory);
  setup.network.cuda_memory = false;
  sent = send_ten(setup);
  EXPECT_EQ(sent.from_devices, 0U);
  EXPECT_TRUE(sent.in_main_memory);
}

TEST(DeviceMessages, ABroadcastPassesMainMemory) {
  std::uint64_t from_devices = 0;
  expect_well(run_job({.ranks = 3, .devices = 1}, [&](Runtime& rt) {
    const Words value = rt.vector<std::uint64_t>("value", kWords, {.owner = 0});
    std::vector<Words> seen;
    for (std::uint32_t rank = 1; rank < 3; ++rank)
      seen.push_back(rt.vector<std::uint64_t>("seen", kWords, {.owner = rank}));
    std::atomic<bool> all_submitted{false};
    const auto fill = on_device("fill", [](const std::atomic<bool>* go, std::span<std::uint64_t> to) {
      go->wait(false);
      std::ranges::fill(to, 7);
    });
    rt.submit(fill, static_cast<const std::atomic<bool>*>(&all_submitted), write(value));
    for (const Words& one : seen) rt.submit(copy, read(value), write(one));
    all_submitted.store(true);
    all_submitted.notify_all();
    rt.wait();
    if (rt.rank() == 0) from_devices = rt.flow_statistics().sent_from_devices;
    for (const Words& one : seen)
      if (auto view = rt.acquire_at_owner(read(one))) {
        EXPECT_EQ((**view)[5], 7U);
      }
  }));
  EXPECT_EQ(from_devices, 0U);
}

TEST(DeviceMessages, WhatIsInMainMemoryTooLeavesFromThere) {
  expect_well(run_job({.devices = 1}, [](Runtime& rt) {
    const Words value = rt.vector<std::uint64_t>("value", kWords, {.owner = 0}),
                seen = rt.vector<std::uint64_t>("seen", kWords, {.owner = 1});
    rt.submit(fill_there, std::uint64_t{1}, write(value));
    { auto view = rt.acquire_at_owner(read(value)); }
    rt.submit(copy, read(value), write(seen));
    rt.wait();
    EXPECT_EQ(rt.flow_statistics().sent_from_devices, 0U);
  }));
}

TEST(DeviceMessages, AMatrixWithGapsInMainMemoryArrives) {
  static constexpr std::size_t rows = 100, cols = 40, ld = 130;
  std::vector<double> a(ld * cols, -1), b(ld * cols, -2);
  expect_well(run_job({.devices = 1}, [&](Runtime& rt) {
    const auto from = rt.data("a", MatrixView<double>(a.data(), rows, cols, ld), {.owner = 0});
    const auto to = rt.data("b", MatrixView<double>(b.data(), rows, cols, ld), {.owner = 1});
    rt.submit(on_device("fill", [](MatrixView<double> m) {
                for (std::size_t j = 0; j < cols; ++j)
                  for (std::size_t i = 0; i < rows; ++i) m(i, j) = static_cast<double>(1000 * j + i);
              }), write(from));
    rt.submit(Codelet("copy", [](MatrixView<const double> in, MatrixView<double> out) {
                for (std::size_t j = 0; j < cols; ++j)
                  for (std::size_t i = 0; i < rows; ++i) out(i, j) = in(i, j);
              }), read(from), write(to));
    if (auto view = rt.acquire_at_owner(read(to))) {
      EXPECT_EQ((**view)(3, 7), 7003);
    }
    rt.wait();
    EXPECT_EQ(rt.flow_statistics().sent_from_devices, rt.rank() == 0 ? 1U : 0U);
  }));
  EXPECT_EQ(b[ld * 39 + 99], 39099);
  EXPECT_EQ(b[ld * 39 + 100], -2) << "between the columns";
}

/// All data travels between devices, again and again.
void exchange(Runtime& rt, std::size_t count, unsigned rounds) {
  std::vector<Words> data;
  std::vector<std::uint64_t> first,
      times;  // of the sequential program: each vector's first element, and how often i is in its element i
  for (std::size_t i = 0; i < count * rt.size(); ++i) {
    data.push_back(rt.vector<std::uint64_t>("v" + std::to_string(i), kWords,
                                            {.owner = static_cast<std::uint32_t>(i % rt.size())}));
    rt.submit(fill_there, std::uint64_t{i}, write(data.back()));
    first.push_back(i);
    times.push_back(1);
  }
  for (unsigned round = 0; round < rounds; ++round)
    for (std::size_t i = 0; i < data.size(); ++i) {
      const std::size_t from = (i * 7 + 3 * round + 1) % data.size();
      if (from == i) continue;
      rt.submit(add_there, read(data[from]), read_write(data[i]));
      first[i] += first[from];
      times[i] += times[from];
    }
  for (std::size_t i = 0; i < data.size(); ++i) {
    auto view = rt.acquire_at_owner(read(data[i]));
    for (std::size_t k = 0; view && k < kWords; k += 37)
      ASSERT_EQ((**view)[k], first[i] + times[i] * k) << i << "," << k;
  }
  rt.wait();
}

TEST(DeviceMessages, MemoriesOfFewDataAreSharedWithTasks) {
  for (const std::size_t main_bytes : {std::size_t{0}, 3 * kBytes})
    for (const std::size_t data : {2U, 5U}) {
      std::atomic<std::uint64_t> from_devices = 0, in_devices = 0;
      expect_well(run_job({.ranks = 3, .devices = 1, .device_bytes = data * kBytes,
                           .main_bytes = main_bytes}, [&](Runtime& rt) {
        exchange(rt, 6, 4);
        from_devices += rt.flow_statistics().sent_from_devices;
        in_devices += rt.flow_statistics().received_in_devices;
      }));
      EXPECT_GT(from_devices, 0U) << main_bytes << ", " << data;
      EXPECT_EQ(in_devices > 0, main_bytes == 0) << "with a budget of main memory a receive holds its memory beside it";
    }
}

TEST(DeviceMessages, SeveralDevicesOfARankAndCopiesThatAreDropped) {
  JobSetup setup{.ranks = 2, .devices = 2, .device_bytes = 3 * kBytes};
  setup.flow.copy_bytes = 4 * kBytes;
  std::atomic<std::uint64_t> from_devices = 0;
  expect_well(run_job(setup, [&](Runtime& rt) {
    exchange(rt, 8, 3);
    from_devices += rt.flow_statistics().sent_from_devices;
  }));
  EXPECT_GT(from_devices, 0U);
}

// The receiver takes the second version of `a` once it has `b`, for which the device has no memory while it keeps that
// version.
TEST(DeviceMessages, AMessageThatNobodyTakesKeepsNoMemoryFromTasks) {
  for (const bool in_turns : {false, true}) {
    std::atomic<bool> has_second{false};
    expect_well(run_job(
        {.workers = 2, .devices = 1, .device_bytes = kBytes + 64, .main_bytes = in_turns ? 4 * kBytes : 0},
        [&](Runtime& rt) {
          const Words a = rt.vector<std::uint64_t>("a", kWords, {.owner = 0}),
                      b = rt.vector<std::uint64_t>("b", kWords, {.owner = 0});
          const Words sum = rt.vector<std::uint64_t>("sum", kWords, {.owner = 1});
          int gate = 0;
          const auto is_open = rt.data("gate", gate, {.owner = 0});
          rt.submit(fill_there, std::uint64_t{1}, write(a));
          rt.submit(
              "open",
              [](const std::atomic<bool>* second, int& open) {
                second->wait(false);
                open = 1;
              },
              static_cast<const std::atomic<bool>*>(&has_second), write(is_open));
          rt.submit(on_device("fill late", [](const int&, std::span<std::uint64_t> to) { std::ranges::fill(to, 5); }),
                    read(is_open), write(b));
          rt.submit(
              "both",
              [](std::span<const std::uint64_t> x, std::span<const std::uint64_t> y, std::span<std::uint64_t> to) {
                for (std::size_t i = 0; i < to.size(); ++i) to[i] = x[i] + y[i];
              },
              read(a), read(b), write(sum));
          rt.submit(on_device("fill again",
                              [](std::atomic<bool>* second, std::span<std::uint64_t> to) {
                                std::ranges::fill(to, 100);
                                second->store(true);
                                second->notify_all();
                              }),
                    &has_second, write(a));
          rt.submit(
              "more",
              [](std::span<const std::uint64_t> x, std::span<std::uint64_t> to) {
                for (std::size_t i = 0; i < to.size(); ++i) to[i] += x[i];
              },
              read(a), read_write(sum));
          if (auto view = rt.acquire_at_owner(read(sum))) {
            EXPECT_EQ((**view)[10], 1U + 10 + 5 + 100);
          }
          rt.wait();
        }));
  }
}

TEST(DeviceMessages, AKernelThatFailsOnItsDeviceIsToldToTheReceiver) {
  const auto endings = run_job({.devices = 1}, [](Runtime& rt) {
    const Words value = rt.vector<std::uint64_t>("value", kWords, {.owner = 0}),
                seen = rt.vector<std::uint64_t>("seen", kWords, {.owner = 1});
    rt.submit(on_device("bad", [](std::span<std::uint64_t>) { throw std::runtime_error("no luck"); }), write(value));
    rt.submit(copy, read(value), write(seen));
    rt.wait();
  });
  for (const Ending& ending : endings) EXPECT_THAT(ending.error, HasSubstr("no luck"));
}

TEST(DeviceMessages, ALostDeviceSendsNoMore) {
  expect_well(run_job({.devices = 1}, [&](Runtime& rt) {
    const Words value = rt.vector<std::uint64_t>("value", kWords, {.owner = 0}),
                seen = rt.vector<std::uint64_t>("seen", kWords, {.owner = 1});
    rt.core().memory().end_messages_from(1);
    rt.submit(fill_there, std::uint64_t{1}, write(value));
    rt.submit(copy, read(value), write(seen));
    rt.wait();
    EXPECT_EQ(rt.flow_statistics().sent_from_devices, 0U);
  }));
}

/// Copies until its device is lost.
struct LosableCopier final : runtime::Copier {
  explicit LosableCopier(const std::atomic<bool>& device_is_lost) : is_lost(device_is_lost) {}
  runtime::CopyState start(const runtime::CopyRequest& request, runtime::CopyEnded) override {
    if (is_lost) throw std::runtime_error("the device is lost");
    runtime::copy_matrix(request);
    return runtime::CopyState::done;
  }
  const std::atomic<bool>& is_lost;
};

TEST(DeviceMessages, ADeviceThatIsLostBehindAnAnnouncementEndsTheJobWithTheReason) {
  std::atomic<bool> is_lost{false};
  const auto endings = run_job(
      {.devices = 1, .device_copier = [&] { return std::make_unique<LosableCopier>(is_lost); }}, [&](Runtime& rt) {
        const Words value = rt.vector<std::uint64_t>("value", kWords, {.owner = 0}),
                    seen = rt.vector<std::uint64_t>("seen", kWords, {.owner = 1});
        const Words next = rt.vector<std::uint64_t>("next", kWords, {.owner = 0});
        if (rt.rank() == 1) is_lost.wait(false);
        rt.submit(fill_there, std::uint64_t{1}, write(value));
        rt.submit(copy, read(value), write(seen));
        // The device's worker announces the message at the end of its first task, and then runs the second one.
        rt.submit(on_device("lose",
                            [](Runtime* runtime, std::atomic<bool>* lost, std::span<const std::uint64_t>,
                               std::span<std::uint64_t>) {
                              runtime->core().memory().end_messages_from(1);
                              lost->store(true);
                              lost->notify_all();
                            }),
                  &rt, &is_lost, read(value), write(next));
        rt.wait();
      });
  for (const Ending& ending : endings)
    EXPECT_THAT(ending.error,
                testing::AllOf(HasSubstr("rank 0 cannot read"), HasSubstr("'value'"), HasSubstr("the device is lost")));
}

TEST(DeviceMessages, ARecordedFlowSendsThem) {
  static constexpr unsigned replays = 5;
  expect_well(run_job({.devices = 1}, [](Runtime& rt) {
    const Words a = rt.vector<std::uint64_t>("a", kWords, {.owner = 0}),
                b = rt.vector<std::uint64_t>("b", kWords, {.owner = 1});
    rt.submit(fill_there, std::uint64_t{1}, write(a));
    rt.submit(fill_there, std::uint64_t{1}, write(b));
    Graph graph = rt.record([&] {
      rt.submit(add_there, read(a), read_write(b));
      rt.submit(add_there, read(b), read_write(a));
    });
    for (unsigned replay = 0; replay < replays; ++replay) rt.replay(graph);
    rt.wait();
    EXPECT_EQ(rt.flow_statistics().sent_from_devices, replays);
    EXPECT_EQ(rt.flow_statistics().received_in_devices, replays);
    std::uint64_t x = 1, y = 1;
    for (unsigned replay = 0; replay < replays; ++replay) {
      y += x;
      x += y;
    }
    if (auto view = rt.acquire_at_owner(read(a))) {
      EXPECT_EQ((**view)[0], x);
    }
  }));
}

TEST(DeviceMessages, PartsOfAVectorLeaveOneByOne) {
  static constexpr std::size_t parts = 4;
  expect_well(run_job({.devices = 1}, [](Runtime& rt) {
    const Words all = rt.vector<std::uint64_t>("all", parts * kWords, {.owner = 0}),
                seen = rt.vector<std::uint64_t>("seen", kWords, {.owner = 1});
    const auto pieces = rt.parts(all, {.rows = kWords});
    for (std::size_t i = 0; i < parts; ++i) rt.submit(fill_there, std::uint64_t{1000 * i}, write(pieces(i)));
    rt.submit(on_device("zero", [](std::span<std::uint64_t> to) { std::ranges::fill(to, 0); }), write(seen));
    for (std::size_t i = 0; i < parts; ++i) rt.submit(add_there, read(pieces(i)), read_write(seen));
    if (auto view = rt.acquire_at_owner(read(seen))) {
      EXPECT_EQ((**view)[2], 6000U + parts * 2);
    }
    rt.wait();
    EXPECT_EQ(rt.flow_statistics().sent_from_devices, rt.rank() == 0 ? parts : 0U);
  }));
}

}  // namespace
}  // namespace tandem::dist_test::device_messages_test
