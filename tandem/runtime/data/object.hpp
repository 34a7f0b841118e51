// tandem/runtime/data/object.hpp: values that are more than their bytes: how they begin and end, and how they travel.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace tandem::runtime {

/// What the runtime must know of the type of an object. One static table per type; all functions are thread-safe for
/// different objects.
struct ObjectOps {
  void (*construct)(void* memory) = nullptr;              ///< an empty value, in raw memory. May throw
  void (*destroy)(void* object) noexcept = nullptr;
  /// Appends the value as bytes. May throw.
  void (*write)(const void* object, std::vector<std::byte>& bytes) = nullptr;
  /// Replaces the value by what all of `bytes` say. Throws if they are no such value; the old value stays then.
  void (*read)(void* object, std::span<const std::byte> bytes) = nullptr;
};

}  // namespace tandem::runtime
