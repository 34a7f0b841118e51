// tandem/runtime/memory/device_error.hpp: a device that could not do what it was asked to.
#pragma once

#include <cstdint>
#include <exception>
#include <stdexcept>
#include <string>

namespace tandem {

/// What is left after a device has failed.
enum class DeviceEffect : std::uint8_t {
  refused,  ///< it has not begun: the task's data is as it was, and the device goes on with others
  broken,   ///< it had begun: what the task writes is undefined on the device, which goes on with others
  lost,     ///< as `broken`, for all that it had in flight, and it runs nothing any more
};

/// A device has failed, not a kernel: no memory, a launch that was refused, a device that is lost. `Device` throws or reports it. The
/// task then runs by another implementation of its codelet, where there is one. Else it fails, and `wait()` throws this, with the names
/// of the task and the device.
class DeviceError : public std::runtime_error {
 public:
  /// `what` says what has failed.
  DeviceError(DeviceEffect effect, const std::string& what) : std::runtime_error(what), effect_(effect) {}
  DeviceEffect effect() const noexcept { return effect_; }  ///< what is left

 private:
  DeviceEffect effect_;
};

}  // namespace tandem

namespace tandem::runtime {

/// A failure on the way of a task to a device or on it.
struct DeviceFailure {
  bool is_devices = false;  ///< a DeviceError, or memory that the device has not: not the kernel's own
  DeviceEffect effect = DeviceEffect::refused;  ///< what is left
  std::string what;                             ///< the text of the exception
};

/// Looks into `failure`, which is not null.
DeviceFailure look_at(const std::exception_ptr& failure);

}  // namespace tandem::runtime
