// tandem/model/tasks/footprint.hpp: what is known of the data of a task before it runs.
#pragma once

#include <bit>
#include <cstdint>

namespace tandem::model {

/// The data of a task: it selects its histories, and gives a law its size.
struct Footprint {
  std::uint64_t shape = 0;  ///< equal for tasks whose data has equal shapes; a hash of them, or the bytes
  std::uint64_t bytes = 0;  ///< of all data together; 0: not known

  Footprint() = default;
  /// Tasks with equal numbers of bytes are alike.
  Footprint(std::uint64_t all_bytes) noexcept : shape(all_bytes), bytes(all_bytes) {}
  Footprint(std::uint64_t shape_hash, std::uint64_t all_bytes) noexcept : shape(shape_hash), bytes(all_bytes) {}
  bool operator==(const Footprint&) const = default;
};

/// The footprint that stands for all data of similar size: a quarter of an octave, from 4, 5, 6 or 7 times a power of
/// two on. So tasks with new shapes, or with too many to be distinguished, are compared with tasks of about their size.
/// Its bytes are the class's middle.
inline Footprint size_class_of(const Footprint& footprint) noexcept {
  const int octave = static_cast<int>(std::bit_width(footprint.bytes | 4)) - 3;
  const std::uint64_t quarter = footprint.bytes >> octave;
  const std::uint64_t bytes =
      footprint.bytes < 4 ? footprint.bytes : (quarter << octave) + ((std::uint64_t{1} << octave) - 1) / 2;
  return {~bytes, bytes};  // shapes are hashes, or bytes
}

}  // namespace tandem::model
