// tandem/runtime/memory/device_error.hpp: the exception for a device that failed.
#pragma once

#include <cstdint>
#include <exception>
#include <stdexcept>
#include <string>

namespace tandem {

/// State after a device has failed.
enum class DeviceEffect : std::uint8_t {
  refused,  ///< nothing has begun: the task's data is unchanged, and the device goes on with others
  broken,   ///< work had begun: what the task writes is undefined on the device, which goes on with others
  lost,     ///< as `broken`, for all work in flight, and the device runs nothing any more
};

/// A device has failed, not a kernel: no memory, a launch that was refused, a device that is lost. `Device` throws or
/// reports it. The task then runs by another implementation of its codelet, where there is one. Else it fails, and
/// `wait()` throws this, with the names of the task and the device.
class DeviceError : public std::runtime_error {
 public:
  /// `what` describes the failure.
  DeviceError(DeviceEffect effect, const std::string& what) : std::runtime_error(what), effect_(effect) {}
  DeviceEffect effect() const noexcept { return effect_; }  ///< state after the failure

 private:
  DeviceEffect effect_;
};

}  // namespace tandem

namespace tandem::runtime {

/// A failure while a task's data is brought to a device, or on the device.
struct DeviceFailure {
  bool is_devices = false;  ///< a DeviceError, or missing memory of the device: not the kernel's own failure
  DeviceEffect effect = DeviceEffect::refused;  ///< state after the failure
  std::string what;                             ///< the text of the exception
};

/// Classifies `failure`, which is not null.
DeviceFailure look_at(const std::exception_ptr& failure);

}  // namespace tandem::runtime
