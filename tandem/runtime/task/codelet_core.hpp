// tandem/runtime/task/codelet_core.hpp: a codelet without the types of its kernels.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace tandem {

/// Kinds of processing units that can run a kernel. Values from `user` on are for devices that a user or a test
/// registers.
enum class DeviceKind : std::uint8_t { cpu = 0, cuda = 1, opencl = 2, user = 8 };

/// Description of a worker for a `can_run` predicate.
struct WorkerDescription {
  unsigned worker = 0;
  DeviceKind device = DeviceKind::cpu;
};

}  // namespace tandem

namespace tandem::runtime {

struct Shape;

/// The most implementations of one codelet.
inline constexpr std::size_t kMaxImplementations = 16;

/// A codelet without its types. Immutable once a task uses it. The user's `Codelet` objects and each runtime that has
/// seen it share it, so several runtimes, on several threads, may use one.
class CodeletCore {
 public:
  explicit CodeletCore(std::string codelet_name) : name(std::move(codelet_name)) {}
  virtual ~CodeletCore() = default;

  /// Index of the implementation for `kind`, or -1.
  int implementation_for(DeviceKind kind) const noexcept {
    for (std::size_t i = 0; i < devices.size(); ++i)
      if (devices[i] == kind) return static_cast<int>(i);
    return -1;
  }

  /// Adds an implementation, the last one, for workers of `kind`.
  void add_implementation_for(DeviceKind kind) {
    has_choice = has_choice || implementation_for(kind) >= 0;
    devices.push_back(kind);
  }

  /// Copies the properties of the codelet from which this one is made, but not its kernels.
  void take_properties(const CodeletCore& other) {
    devices = other.devices;
    can_run = other.can_run;
    flops = other.flops;
    colour = other.colour;
    plain = other.plain;
    prefers_devices = other.prefers_devices;
    in_main_memory = other.in_main_memory;
    memory_bound = other.memory_bound;
    has_choice = other.has_choice;
  }

  std::string name;
  std::vector<DeviceKind> devices;  ///< kinds of devices of the implementations, in order
  std::function<bool(const WorkerDescription&)> can_run;
  /// Floating-point operations of a task whose accesses have these shapes, for traces. Empty: not known.
  std::function<double(std::span<const Shape>)> flops;
  std::optional<std::uint32_t> colour;  ///< for reports: red * 65536 + green * 256 + blue
  std::optional<bool> memory_bound;     ///< its kernels are limited by memory; empty: the runtime finds out
  /// Cores run only what devices could not, or what a policy that knows durations gives them.
  bool prefers_devices = false;
  bool has_choice = false;       ///< several implementations serve one kind of worker; see `Durations`
  /// Only workers of main memory run it, and its kernel finds data there by itself; not `plain`.
  bool in_main_memory = false;
  bool is_own = false;  ///< it is the runtime's: its tasks order others, or move or add up their data
  bool plain = true;  ///< one implementation, for CPU cores, and no predicate: each CPU worker runs it without a check
};

}  // namespace tandem::runtime
