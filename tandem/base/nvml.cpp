// tandem/base/nvml.cpp: the few functions of NVML that energy needs, declared as its manual describes them.
#include "tandem/base/nvml.hpp"

#include <dlfcn.h>

#include <array>
#include <utility>

namespace tandem::base {
namespace {

using Code = int;  // nvmlReturn_t; 0: success
using Device = struct nvmlDevice_st*;

class LoadedNvml final : public Nvml {
 public:
  explicit LoadedNvml(void* library) : library_(library) {}
  ~LoadedNvml() override {
    if (is_started_) shutdown_();
    ::dlclose(library_);
  }

  /// Starts the library. Returns what is missing; empty: it works.
  std::string start() {
    const bool is_whole = find(init_, "nvmlInit_v2") && find(shutdown_, "nvmlShutdown") &&
                          find(error_text_, "nvmlErrorString") && find(count_, "nvmlDeviceGetCount_v2") &&
                          find(by_index_, "nvmlDeviceGetHandleByIndex_v2") &&
                          find(by_address_, "nvmlDeviceGetHandleByPciBusId_v2") && find(index_, "nvmlDeviceGetIndex") &&
                          find(energy_, "nvmlDeviceGetTotalEnergyConsumption");
    if (!is_whole) return std::string("it has no function ") + missing_ + "; a driver of 2017 or later has";
    const Code code = init_();
    is_started_ = code == 0;
    return is_started_ ? std::string() : text_of(code);
  }

  unsigned device_count() const override {
    unsigned count = 0;
    return count_(&count) == 0 ? count : 0;
  }

  Result<std::unique_ptr<EnergyCounter>> counter(unsigned number) override {
    Device device = nullptr;
    if (const Code code = by_index_(number, &device); code != 0)
      return Error{ErrorCode::not_found, "NVML has no device " + std::to_string(number) + ": " + text_of(code)};
    return counter_of(device, number);
  }

  Result<std::unique_ptr<EnergyCounter>> counter_at(const std::string& bus_address) override {
    Device device = nullptr;
    if (const Code code = by_address_(bus_address.c_str(), &device); code != 0)
      return Error{ErrorCode::not_found, "NVML has no device at " + bus_address + ": " + text_of(code)};
    unsigned number = 0;
    static_cast<void>(index_(device, &number));
    return counter_of(device, number);
  }

 private:
  class Counter final : public EnergyCounter {
   public:
    Counter(std::string name, std::shared_ptr<LoadedNvml> library, Device device, unsigned long long first_mj)
        : EnergyCounter(std::move(name)), library_(std::move(library)), device_(device), first_mj_(first_mj) {}
    std::optional<std::uint64_t> read_uj() noexcept override {
      unsigned long long mj = 0;
      if (library_->energy_(device_, &mj) != 0 || mj < first_mj_) return {};
      return (mj - first_mj_) * 1000;
    }

   private:
    const std::shared_ptr<LoadedNvml> library_;
    const Device device_;
    const unsigned long long first_mj_;
  };

  template <class Function>
  bool find(Function*& function, const char* name) {
    function = reinterpret_cast<Function*>(::dlsym(library_, name));
    if (function == nullptr) missing_ = name;
    return function != nullptr;
  }
  std::string text_of(Code code) const { return error_text_(code); }

  Result<std::unique_ptr<EnergyCounter>> counter_of(Device device, unsigned number) {
    std::string name = "nvidia " + std::to_string(number);
    unsigned long long mj = 0;
    if (const Code code = energy_(device, &mj); code != 0)
      return Error{ErrorCode::unsupported,
                   name + " does not count its energy (" + text_of(code) + "); devices since Volta do"};
    return std::unique_ptr<EnergyCounter>(std::make_unique<Counter>(
        std::move(name), std::static_pointer_cast<LoadedNvml>(shared_from_this()), device, mj));
  }

  void* const library_;
  const char* missing_ = "";
  bool is_started_ = false;
  Code (*init_)() = nullptr;
  Code (*shutdown_)() = nullptr;
  const char* (*error_text_)(Code) = nullptr;
  Code (*count_)(unsigned*) = nullptr;
  Code (*by_index_)(unsigned, Device*) = nullptr;
  Code (*by_address_)(const char*, Device*) = nullptr;
  Code (*index_)(Device, unsigned*) = nullptr;
  Code (*energy_)(Device, unsigned long long*) = nullptr;
};

}  // namespace

Result<std::shared_ptr<Nvml>> Nvml::load(const std::string& library) {
  void* const handle = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr)
    return Error{ErrorCode::not_found, std::string("NVIDIA's library of counters is not here: ") + ::dlerror()};
  auto nvml = std::make_shared<LoadedNvml>(handle);
  if (const std::string why = nvml->start(); !why.empty())
    return Error{ErrorCode::unsupported, library + " does not start: " + why};
  return std::shared_ptr<Nvml>(std::move(nvml));
}

}  // namespace tandem::base
