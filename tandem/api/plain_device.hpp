// tandem/api/plain_device.hpp: a device for tests and test worlds that runs kernels where they are launched.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tandem/runtime/device/device.hpp"

namespace tandem {

/// Runs each kernel on the thread of its worker.
class PlainDevice final : public runtime::Device {
 public:
  explicit PlainDevice(unsigned depth) : depth_(depth) {}
  std::string name() const override { return "plain device"; }
  unsigned depth() const noexcept override { return depth_; }
  Launched launch(runtime::DeviceTask& task, std::int64_t) override {
    task.run();
    return Launched::done;
  }
  std::int64_t poll(std::int64_t, std::vector<Ended>&) override { return kWhenWoken; }

 private:
  const unsigned depth_;
};

}  // namespace tandem
