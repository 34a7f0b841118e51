// tandem/runtime/device/plain_device.hpp: a device for test worlds and modelled machines that runs kernels where they
// are launched.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tandem/runtime/device/device.hpp"

namespace tandem::runtime {

/// Runs each kernel on the thread of its worker.
class PlainDevice final : public Device {
 public:
  /// `depth`: tasks that may be in flight there.
  explicit PlainDevice(unsigned depth, std::string name = "plain device") : depth_(depth), name_(std::move(name)) {}
  std::string name() const override { return name_; }
  unsigned depth() const noexcept override { return depth_; }
  Launched launch(DeviceTask& task, std::int64_t) override {
    task.run();
    return Launched::done;
  }
  std::int64_t poll(std::int64_t, std::vector<Ended>&) override { return kWhenWoken; }

 private:
  const unsigned depth_;
  const std::string name_;
};

}  // namespace tandem::runtime
