// tandem/comm/schedule/strategy.cpp: strategies by name.
#include "tandem/comm/schedule/strategy.hpp"

#include <utility>

#include "tandem/base/suggest.hpp"
#include "tandem/comm/schedule/strategies.hpp"

namespace tandem::comm {

using base::Error;
using base::ErrorCode;
using base::Result;

void PacketPlan::clear() noexcept {
  records.clear();
  bulk = nullptr;
  bulk_bytes = 0;
  control_bytes = 0;
}

StrategyRegistry::StrategyRegistry() {
  factories_ = {{"fifo", internal::make_fifo},
                {"aggregate", internal::make_aggregate},
                {"priority", internal::make_priority},
                {"split", internal::make_split}};
}

Result<void> StrategyRegistry::add(std::string name, Factory factory) {
  if (name.empty()) return Error{ErrorCode::invalid_argument, "a packet strategy needs a name that is not empty"};
  const auto [place, added] = factories_.try_emplace(std::move(name), std::move(factory));
  if (!added) {
    return Error{ErrorCode::invalid_argument,
                 "there is a packet strategy '" + place->first + "' already: choose another name"};
  }
  return {};
}

std::vector<std::string> StrategyRegistry::names() const {
  std::vector<std::string> names;
  for (const auto& [name, factory] : factories_) names.push_back(name);
  return names;
}

Result<std::unique_ptr<Strategy>> StrategyRegistry::make(std::string_view name) const {
  if (const auto found = factories_.find(name); found != factories_.end()) return found->second();
  const std::vector<std::string> known = names();
  const std::string nearest = base::nearest_name(name, known);
  std::string message = "no packet strategy is called '" + std::string(name) + "'";
  if (!nearest.empty()) message += "; did you mean '" + nearest + "'?";
  message += " Known:";
  for (const std::string& each : known) message += (&each == &known.front() ? " " : ", ") + each;
  return Error{ErrorCode::not_found, std::move(message)};
}

Result<std::unique_ptr<Strategy>> make_strategy(std::string_view name) { return StrategyRegistry().make(name); }

}  // namespace tandem::comm
