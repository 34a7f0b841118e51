// tests/dist_flow/device_messages_rank.cpp: a rank whose device writes what the next rank's device adds to its own,
// over a real network.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tandem/device.hpp"
#include "tandem/tandem.hpp"

namespace {

/// Plain memory, of which messages may be read in place.
class CardMemory final : public tandem::MemoryNode {
 public:
  std::string name() const override { return "card memory"; }
  void* allocate(std::size_t bytes) override { return std::aligned_alloc(64, (bytes + 64) / 64 * 64); }
  void release(void* memory, std::size_t) noexcept override { std::free(memory); }
  tandem::MessageMemory messages() const noexcept override { return tandem::MessageMemory::host; }
};

/// Runs each task at its launch.
class Card final : public tandem::Device {
 public:
  std::string name() const override { return "card"; }
  unsigned depth() const noexcept override { return 1; }
  void connect(tandem::base::Waker&) override {}
  Launched launch(tandem::DeviceTask& task, std::int64_t) override {
    task.run();
    return Launched::done;
  }
  std::int64_t poll(std::int64_t, std::vector<Ended>&) override { return kWhenWoken; }
};

bool is_card(const tandem::WorkerDescription& worker) { return worker.device == tandem::DeviceKind::user; }

}  // namespace

int main(int argc, char** argv) {
  tandem::Options options;
  options.devices = {[] {
    return tandem::DeviceUnit{
        .kind = tandem::DeviceKind::user, .device = std::make_unique<Card>(), .memory = std::make_unique<CardMemory>()};
  }};
  tandem::Runtime rt(argc, argv, options);
  const auto fill = [](std::uint64_t first, std::span<std::uint64_t> to) {
    for (std::size_t i = 0; i < to.size(); ++i) to[i] = first + i;
  };
  const auto add = [](std::span<const std::uint64_t> from, std::span<std::uint64_t> to) {
    for (std::size_t i = 0; i < to.size(); ++i) to[i] += from[i];
  };
  const auto fill_there = tandem::Codelet("fill", fill).also(tandem::DeviceKind::user, fill).can_run(is_card);
  const auto add_there = tandem::Codelet("add", add).also(tandem::DeviceKind::user, add).can_run(is_card);
  constexpr unsigned rounds = 20;
  bool is_right = true;
  for (const std::size_t words : {std::size_t{4096}, std::size_t{500'000}}) {
    const std::uint64_t sent_before = rt.flow_statistics().sent_from_devices,
                        received_before = rt.flow_statistics().received_in_devices;
    const auto a = rt.vector<std::uint64_t>("a", words, {.owner = 0}),
               b = rt.vector<std::uint64_t>("b", words, {.owner = 1});
    rt.submit(fill_there, std::uint64_t{1}, write(a));
    rt.submit(fill_there, std::uint64_t{1}, write(b));
    std::uint64_t x = 1, y = 1, times_x = 1, times_y = 1;  // the first elements, and how often i is in element i
    for (unsigned round = 0; round < rounds; ++round) {
      rt.submit(add_there, read(a), read_write(b));
      rt.submit(add_there, read(b), read_write(a));
      y += x, times_y += times_x;
      x += y, times_x += times_y;
    }
    rt.wait();
    const std::uint64_t sent = rt.flow_statistics().sent_from_devices - sent_before;
    const std::uint64_t received = rt.flow_statistics().received_in_devices - received_before;
    const auto& mine = rt.rank() == 0 ? a : b;
    const bool is_home = mine.handle()->valid_on(0);
    if (rt.rank() < 2 && (sent != rounds || received != rounds || is_home)) {
      std::fprintf(stderr, "rank %u: %zu words: %llu of %u messages left from the device, %llu came into it%s\n",
                   rt.rank(), words, static_cast<unsigned long long>(sent), rounds,
                   static_cast<unsigned long long>(received), is_home ? ", and main memory has a copy" : "");
      is_right = false;
    }
    if (auto view = rt.acquire_at_owner(read(a)))
      for (std::size_t i = 0; i < words; ++i) is_right = is_right && (**view)[i] == x + times_x * i;
    if (auto view = rt.acquire_at_owner(read(b)))
      for (std::size_t i = 0; i < words; ++i) is_right = is_right && (**view)[i] == y + times_y * i;
  }
  rt.wait();
  if (!is_right) std::fprintf(stderr, "rank %u is wrong\n", rt.rank());
  return is_right ? 0 : 1;
}
