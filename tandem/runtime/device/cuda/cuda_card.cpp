// tandem/runtime/device/cuda/cuda_card.cpp: finds devices, and gives out their memory.
#include "tandem/runtime/device/cuda/cuda_card.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace tandem::runtime::cuda {

namespace {

/// Sizes that are kept apart. Small data share a size.
std::size_t rounded(std::size_t bytes) { return (std::max<std::size_t>(bytes, 1) + 511) / 512 * 512; }

unsigned attribute_of(const Driver& driver, int attribute, DeviceNumber device) {
  int value = 0;
  driver.check(driver.device_attribute(&value, attribute, device), "no attribute of a device");
  return static_cast<unsigned>(value);
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
  if (driver.device_count(&count) != kSuccess) return {};  // initialised without devices
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
  } catch (...) {
    to_device_.reset();
    driver_->release_context(facts_.device);
    throw;
  }
}

Card::~Card() {
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
  // Copies work without it, too, through main memory.
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

bool Card::keep(Address address, std::size_t bytes) noexcept {
  const std::lock_guard guard(mutex_);
  if (kept_bytes_ + bytes > facts_.memory_bytes / 16) return false;
  kept_[bytes].push_back(address);
  kept_bytes_ += bytes;
  return true;
}

void Card::free_kept() noexcept {
  const std::lock_guard guard(mutex_);
  for (const auto& [bytes, addresses] : kept_)
    for (const Address address : addresses) driver_->release(address);
  kept_.clear();
  kept_bytes_ = 0;
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
  if (keep(address, rounded(bytes))) return;
  const Within within(*driver_, context_);
  driver_->release(address);
}

void Card::finish() noexcept {
  to_device_->finish();
  from_device_->finish();
}

}  // namespace tandem::runtime::cuda
