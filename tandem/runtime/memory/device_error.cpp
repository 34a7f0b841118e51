// tandem/runtime/memory/device_error.cpp: which failures are a device's.
#include "tandem/runtime/memory/device_error.hpp"

#include "tandem/runtime/memory/out_of_memory.hpp"

namespace tandem::runtime {

DeviceFailure look_at(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const DeviceError& error) {
    return {true, error.effect(), error.what()};
  } catch (const OutOfMemory& error) {
    return {true, DeviceEffect::refused, error.what()};
  } catch (const std::exception& error) {
    return {false, DeviceEffect::broken, error.what()};
  } catch (...) {
    return {false, DeviceEffect::broken, "an exception that is no std::exception"};
  }
}

}  // namespace tandem::runtime
