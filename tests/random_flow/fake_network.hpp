// tests/random_flow/fake_network.hpp: something outside the runtime that ends what was posted to it, later and in any
// order.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "tandem/base/event_loop.hpp"
#include "tandem/runtime/memory/memory_node.hpp"

namespace tandem::random_flow {

class FakeNetwork {
 public:
  virtual ~FakeNetwork() = default;
  /// `action` runs later, once. Any thread.
  virtual void post(std::function<void()> action) = 0;
};

/// On the event loop, at dates drawn from its seed.
class LoopNetwork final : public FakeNetwork {
 public:
  explicit LoopNetwork(base::EventLoop& loop) : loop_(loop) {}
  void post(std::function<void()> action) override {
    loop_.at(loop_.now_ns() + static_cast<std::int64_t>(loop_.random() % 5'000), std::move(action));
  }

 private:
  base::EventLoop& loop_;
};

/// On a thread of its own, in a random order.
class ThreadNetwork final : public FakeNetwork {
 public:
  explicit ThreadNetwork(std::uint64_t seed) : random_(seed), thread_([this] { serve(); }) {}
  ~ThreadNetwork() override {
    {
      std::lock_guard guard(mutex_);
      stopping_ = true;
    }
    changed_.notify_one();
    thread_.join();
  }
  void post(std::function<void()> action) override {
    {
      std::lock_guard guard(mutex_);
      actions_.push_back(std::move(action));
    }
    changed_.notify_one();
  }

 private:
  void serve() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return stopping_ || !actions_.empty(); });
      if (actions_.empty()) return;
      std::swap(actions_[random_() % actions_.size()], actions_.back());
      const std::function<void()> action = std::move(actions_.back());
      actions_.pop_back();
      const bool pause = random_() % 4 == 0;
      lock.unlock();
      if (pause) std::this_thread::sleep_for(std::chrono::microseconds(20));
      action();
      lock.lock();
    }
  }

  std::mt19937_64 random_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::function<void()>> actions_;
  bool stopping_ = false;
  std::thread thread_;  // last: it uses all the others
};

/// Copies between memory nodes that end when a fake network says so, or never once the runtime has gone.
class NetworkCopier final : public runtime::Copier {
 public:
  explicit NetworkCopier(FakeNetwork& network) : network_(network) {}
  runtime::CopyState start(const runtime::CopyRequest& request, runtime::CopyEnded ended) override {
    network_.post([end = end_, request, ended] {
      const std::lock_guard guard(end->mutex);
      if (end->given_up) return;
      runtime::copy_matrix(request);
      ended(nullptr);
    });
    return runtime::CopyState::posted;
  }
  void finish() noexcept override {
    const std::lock_guard guard(end_->mutex);
    end_->given_up = true;
  }

 private:
  struct End {
    std::mutex mutex;
    bool given_up = false;
  };
  FakeNetwork& network_;
  const std::shared_ptr<End> end_ = std::make_shared<End>();
};

}  // namespace tandem::random_flow
