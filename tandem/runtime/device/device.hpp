// tandem/runtime/device/device.hpp: devices, which run kernels for a worker, several at a time if they can.
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

/// A place of a device and the task in flight there. The device may use it from `launch` on until it has reported the
/// task's end, from any thread.
class DeviceTask {
 public:
  /// Makes a free place.
  DeviceTask(unsigned place, unsigned lane, unsigned worker, NodeIndex node);
  ~DeviceTask();
  DeviceTask(DeviceTask&&) noexcept;  ///< only before the first launch

  /// Number of the place, from 0. Below the device's depth, except for a task posted behind another one
  /// (`Device::runs_behind`).
  unsigned place() const noexcept { return place_; }
  /// Number of the lane, from 0 and below the device's depth: the place of a task that was posted behind no other.
  unsigned lane() const noexcept { return lane_; }
  /// Memory node of the device.
  NodeIndex node() const noexcept { return node_; }
  /// Name of the task's codelet.
  const std::string& codelet() const noexcept;
  /// Number of accesses of the task.
  unsigned access_count() const noexcept { return task_->access_count; }
  /// Mode of an access. `reduce`: the task adds to what it finds in its own memory.
  AccessMode mode(unsigned access) const noexcept { return shown_mode(task_->accesses()[access]); }
  /// Memory of an access on the device, as its `MemoryNode` has allocated it.
  Replica memory(unsigned access) const noexcept { return call(nullptr).memory(access); }
  /// Shape of the data of an access.
  const Shape& shape(unsigned access) const noexcept { return task_->accesses()[access].handle()->shape; }

  /// Calls the codelet's kernel for this kind of device on this thread. The kernel computes, or posts work to `queue`,
  /// which it gets as `Context::queue`. Throws what the kernel throws. At most once for a launch.
  void run(void* queue = nullptr);

  /// @name For the worker
  /// @{
  /// Puts `task` at this place.
  void set(Task& task, unsigned implementation, Memory& memory) noexcept {
    task_ = &task;
    implementation_ = implementation;
    memory_ = &memory;
  }
  /// Index of the codelet's implementation that runs.
  unsigned implementation() const noexcept { return implementation_; }
  /// The task at this place.
  Task& task() const noexcept { return *task_; }
  /// Releases the task's scratch memory after its kernel has ended.
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

/// Runs the kernels of one worker: a GPU, a queue of one, or a model of one.
///
/// The worker launches a task once its data is in the device's memory. The device does it at once (`done`), or later
/// (`posted`) and reports its end to a `poll`. Up to `depth` tasks are in flight at a time and end in any order. While
/// tasks are in flight the worker polls at the time that the last `poll` returned, and whenever the device's waker was
/// called; in between it sleeps or fetches data.
///
/// Failures. `launch` throws, or `Ended` reports, a `DeviceError` when the device could not run the task; the task then
/// goes to another implementation, if its codelet has one and its data is still there. Any other exception counts as
/// thrown by the kernel.
///
/// Stretches. A device whose lanes are in order may say so (`runs_behind`). Then the worker launches a task while the
/// only task that it waits for is in flight, in that task's lane, and so on: up to `depth` lanes have some tasks each.
/// Such a device calls the kernel in `launch`, throws there what the kernel throws, and says `refused` only there. A
/// failure that it reports later need not stop the tasks behind: the worker checks whether they saw what the failed
/// task should have written. The device may keep launches behind others until `flush`, and post them at once.
///
/// Threads: the worker's thread calls all functions, under no lock. They must not block for long.
class Device {
 public:
  /// Report that the task at `place` has ended; `failure` null: its kernel has done its work.
  struct Ended {
    unsigned place = 0;                    ///< of the task
    std::exception_ptr failure = nullptr;  ///< why it has not done its work
    std::int64_t kernel_ns = 0;  ///< measured duration of the kernel; 0: not known
  };
  /// Whether a launched task has ended already.
  enum class Launched : std::uint8_t { done, posted };

  /// Answer of `poll`: not before the waker was called.
  static constexpr std::int64_t kWhenWoken = base::kNever;

  virtual ~Device() = default;
  /// Name for messages: "opencl 0 (Graphics)".
  virtual std::string name() const = 0;
  /// The most tasks in flight, at least 1. Constant.
  virtual unsigned depth() const noexcept = 0;
  /// Called before the first launch. Any thread may call `waker`; the worker then polls.
  virtual void connect(base::Waker& waker) { static_cast<void>(waker); }

  /// Begins `task`, whose data is there. The object stays valid until its end was reported.
  virtual Launched launch(DeviceTask& task, std::int64_t now_ns) = 0;
  /// Adds the tasks that have ended to `ended`, once each. Returns when to poll again: a time, or `kWhenWoken`. A
  /// failure that says `lost` is the last report and the last poll: all in flight is lost, and the device no longer
  /// touches its data.
  virtual std::int64_t poll(std::int64_t now_ns, std::vector<Ended>& ended) = 0;
  /// Duration of a task, if the device knows it in advance. May throw what the program's model throws.
  virtual std::optional<std::int64_t> expected_ns(const Task& task) const {
    static_cast<void>(task);
    return {};
  }
  /// Called when the worker leaves: a device that only waits reports all its tasks at the next poll.
  virtual void hurry() noexcept {}
  /// Ends the device: nothing is launched or polled afterwards. When it returns, the device no longer calls its waker
  /// or touches data.
  virtual void finish() noexcept {}
  /// Whether a launch of `task` in the lane of `before`, which is in flight and the last one there, runs after what was
  /// launched for `before`. May throw what the program's model throws.
  virtual bool runs_behind(const DeviceTask& before, const Task& task) const {
    static_cast<void>(before), static_cast<void>(task);
    return false;
  }
  /// Best number of small tasks behind others before a `flush`.
  virtual unsigned batch() const noexcept { return 1; }
  /// Posts all launches now: the worker launches nothing behind them for a while.
  virtual void flush() {}
};

/// A device with its memory, for a runtime.
struct DeviceUnit {
  DeviceKind kind = DeviceKind::user;            ///< which implementations of codelets it runs
  std::unique_ptr<Device> device = nullptr;      ///< must be set
  std::unique_ptr<MemoryNode> memory = nullptr;  ///< null: it works in main memory
  std::unique_ptr<Copier> copier = nullptr;      ///< between that memory and main memory; null: the processor copies
  std::size_t budget = 0;                        ///< bytes of replicas that may be in its memory; 0: no limit
  double bytes_per_ns = 0;      ///< rate of copies between that memory and main memory; 0: not known
  std::int64_t latency_ns = 0;  ///< latency of such a copy, when `bytes_per_ns` is known
  std::string bus_address = {};  ///< name in /sys/bus/pci/devices; empty: not known
};

}  // namespace tandem::runtime
