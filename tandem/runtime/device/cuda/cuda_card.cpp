// tandem/runtime/device/cuda/cuda_card.cpp: finds devices, and allocates their memory.
#include "tandem/runtime/device/cuda/cuda_card.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace tandem::runtime::cuda {

namespace {

/// Rounds a size for the kept blocks, so that small data share a size.
std::size_t rounded(std::size_t bytes) { return (std::max<std::size_t>(bytes, 1) + 511) / 512 * 512; }

unsigned attribute_of(const Driver& driver, int attribute, DeviceNumber device) {
  int value = 0;
  driver.check(driver.device_attribute(&value, attribute, device), "no attribute of a device");
  return static_cast<unsigned>(value);
}

CardLimits limits_of(const Driver& driver, DeviceNumber device) {
  CardLimits limits;
  limits.threads_of_block = attribute_of(driver, kMaxThreadsOfBlock, device);
  limits.block = {attribute_of(driver, kMaxBlockX, device), attribute_of(driver, kMaxBlockY, device),
                  attribute_of(driver, kMaxBlockZ, device)};
  limits.grid = {attribute_of(driver, kMaxGridX, device), attribute_of(driver, kMaxGridY, device),
                 attribute_of(driver, kMaxGridZ, device)};
  limits.shared_of_block = attribute_of(driver, kMaxSharedOfBlock, device);
  return limits;
}

std::string bus_address_of(const Driver& driver, DeviceNumber device) {
  int domain = 0, bus = 0, slot = 0;
  for (const auto& [attribute, value] : {std::pair{kPciDomain, &domain}, {kPciBus, &bus}, {kPciDevice, &slot}})
    if (driver.device_attribute(value, attribute, device) != kSuccess) return {};
  return fmt::format("{:04x}:{:02x}:{:02x}.0", domain, bus, slot);
}

}  // namespace

std::vector<CardFacts> find_cards(const Driver& driver) {
  int count = 0;
  if (driver.device_count(&count) != kSuccess) return {};  // a driver without devices
  std::vector<CardFacts> cards;
  for (int i = 0; i < count; ++i) {
    CardFacts facts;
    driver.check(driver.device(&facts.device, i), "no device");
    char name[256] = "?";
    driver.check(driver.device_name(name, sizeof(name), facts.device), "no name of a device");
    facts.name = name;
    driver.check(driver.device_memory(&facts.memory_bytes, facts.device), "no size of a device's memory");
    facts.multiprocessors = attribute_of(driver, kMultiprocessorCount, facts.device);
    facts.major = attribute_of(driver, kCapabilityMajor, facts.device);
    facts.minor = attribute_of(driver, kCapabilityMinor, facts.device);
    facts.bus_address = bus_address_of(driver, facts.device);
    facts.limits = limits_of(driver, facts.device);
    cards.push_back(std::move(facts));
  }
  return cards;
}

Card::Card(std::shared_ptr<const Driver> driver, CardFacts facts, unsigned number, std::shared_ptr<Owners> owners)
    : driver_(std::move(driver)), facts_(std::move(facts)), name_(fmt::format("cuda {} ({})", number, facts_.name)), owners_(std::move(owners)) {
  driver_->check(driver_->retain_context(&context_, facts_.device), "no context");
  try {
    const Within within(*driver_, context_);
    to_device_ = std::make_unique<Lane>(*driver_, context_);
    from_device_ = std::make_unique<Lane>(*driver_, context_);
    thread_ = base::Thread({.name = "tandem-cuda-mem"}, [this] { free_what_leaves(); });
  } catch (...) {
    from_device_.reset();
    to_device_.reset();
    driver_->release_context(facts_.device);
    throw;
  }
}

Card::~Card() {
  {
    const std::lock_guard guard(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
  {
    const Within within(*driver_, context_);
    to_device_.reset();
    from_device_.reset();
    free_kept();
  }
  driver_->release_context(facts_.device);
}

void Card::enter() const { driver_->check(driver_->set_current(context_), "no context"); }

void Card::reach(const Card& other) const {
  int can = 0;
  if (driver_->can_access_peer(&can, facts_.device, other.facts_.device) != kSuccess || can == 0) return;
  const Within within(*driver_, context_);
  // An error does not matter: copies then go through main memory.
  static_cast<void>(driver_->enable_peer_access(other.context_, 0));
}

std::optional<Address> Card::take_kept(std::size_t bytes) {
  const std::lock_guard guard(mutex_);
  const auto kept = kept_.find(bytes);
  if (kept == kept_.end() || kept->second.empty()) return {};
  const Address address = kept->second.back();
  kept->second.pop_back();
  kept_bytes_ -= bytes;
  return address;
}

/// Frees kept memory: when this returns, all that was released is free.
void Card::free_kept() noexcept {
  std::unique_lock lock(mutex_);
  std::vector<Address> all = std::exchange(leaving_, {});
  for (const auto& [bytes, addresses] : std::exchange(kept_, {}))
    all.insert(all.end(), addresses.begin(), addresses.end());
  kept_bytes_ = 0;
  freeing_ += all.size();
  lock.unlock();  // a thread that releases memory does not wait for the device
  for (const Address address : all) driver_->release(address);
  lock.lock();
  freeing_ -= all.size();
  changed_.notify_all();
  changed_.wait(lock, [this] { return freeing_ == 0; });
}

/// Loop of the thread that frees memory.
void Card::free_what_leaves() {
  driver_->set_current(context_);
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stopping_ || !leaving_.empty(); });
    if (leaving_.empty()) return;
    const Address address = leaving_.back();
    leaving_.pop_back();
    ++freeing_;
    lock.unlock();
    driver_->release(address);
    lock.lock();
    --freeing_;
    changed_.notify_all();
  }
}

void* Card::allocate(std::size_t bytes) {
  const std::size_t size = rounded(bytes);
  std::optional<Address> address = take_kept(size);
  if (!address) {
    Address fresh = 0;
    const Within within(*driver_, context_);
    if (driver_->allocate(&fresh, size) != kSuccess) {
      free_kept();
      if (driver_->allocate(&fresh, size) != kSuccess) return nullptr;
    }
    address = fresh;
  }
  void* const memory = reinterpret_cast<void*>(static_cast<std::uintptr_t>(*address));
  owners_->add(memory, this);
  return memory;
}

void Card::release(void* memory, std::size_t bytes) noexcept {
  owners_->remove(memory);
  const Address address = reinterpret_cast<std::uintptr_t>(memory);
  const std::size_t size = rounded(bytes);
  const std::lock_guard guard(mutex_);
  if (kept_bytes_ + size <= facts_.memory_bytes / 16) {
    kept_[size].push_back(address);
    kept_bytes_ += size;
    return;
  }
  leaving_.push_back(address);
  changed_.notify_all();
}

/// The driver maps memory in granules. Small pieces share one; others have their own.
std::size_t Card::footprint(std::size_t bytes) noexcept {
  constexpr std::size_t kGranule = std::size_t{2} << 20;
  return bytes <= kGranule / 2 ? bytes : (bytes / kGranule + (bytes % kGranule != 0 ? 1 : 0)) * kGranule;
}

std::size_t Card::free_bytes() const {
  const Within within(*driver_, context_);
  std::size_t free = 0, all = 0;
  driver_->check(driver_->memory_info(&free, &all), "no size of the free memory");
  return free;
}

bool Card::is_lost() const noexcept {
  const Within within(*driver_, context_);
  std::size_t free = 0, all = 0;
  return cuda::is_lost(driver_->memory_info(&free, &all));  // a context that has failed says so at each call
}

void Card::finish() noexcept {
  to_device_->finish();
  from_device_->finish();
}

}  // namespace tandem::runtime::cuda
