// tandem/runtime/device/cuda/module.cpp: CUDA devices as a module.
#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <memory>
#include <utility>

#include "tandem/runtime/device/cuda/cuda_card.hpp"
#include "tandem/runtime/device/cuda/cuda_device.hpp"
#include "tandem/runtime/device/cuda/cuda_memory.hpp"
#include "tandem/runtime/device/cuda/load_cuda.hpp"

namespace tandem::runtime::cuda {
namespace {

base::Error cannot_be_used(const std::exception& error) {
  return {base::ErrorCode::unsupported, fmt::format("a CUDA device cannot be used: {}", error.what())};
}

base::Result<std::vector<CudaFacts>> find(const std::string& folder) {
  const auto driver = Driver::load(folder);
  if (!driver.ok()) return driver.error();
  std::vector<CudaFacts> all;
  try {
    for (const CardFacts& card : find_cards(*driver.value()))
      all.push_back({card.name, card.memory_bytes, card.multiprocessors, card.major, card.minor});
  } catch (const std::exception& error) {
    return cannot_be_used(error);
  }
  return all;
}

/// Default budget: three quarters of the free memory, since libraries and kernels need some, too. At least 1, since 0
/// stands for no limit.
std::size_t usual_budget(const Card& card, unsigned sharers) {
  return std::max<std::size_t>(card.free_bytes() / 4 * 3 / std::max(sharers, 1U), 1);
}

base::Result<std::vector<DeviceUnit>> make(const CudaOptions& options) {
  const auto driver = Driver::load(options.libraries);
  if (!driver.ok()) return driver.error();
  std::vector<DeviceUnit> units;
  std::vector<std::shared_ptr<Card>> cards;
  const auto owners = std::make_shared<Owners>();
  const auto libraries = std::make_shared<Libraries>(options.libraries, driver.value()->version);
  try {
    for (CardFacts& facts : find_cards(*driver.value())) {
      if (units.size() == options.most_devices) break;
      const auto card =
          std::make_shared<Card>(driver.value(), std::move(facts), static_cast<unsigned>(units.size()), owners);
      for (const auto& other : cards) {
        other->reach(*card);
        card->reach(*other);
      }
      cards.push_back(card);
      units.push_back(
          {.kind = DeviceKind::cuda,
           .device = std::make_unique<CudaDevice>(card, libraries, options.depth, options.graphs),
           .memory = std::make_unique<CudaMemory>(card, options.messages),
           .copier = std::make_unique<CudaCopier>(card, options.page_locked),
           .budget = options.memory_bytes != 0 ? options.memory_bytes : usual_budget(*card, options.sharers),
           .bus_address = card->facts().bus_address});
    }
  } catch (const std::exception& error) {
    return cannot_be_used(error);
  }
  return units;
}

/// Keeps the primary context of the first device, in which page-locked memory for all devices ("portable") is made.
class FirstContext {
 public:
  explicit FirstContext(std::shared_ptr<const Driver> driver) : driver_(std::move(driver)) {
    driver_->check(driver_->device(&device_, 0), "no device");
    driver_->check(driver_->retain_context(&context_, device_), "no context");
  }
  FirstContext(const FirstContext&) = delete;
  FirstContext& operator=(const FirstContext&) = delete;
  ~FirstContext() { driver_->release_context(device_); }

  const Driver& driver() const noexcept { return *driver_; }
  Within enter() const noexcept { return {*driver_, context_}; }

 private:
  const std::shared_ptr<const Driver> driver_;
  DeviceNumber device_ = 0;
  Context context_ = nullptr;
};

class PageLock {
 public:
  PageLock(std::shared_ptr<const Driver> driver, void* memory, std::size_t bytes)
      : context_(std::move(driver)), memory_(memory) {
    const Within within = context_.enter();
    context_.driver().check(context_.driver().lock_host(memory, bytes, kHostRegisterPortable),
                            "pages cannot be locked");
  }
  PageLock(const PageLock&) = delete;
  PageLock& operator=(const PageLock&) = delete;
  ~PageLock() {
    const Within within = context_.enter();
    context_.driver().unlock_host(memory_);
  }

 private:
  const FirstContext context_;
  void* const memory_;
};

class CudaPageLocker final : public PageLocker {
 public:
  explicit CudaPageLocker(std::shared_ptr<const Driver> driver) : context_(std::move(driver)) {}
  void* allocate(std::size_t bytes, std::string& why) override {
    const Within within = context_.enter();
    void* memory = nullptr;
    const Status status = context_.driver().allocate_host(&memory, bytes, kHostAllocPortable);
    if (status == kSuccess) return memory;
    why = context_.driver().name_of(status);
    return nullptr;
  }
  void release(void* memory) noexcept override {
    const Within within = context_.enter();
    context_.driver().release_host(memory);
  }

 private:
  const FirstContext context_;
};

base::Result<std::unique_ptr<PageLocker>> page_locker(const std::string& folder) {
  const auto driver = Driver::load(folder);
  if (!driver.ok()) return driver.error();
  try {
    return std::unique_ptr<PageLocker>(std::make_unique<CudaPageLocker>(driver.value()));
  } catch (const std::exception& error) {
    return cannot_be_used(error);
  }
}

base::Result<std::shared_ptr<void>> lock(const std::string& folder, void* memory, std::size_t bytes) {
  const auto driver = Driver::load(folder);
  if (!driver.ok()) return driver.error();
  try {
    return std::shared_ptr<void>(std::make_shared<PageLock>(driver.value(), memory, bytes));
  } catch (const std::exception& error) {
    return cannot_be_used(error);
  }
}

CudaModule describe() {
  CudaModule module;
  module.version = TANDEM_VERSION;
  module.find = find;
  module.make = make;
  module.page_locker = page_locker;
  module.lock = lock;
  return module;
}

}  // namespace
}  // namespace tandem::runtime::cuda

const tandem::runtime::CudaModule* tandem_device_cuda_module() noexcept {
  static const tandem::runtime::CudaModule module = tandem::runtime::cuda::describe();
  return &module;
}
