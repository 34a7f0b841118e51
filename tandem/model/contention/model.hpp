// tandem/model/contention/model.hpp: the interface of all models of memory contention.
#pragma once

#include "tandem/model/contention/load.hpp"

namespace tandem::model::contention {

/// How computing cores and the network share memory bandwidth on one machine. Immutable, and so free to share between
/// threads.
class Model {
 public:
  virtual ~Model() = default;
  /// The bandwidths under a load. O(cores), without allocation.
  virtual Bandwidths predict(const Load& load) const = 0;
};

}  // namespace tandem::model::contention
