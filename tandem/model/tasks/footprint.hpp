// tandem/model/tasks/footprint.hpp: what is known of the data of a task before it runs.
#pragma once

#include <cstdint>

namespace tandem::model {

/// The data of a task: which histories are its own, and which size a law sees.
struct Footprint {
  std::uint64_t shape = 0;  ///< equal for tasks whose data has equal shapes; a hash of them, or the bytes
  std::uint64_t bytes = 0;  ///< of all data together; 0: not known

  Footprint() = default;
  /// Tasks with as many bytes are alike.
  Footprint(std::uint64_t all_bytes) noexcept : shape(all_bytes), bytes(all_bytes) {}
  Footprint(std::uint64_t shape_hash, std::uint64_t all_bytes) noexcept : shape(shape_hash), bytes(all_bytes) {}
  bool operator==(const Footprint&) const = default;
};

}  // namespace tandem::model
