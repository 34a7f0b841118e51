// tandem/runtime/device/opencl/opencl_device.hpp: an OpenCL device as the device of a worker.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tandem/runtime/device/device.hpp"
#include "tandem/runtime/device/kept_sources.hpp"
#include "tandem/runtime/device/opencl/opencl_card.hpp"
#include "tandem/runtime/device/opencl/opencl_queue.hpp"

namespace tandem::runtime::opencl {

/// Kernels post to the device's queue during `launch`. The task ends with an event: that of its last kernel, or, if the
/// task may have posted by calls of its own, of a marker behind all of its work. OpenCL reports the event on a thread
/// of its own, which wakes the worker.
class OpenClDevice final : public Device, private OpenClQueue {
 public:
  OpenClDevice(std::shared_ptr<Card> card, unsigned depth) : card_(std::move(card)), depth_(depth) {}
  ~OpenClDevice() override;

  std::string name() const override { return card_->name(); }
  unsigned depth() const noexcept override { return depth_; }
  void connect(base::Waker& waker) override { waker_ = &waker; }
  Launched launch(DeviceTask& task, std::int64_t now_ns) override;
  std::int64_t poll(std::int64_t now_ns, std::vector<Ended>& ended) override;
  void finish() noexcept override;
  /// Always true, since the queue is in order.
  bool runs_behind(const DeviceTask&, const Task&) const override { return true; }

 private:
  /// Work that a task has posted so far.
  struct Posted {
    cl_event first = nullptr;  ///< the first kernel, if it was launched here
    cl_event last = nullptr;   ///< the last kernel; of a single kernel: the same event, retained once more
    bool natively = false;     ///< the task has asked for the queue, so there may be more work
    bool any() const noexcept { return natively || last != nullptr; }
  };
  struct Heard;
  struct Report {
    unsigned place = 0;
    cl_event first = nullptr;  ///< null: the task's time is not known
    cl_event last = nullptr;
    cl_int status = CL_COMPLETE;
  };
  struct Kernel {
    cl_kernel kernel = nullptr;
    std::string name;
  };

  void launch(const OpenClSource& source, std::span<const OpenClArgument> arguments,
              const OpenClRange& range) override {
    launch(kernel_of(source), arguments, range);
  }
  void launch_kept(const std::shared_ptr<const OpenClSource>& source, std::span<const OpenClArgument> arguments,
                   const OpenClRange& range) override {
    launch(kept_.find(source, [this](const OpenClSource& fresh) -> Kernel& { return kernel_of(fresh); }), arguments,
           range);
  }
  void* native_queue() override {
    posted_.natively = true;
    return card_->kernels();
  }
  void* native_memory(const void* data) override;
  void launch(const Kernel& kernel, std::span<const OpenClArgument> arguments, const OpenClRange& range);
  void set_arguments(const Kernel& kernel, std::span<const OpenClArgument> arguments);
  Kernel& kernel_of(const OpenClSource& source);
  cl_program program_of(const OpenClSource& source);
  void run(DeviceTask& task);
  void give_up() noexcept;
  static void release(cl_event first, cl_event last) noexcept;
  static std::int64_t took_ns(const Report& report) noexcept;
  static void CL_CALLBACK heard(cl_event event, cl_int status, void* context);

  const std::shared_ptr<Card> card_;
  const unsigned depth_;
  base::Waker* waker_ = nullptr;
  Posted posted_;  ///< work of the present launch
  std::map<std::tuple<std::string, std::string>, cl_program, std::less<>> programs_;  ///< programs by options and text
  /// Kernels by name, options and text.
  std::map<std::tuple<std::string, std::string, std::string>, Kernel, std::less<>> kernels_;
  KeptSources<OpenClSource, Kernel> kept_;  ///< kernels in `kernels_`

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Report> reports_;  ///< under the mutex
  unsigned pending_ = 0;         ///< events that OpenCL has not reported; under the mutex
};

}  // namespace tandem::runtime::opencl
