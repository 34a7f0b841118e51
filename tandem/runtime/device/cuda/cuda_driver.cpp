// tandem/runtime/device/cuda/cuda_driver.cpp: finds the functions of CUDA's driver, and names its errors.
#include "tandem/runtime/device/cuda/cuda_driver.hpp"

#include <fmt/format.h>

#include <exception>
#include <map>
#include <mutex>

namespace tandem::runtime::cuda {

namespace {

base::Result<std::shared_ptr<const Driver>> load_once(const std::string& folder) {
  using base::Error;
  using base::ErrorCode;
  const Library library(folder, {"libcuda.so.1"});
  if (!library.is_loaded())
    return Error{ErrorCode::unsupported, fmt::format("there is no CUDA driver here ({})", library.missing())};
  auto driver = std::make_shared<Driver>();
#define TANDEM_CUDA_FIND(member, symbol, parameters) \
  if (!library.find(#symbol, driver->member))        \
    return Error{ErrorCode::unsupported, "the CUDA driver is too old: it has no " #symbol};
  TANDEM_CUDA_DRIVER(TANDEM_CUDA_FIND)
#undef TANDEM_CUDA_FIND
  driver->has_graphs = true;
#define TANDEM_CUDA_FIND(member, symbol, parameters) \
  driver->has_graphs = library.find(#symbol, driver->member) && driver->has_graphs;
  TANDEM_CUDA_GRAPHS(TANDEM_CUDA_FIND)
#undef TANDEM_CUDA_FIND
  library.find("cuFuncGetParamInfo", driver->parameter_info);
  const Status status = driver->init(0);
  if (status != kSuccess && status != kNoDevice)
    return Error{ErrorCode::unsupported, fmt::format("the CUDA driver cannot be used: {}", driver->name_of(status))};
  if (driver->driver_version(&driver->version) != kSuccess) driver->version = 0;
  return std::shared_ptr<const Driver>(std::move(driver));
}

}  // namespace

base::Result<std::shared_ptr<const Driver>> Driver::load(const std::string& folder) {
  static std::mutex mutex;
  static std::map<std::string, std::shared_ptr<const Driver>> loaded;
  const std::lock_guard guard(mutex);
  if (const auto known = loaded.find(folder); known != loaded.end()) return known->second;
  auto driver = load_once(folder);
  if (driver.ok()) loaded.emplace(folder, driver.value());
  return driver;
}

std::string Driver::name_of(Status status) const {
  const char* name = nullptr;
  if (error_name(status, &name) == kSuccess && name != nullptr) return name;
  return fmt::format("CUDA error {}", status);
}

std::exception_ptr Driver::failure_of(Status status, const std::string& what, bool begun) const {
  if (status == kSuccess) return nullptr;
  const DeviceEffect effect = is_lost(status) ? DeviceEffect::lost
                              : begun         ? DeviceEffect::broken
                                              : DeviceEffect::refused;
  return std::make_exception_ptr(DeviceError(effect, fmt::format("{}: {}", what, name_of(status))));
}

void Driver::check(Status status, const char* what) const {
  if (const std::exception_ptr failure = failure_of(status, what, false)) std::rethrow_exception(failure);
}

bool is_lost(Status status) noexcept {
  switch (status) {
    case kDeviceUnavailable:
    case kEccUncorrectable:
    case kNvlinkUncorrectable:
    case kContained:
    case kIllegalAddress:
    case kLaunchTimeout:
    case kContextIsDestroyed:
    case kAssert:
    case kHardwareStackError:
    case kIllegalInstruction:
    case kMisalignedAddress:
    case kInvalidAddressSpace:
    case kInvalidProgramCounter:
    case kLaunchFailed:
    case kExternalDevice:
    case kUnknown: return true;
    default: return false;
  }
}

}  // namespace tandem::runtime::cuda
