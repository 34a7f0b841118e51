// tandem/dist/packed_value.hpp: the bytes of an object's or an array's value while messages of it are under way.
#pragma once

#include <cstddef>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "tandem/runtime/data/handle.hpp"

namespace tandem::dist {

/// The first send of a version makes the bytes; sends that start before the others have ended share them; the last one
/// frees them. A send reads the data, so no task writes the object meanwhile. Any thread.
class PackedValue {
 public:
  /// The bytes of `handle`'s value, until `release`. Throws the exceptions of the object's type; nothing is acquired
  /// then.
  std::span<const std::byte> acquire(const runtime::Handle& handle) {
    const std::lock_guard guard(mutex_);
    if (users_ == 0) {
      std::vector<std::byte> bytes;
      if (handle.object != nullptr) {
        handle.object->write(handle.home.pointer, bytes);
      } else {
        bytes.resize(handle.shape.bytes());
        handle.layout->pack(handle.home.pointer, bytes.data());
      }
      bytes_ = std::move(bytes);
    }
    ++users_;
    return bytes_;
  }
  void release() noexcept {
    const std::lock_guard guard(mutex_);
    if (--users_ == 0) bytes_ = {};
  }

 private:
  std::mutex mutex_;  ///< guards both members; held while the bytes are written
  std::vector<std::byte> bytes_;
  unsigned users_ = 0;
};

}  // namespace tandem::dist
