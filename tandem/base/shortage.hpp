// tandem/base/shortage.hpp: how a process without free file descriptors goes on.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace tandem::base {

/// How long descriptors have been missing for one purpose without a break. Other parts of the process may close some
/// soon; when none have come for `patience_ns`, waiting on would last for ever. A value. Not thread-safe.
class Shortage {
 public:
  static constexpr std::int64_t default_patience_ns = 20'000'000'000;
  explicit Shortage(std::int64_t patience_ns = default_patience_ns) noexcept : patience_ns_(patience_ns) {}

  /// Notes that there is none now. True: there has been none for too long.
  bool lasts(std::int64_t now_ns) noexcept {
    if (since_ns_ == INT64_MIN) since_ns_ = now_ns;
    return now_ns - since_ns_ >= patience_ns_;
  }
  /// Notes that there was one.
  void end() noexcept { since_ns_ = INT64_MIN; }

 private:
  std::int64_t patience_ns_;
  std::int64_t since_ns_ = INT64_MIN;
};

/// Opens a descriptor that is set aside for `with_spare_descriptor`; once in a process. Thread-safe.
void set_spare_descriptor_aside() noexcept;

/// Calls `act` while the spare descriptor is free: it can accept a waiting connection, and refuse it with the reason.
/// Thread-safe; one thread at a time.
void with_spare_descriptor(const std::function<void()>& act);

}  // namespace tandem::base
