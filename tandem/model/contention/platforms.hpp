// tandem/model/contention/platforms.hpp: the parameters of nine machines, as appendix E of the thesis lists them.
#pragma once

#include <span>
#include <string_view>

#include "tandem/model/contention/threshold_model.hpp"

namespace tandem::model::contention {

/// A machine of the thesis: appendix C says what it is, appendix E gives its parameters.
struct Platform {
  std::string_view name;          ///< "henri"
  std::string_view description;   ///< processors and network
  unsigned cores_per_socket = 0;  ///< the numbers of cores for which predictions were evaluated, from 1
  unsigned sockets = 2;
  ThresholdMachine machine;
};

/// All nine machines, by name.
std::span<const Platform> platforms();
/// The machine of that name; null if there is none.
const Platform* find_platform(std::string_view name);

}  // namespace tandem::model::contention
