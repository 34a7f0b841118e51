// tandem/runtime/device/opencl/opencl_device.hpp: a card as the device of a worker.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tandem/runtime/device/device.hpp"
#include "tandem/runtime/device/opencl/opencl_card.hpp"
#include "tandem/runtime/device/opencl/opencl_queue.hpp"

namespace tandem::runtime::opencl {

/// Kernels post to the card's queue during `launch`; the event of what they posted last ends the task. OpenCL reports it to a thread of
/// its own, which wakes the worker.
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
  /// The queue is in order.
  bool runs_behind(const DeviceTask&, const Task&) const override { return true; }

 private:
  struct Heard;
  struct Report {
    unsigned place = 0;
    cl_event event = nullptr;
    cl_int status = CL_COMPLETE;
  };

  void launch(const OpenClSource& source, std::span<const OpenClArgument> arguments, const OpenClRange& range) override;
  void* native_queue() override { return card_->kernels(); }
  void* native_memory(const void* data) override;
  cl_kernel kernel_of(const OpenClSource& source);
  cl_program program_of(const OpenClSource& source);
  static void CL_CALLBACK heard(cl_event event, cl_int status, void* context);

  const std::shared_ptr<Card> card_;
  const unsigned depth_;
  base::Waker* waker_ = nullptr;
  cl_event last_ = nullptr;  ///< of what the present launch has posted
  std::map<std::pair<std::string, std::string>, cl_program> programs_;  ///< by text and options
  std::map<std::pair<cl_program, std::string>, cl_kernel> kernels_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Report> reports_;  ///< under the mutex
  unsigned pending_ = 0;         ///< events that OpenCL has not reported; under the mutex
};

}  // namespace tandem::runtime::opencl
