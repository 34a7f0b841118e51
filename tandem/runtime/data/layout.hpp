// tandem/runtime/data/layout.hpp: the dimensions of an array, and where its elements are in the program's memory.
#pragma once

#include <array>
#include <cstddef>
#include <span>

namespace tandem::runtime {

/// An array of up to eight dimensions: element (i, j, ...) stands i * strides[0] + j * strides[1] + ... elements behind
/// the first one. A value.
///
/// Copies of the array are *packed*: the first index runs fastest, and there are no gaps. So all that moves an array
/// sees one column of elements; only the program's own memory may be strided, and what comes from it or goes to it
/// passes through `pack` and `unpack`.
class Layout {
 public:
  static constexpr std::size_t kMostDimensions = 8;  ///< of an array

  /// `strides` are in elements, one for each extent.
  Layout(std::span<const std::size_t> extents, std::span<const std::size_t> strides,
         std::size_t element_bytes) noexcept;
  /// Layout of the same array without gaps.
  Layout packed() const noexcept;

  std::span<const std::size_t> extents() const noexcept { return {extents_.data(), dimensions_}; }  ///< by dimension
  /// By dimension, in elements.
  std::span<const std::size_t> strides() const noexcept { return {strides_.data(), dimensions_}; }
  /// Number of elements.
  std::size_t count() const noexcept;
  /// Whether the array has no gaps and its first index runs fastest.
  bool is_packed() const noexcept { return is_packed_; }
  /// Whether each element has memory of its own by the strides alone: each stride reaches over all that smaller ones
  /// span.
  bool is_sound() const noexcept;

  /// Whether the array with its gaps takes at most `most` bytes, and no extent is larger.
  bool is_within(std::size_t most) const noexcept;

  /// Copies the array at `from` to packed memory.
  void pack(const void* from, void* to) const noexcept;
  /// Copies packed memory to the array at `to`.
  void unpack(const void* from, void* to) const noexcept;

  /// Pieces of memory without gaps: `count` pieces of so many bytes, `stride` bytes apart. An array that needs more
  /// than one distance gives its first piece.
  struct Pieces {
    std::size_t bytes = 0;
    std::size_t count = 1;
    std::size_t stride = 0;
  };
  Pieces pieces() const noexcept;

 private:
  template <class Copy>
  void for_each_run(const Copy& copy) const noexcept;

  std::array<std::size_t, kMostDimensions> extents_{};
  std::array<std::size_t, kMostDimensions> strides_{};
  std::size_t dimensions_ = 0;
  std::size_t element_bytes_ = 0;
  bool is_packed_ = false;
};

}  // namespace tandem::runtime
