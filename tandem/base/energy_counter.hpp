// tandem/base/energy_counter.hpp: energy counters of this machine: packages and their memory (RAPL), or why there are
// none.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tandem::base {

/// A counter of energy: of a package of the processor, of its memory, or of a device. One thread at a time.
class EnergyCounter {
 public:
  explicit EnergyCounter(std::string name) : name_(std::move(name)) {}
  virtual ~EnergyCounter() = default;
  /// The name for people and traces: "package-0", "package-0 dram", "nvidia 0".
  const std::string& name() const noexcept { return name_; }
  /// Energy in uJ since it was opened; empty: it cannot be read now. Never decreases if it is read at least once per
  /// period of the hardware's counter (some minutes).
  virtual std::optional<std::uint64_t> read_uj() noexcept = 0;

 private:
  std::string name_;
};

/// The counters that were found, and why others are missing.
struct EnergyCounters {
  std::vector<std::unique_ptr<EnergyCounter>> counters;  ///< those that can be read
  std::string missing;  ///< what is missing or cannot be read; empty: nothing
  std::string remedy;   ///< how to change that; empty: nothing can be done
};

/// Where Linux shows RAPL.
inline constexpr const char* kPowercapFolder = "/sys/class/powercap";

/// The packages of the processor, and their memory if counted separately, from the kernel's powercap in `folder`:
/// intel-rapl:N{,:M}/{name,energy_uj,max_energy_range_uj}, on processors of Intel and AMD. Parts of packages (core,
/// uncore) and the whole platform (psys) are left out, since packages contain them, or are contained. Each value is a
/// read of a file: 1 to 20 us.
EnergyCounters find_powercap_counters(const std::filesystem::path& folder = kPowercapFolder);

}  // namespace tandem::base
