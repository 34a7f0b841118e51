// tandem/runtime/device/opencl/module.cpp: OpenCL devices as a module.
#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <memory>
#include <utility>

#include "tandem/runtime/device/opencl/load_opencl.hpp"
#include "tandem/runtime/device/opencl/opencl_card.hpp"
#include "tandem/runtime/device/opencl/opencl_device.hpp"
#include "tandem/runtime/device/opencl/opencl_memory.hpp"

namespace tandem::runtime::opencl {
namespace {

std::vector<CardFacts> cards_in_order() {
  std::vector<CardFacts> cards = find_cards();
  std::stable_partition(cards.begin(), cards.end(), [](const CardFacts& card) { return !card.is_processor; });
  return cards;
}

std::vector<OpenClFacts> find() {
  std::vector<OpenClFacts> all;
  for (const CardFacts& card : cards_in_order())
    all.push_back({card.name, card.platform_name, card.version, card.memory_bytes, card.units, card.is_processor});
  return all;
}

base::Result<std::vector<DeviceUnit>> make(const OpenClOptions& options) {
  std::vector<DeviceUnit> units;
  const auto buffers = std::make_shared<Buffers>();
  for (CardFacts& facts : cards_in_order()) {
    if (units.size() == options.most_devices) break;
    // OpenCL does not report how much memory is free.
    const std::size_t budget =
        options.memory_bytes != 0
            ? options.memory_bytes
            : std::max<std::size_t>(facts.memory_bytes / 4 * 3 / std::max(options.sharers, 1U), 1);
    try {
      const auto card = std::make_shared<Card>(std::move(facts), static_cast<unsigned>(units.size()), buffers);
      units.push_back({.kind = DeviceKind::opencl,
                       .device = std::make_unique<OpenClDevice>(card, options.depth),
                       .memory = std::make_unique<OpenClMemory>(card),
                       .copier = std::make_unique<OpenClCopier>(card),
                       .budget = budget,
                       .bus_address = card->facts().bus_address});
    } catch (const std::exception& error) {
      return base::Error{base::ErrorCode::unsupported,
                         fmt::format("an OpenCL device cannot be used: {}", error.what())};
    }
  }
  return units;
}

OpenClModule describe() {
  OpenClModule module;
  module.version = TANDEM_VERSION;
  module.find = find;
  module.make = make;
  return module;
}

}  // namespace
}  // namespace tandem::runtime::opencl

const tandem::runtime::OpenClModule* tandem_device_opencl_module() noexcept {
  static const tandem::runtime::OpenClModule module = tandem::runtime::opencl::describe();
  return &module;
}
