// tandem/runtime/submit/toll.hpp: the virtual time that submission takes.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>

namespace tandem::runtime {

/// Lets time pass for tasks that are submitted in virtual time, in which code takes none. Used by the submitting
/// thread. Time passes for several tasks at once, so that a simulation has fewer steps.
class Toll {
 public:
  Toll() = default;
  /// `pass` lets others go on for that time, and returns behind it.
  Toll(std::int64_t task_ns, std::function<void(std::int64_t ns)> pass) : task_ns_(task_ns), pass_(std::move(pass)) {}

  /// Counts one task.
  void pay() {
    owed_ns_ += task_ns_;
    if (owed_ns_ >= kPaidAtNs) pass_(std::exchange(owed_ns_, 0));
  }

 private:
  static constexpr std::int64_t kPaidAtNs = 2'000;

  std::int64_t task_ns_ = 0;
  std::int64_t owed_ns_ = 0;
  std::function<void(std::int64_t ns)> pass_;
};

}  // namespace tandem::runtime
