// tandem/base/energy_counter.hpp: counters of energy of this machine: packages and their memory (RAPL), and what tells why there are none.
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
  /// For people and traces: "package-0", "package-0 dram", "nvidia 0".
  const std::string& name() const noexcept { return name_; }
  /// In uJ since it was opened; nothing: it cannot be read now. Does not go back while it is read once in a turn of the hardware's counter at least
  /// (some minutes).
  virtual std::optional<std::uint64_t> read_uj() noexcept = 0;

 private:
  std::string name_;
};

/// The counters that were found, and what keeps us from others.
struct EnergyCounters {
  std::vector<std::unique_ptr<EnergyCounter>> counters;  ///< those that can be read
  std::string missing;  ///< what is not there or cannot be read; empty: nothing
  std::string remedy;   ///< what to do about that; empty: nothing can be done
};

/// Where Linux shows RAPL.
inline constexpr const char* kPowercapFolder = "/sys/class/powercap";

/// The packages of the processor, and their memory where it counts apart, as the kernel's powercap shows them in `folder`:
/// intel-rapl:N{,:M}/{name,energy_uj,max_energy_range_uj}, on processors of Intel and AMD. Parts of packages (core, uncore) and the whole platform (psys)
/// are left out, since packages contain them, or are contained. Each value is a read of a file: 1 to 20 us.
EnergyCounters find_powercap_counters(const std::filesystem::path& folder = kPowercapFolder);

}  // namespace tandem::base
