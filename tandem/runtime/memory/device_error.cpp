// tandem/runtime/memory/device_error.cpp: tells failures of devices from others.
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
