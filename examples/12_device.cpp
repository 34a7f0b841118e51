// examples/12_device.cpp: a kind of device of the program's own: a queue that a thread works off, with a memory apart.
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <exception>
#include <mutex>
#include <span>
#include <tandem/device.hpp>
#include <tandem/tandem.hpp>
#include <thread>
#include <vector>

namespace {

/// Here it is in fact main memory. A real one gives addresses that only its device understands, and comes with a
/// `Copier`.
class CardMemory final : public tandem::MemoryNode {
 public:
  std::string name() const override { return "card memory"; }
  void* allocate(std::size_t bytes) override { return std::aligned_alloc(64, (bytes + 127) / 64 * 64); }
  void release(void* memory, std::size_t) noexcept override { std::free(memory); }
};

/// Takes up to four tasks, and runs one after the other.
class Card final : public tandem::Device {
 public:
  ~Card() override { finish(); }
  std::string name() const override { return "card"; }
  unsigned depth() const noexcept override { return 4; }
  void connect(tandem::Waker& waker) override { waker_ = &waker; }

  Launched launch(tandem::DeviceTask& task, std::int64_t) override {
    const std::lock_guard guard(mutex_);
    queue_.push_back(&task);
    changed_.notify_one();
    return Launched::posted;
  }
  std::int64_t poll(std::int64_t, std::vector<Ended>& ended) override {
    const std::lock_guard guard(mutex_);
    ended.insert(ended.end(), ended_.begin(), ended_.end());
    ended_.clear();
    return kWhenWoken;
  }
  void finish() noexcept override {
    if (!thread_.joinable()) return;
    {
      const std::lock_guard guard(mutex_);
      stopping_ = true;
      changed_.notify_one();
    }
    thread_.join();
  }

 private:
  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return stopping_ || !queue_.empty(); });
      if (queue_.empty()) return;
      tandem::DeviceTask& task = *queue_.front();
      queue_.pop_front();
      lock.unlock();
      std::exception_ptr failure;
      try {
        task.run();
      } catch (...) {
        failure = std::current_exception();
      }
      lock.lock();
      ended_.push_back({.place = task.place(), .failure = failure});
      waker_->wake();
    }
  }

  tandem::Waker* waker_ = nullptr;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<tandem::DeviceTask*> queue_;
  std::vector<Ended> ended_;
  bool stopping_ = false;
  std::thread thread_{[this] { work(); }};
};

}  // namespace

int main(int argc, char** argv) {
  tandem::Options options;
  options.devices.push_back([] {
    return tandem::DeviceUnit{
        .kind = tandem::DeviceKind::user, .device = std::make_unique<Card>(), .memory = std::make_unique<CardMemory>()};
  });
  tandem::Runtime rt(argc, argv, options);

  std::vector<double> x(1'000, 1.0);
  auto hx = rt.data("x", x);
  const auto add = [](double a, std::span<double> v) {
    for (double& one : v) one += a;
  };
  // One implementation for cores, one for the device: here the same.
  const auto codelet = tandem::Codelet("add", add).also(tandem::DeviceKind::user, add);
  for (int i = 1; i <= 100; ++i) rt.submit(codelet, 1.0 * i, read_write(hx));
  const auto value = rt.acquire(read(hx));  // the newest value may be in the card's memory: this brings it here
  std::printf("x[0] = %g\n", x[0]);
}
