// tandem/runtime/device/device.hpp: what runs kernels for a worker, several at a time if it can.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tandem/base/driver.hpp"
#include "tandem/runtime/memory/device_error.hpp"
#include "tandem/runtime/exec/kernel_call.hpp"
#include "tandem/runtime/memory/memory_node.hpp"
#include "tandem/runtime/task/codelet_core.hpp"

namespace tandem::runtime {

class Memory;
class PrivateMemory;

/// One of the places of a device, and the task that is in flight there. The device may use it from `launch` on until it has reported
/// the task's end, from any thread.
class DeviceTask {
 public:
  /// A free place.
  DeviceTask(unsigned place, unsigned lane, unsigned worker, NodeIndex node);
  ~DeviceTask();
  DeviceTask(DeviceTask&&) noexcept;  ///< before the first launch

  /// Which of the device's places it has, from 0. Below its depth, but for a task that was posted behind another one (`Device::runs_behind`).
  unsigned place() const noexcept { return place_; }
  /// Which of the device's lanes it has, from 0; below its depth. The place of a task that was posted behind no other.
  unsigned lane() const noexcept { return lane_; }
  /// The device's memory.
  NodeIndex node() const noexcept { return node_; }
  /// Name of the task's codelet.
  const std::string& codelet() const noexcept;
  /// How many pieces of data it uses.
  unsigned access_count() const noexcept { return task_->access_count; }
  /// How it uses one of them. `reduce`: it adds to what it finds there, which is its own.
  AccessMode mode(unsigned access) const noexcept { return shown_mode(task_->accesses()[access]); }
  /// Where the data lie in the device's memory, as its `MemoryNode` has allocated them.
  Replica memory(unsigned access) const noexcept { return call(nullptr).memory(access); }
  /// Rows and columns of the data.
  const Shape& shape(unsigned access) const noexcept { return task_->accesses()[access].handle()->shape; }

  /// Calls the kernel that the codelet has for this kind of device, on this thread: one that computes, or one that posts work to
  /// `queue`, which it gets as `Context::queue`. Throws what that throws. At most once for a launch.
  void run(void* queue = nullptr);

  /// @name For the worker
  /// @{
  /// `task` comes to this place.
  void set(Task& task, unsigned implementation, Memory& memory) noexcept {
    task_ = &task;
    implementation_ = implementation;
    memory_ = &memory;
  }
  /// Which of its codelet's implementations runs.
  unsigned implementation() const noexcept { return implementation_; }
  /// The task there.
  Task& task() const noexcept { return *task_; }
  /// Its kernel has ended: its scratch memory is given back.
  void release_scratch() noexcept;
  /// @}

 private:
  KernelCall call(void* queue) const noexcept {
    KernelCall call{*task_, worker_, node_, implementation_};
    call.queue = queue;
    return call;
  }

  const unsigned place_;
  const unsigned lane_;
  const unsigned worker_;
  const NodeIndex node_;
  unsigned implementation_ = 0;
  Task* task_ = nullptr;
  Memory* memory_ = nullptr;
  std::unique_ptr<PrivateMemory> private_memory_;
};

/// What runs the kernels of one worker: a graphics card, a queue of one, a model of one.
///
/// The worker launches a task once its data is in the device's memory. The device does it at once (`done`), or later (`posted`) and
/// reports its end to a `poll`. Up to `depth` tasks are in flight at a time, in any order of their ends. While tasks are in flight the worker
/// polls again at the time that the last `poll` returned, and whenever the device's waker was called; in between it sleeps, or fetches
/// data.
///
/// Failures. `launch` throws, or `Ended` reports, a `DeviceError` when the device could not do it; the task then goes to another
/// implementation, if its codelet has one and its data is still there. Anything else counts as thrown by the kernel.
///
/// Stretches. A device whose lanes are in order may say so (`runs_behind`). Then the worker launches a task already while the one task that it
/// waits for is in flight, in that one's lane, and so on: up to `depth` lanes have some tasks each. Such a device calls the kernel in `launch`,
/// throws there what that throws, and says `refused` there alone. A failure that it reports later need not keep what is behind from running:
/// the worker looks whether that has seen what the failed task should have written. What is launched behind others the device may keep until
/// `flush`, and post it at once.
///
/// Threads: the worker's thread calls all functions. Called by it under no lock; they do not block for long.
class Device {
 public:
  /// The task at `place` has ended; `failure` null: its kernel has done its work.
  struct Ended {
    unsigned place = 0;                    ///< of the task
    std::exception_ptr failure = nullptr;  ///< why it has not done its work
    std::int64_t kernel_ns = 0;  ///< how long the kernel ran, if the device has measured it; 0: not known
  };
  /// Whether a launched task has ended already.
  enum class Launched : std::uint8_t { done, posted };

  /// Answer of `poll`: not before the waker was called.
  static constexpr std::int64_t kWhenWoken = base::kNever;

  virtual ~Device() = default;
  /// For messages: "opencl 0 (Graphics)".
  virtual std::string name() const = 0;
  /// How many tasks may be in flight, at least 1. Does not change.
  virtual unsigned depth() const noexcept = 0;
  /// Before the first launch: `waker`, which any thread may call, makes the worker poll.
  virtual void connect(base::Waker& waker) { static_cast<void>(waker); }

  /// Begins `task`, whose data is there. It stays valid until its end was reported.
  virtual Launched launch(DeviceTask& task, std::int64_t now_ns) = 0;
  /// Adds what has ended to `ended`, once each. Returns when to poll again: a time, or `kWhenWoken`. A failure that says `lost` is the
  /// last report and the last question: all in flight is lost, and the device touches its data no more.
  virtual std::int64_t poll(std::int64_t now_ns, std::vector<Ended>& ended) = 0;
  /// How long a task will run, if the device knows that before. May throw what the program's model throws.
  virtual std::optional<std::int64_t> expected_ns(const Task& task) const {
    static_cast<void>(task);
    return {};
  }
  /// The worker leaves: a device that only waits reports all at the next poll.
  virtual void hurry() noexcept {}
  /// Nothing is launched or polled from now on. Returns when the device calls its waker no more and touches no data any more.
  virtual void finish() noexcept {}
  /// What is launched for `task` next, in the lane of `before`, which is in flight and the last one there, runs behind what was launched for that.
  /// May throw what the program's model throws.
  virtual bool runs_behind(const DeviceTask& before, const Task& task) const {
    static_cast<void>(before), static_cast<void>(task);
    return false;
  }
  /// How many small tasks behind others it would get before a `flush`, at best.
  virtual unsigned batch() const noexcept { return 1; }
  /// What was launched is posted now: the worker launches nothing behind it for a while.
  virtual void flush() {}
};

/// A device with its memory, for a runtime.
struct DeviceUnit {
  DeviceKind kind = DeviceKind::user;            ///< which implementations of codelets it runs
  std::unique_ptr<Device> device = nullptr;      ///< to be set
  std::unique_ptr<MemoryNode> memory = nullptr;  ///< null: it works in main memory
  std::unique_ptr<Copier> copier = nullptr;      ///< between that memory and main memory; null: the processor copies
  std::size_t budget = 0;                        ///< bytes of replicas that may be in its memory; 0: no limit
  double bytes_per_ns = 0;      ///< of copies between that memory and main memory; 0: not known
  std::int64_t latency_ns = 0;  ///< of such a copy, when `bytes_per_ns` is known
  std::string bus_address = {};  ///< as /sys/bus/pci/devices names it; empty: not known
};

}  // namespace tandem::runtime
