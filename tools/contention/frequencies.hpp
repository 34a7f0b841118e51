// tools/contention/frequencies.hpp: frequencies of cores and of the uncore, read over time, and set where that is
// permitted.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tandem/base/result.hpp"

namespace tandem::tools::contention {

/// The kernel's frequencies: of cores by cpufreq, else by /proc/cpuinfo; of the uncore (caches and memory controllers)
/// by the driver intel_uncore_frequency. Each read takes some 10 us per core. `root` is "/", or a test's folder.
class FrequencyReader {
 public:
  /// Reads these hardware threads.
  explicit FrequencyReader(std::vector<unsigned> pus, std::filesystem::path root = "/");

  struct Reading {
    std::int64_t at_ns = 0;            ///< of `steady_now_ns`
    std::vector<double> mhz;           ///< by hardware thread, in their order; 0: not known
    std::optional<double> uncore_mhz;  ///< of the first package
  };
  Reading read() const;

  /// The source of the cores' frequencies; empty: there is none.
  const std::string& source() const noexcept { return source_; }
  /// What is not known here, for people; empty: nothing.
  std::string missing() const;
  const std::vector<unsigned>& pus() const noexcept { return pus_; }

 private:
  std::vector<unsigned> pus_;
  std::filesystem::path root_;
  std::vector<std::filesystem::path> files_;  ///< by hardware thread; empty: /proc/cpuinfo
  std::filesystem::path uncore_;              ///< empty: there is none
  std::string source_;
};

/// Reads before the constructor returns, and every `period_ns` from then on by a thread of its own, until `finish`.
class FrequencyLog {
 public:
  /// `reader` outlives this.
  FrequencyLog(const FrequencyReader& reader, std::int64_t period_ns);
  ~FrequencyLog();
  std::vector<FrequencyReader::Reading> finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The typical frequency of some hardware threads, given by their indices: the median over time of their mean. Empty:
/// not known.
std::optional<double> typical_mhz(const std::vector<FrequencyReader::Reading>& readings,
                                  const std::vector<std::size_t>& places);
std::optional<double> typical_uncore_mhz(const std::vector<FrequencyReader::Reading>& readings);

/// The requested frequencies of a processor.
struct FrequencyWish {
  std::optional<double> core_mhz = {};    ///< for all of these hardware threads
  std::optional<double> uncore_mhz = {};  ///< of all packages
  std::optional<bool> turbo = {};         ///< frequencies above the nominal one
  bool any() const noexcept { return core_mhz || uncore_mhz || turbo; }
};

/// Sets a processor's frequencies while it lives; the destructor restores its files.
class FrequencySetting {
 public:
  /// Sets frequencies. Errors: unsupported, io (not permitted), with a remedy; nothing has changed then.
  static base::Result<FrequencySetting> apply(const FrequencyWish& wish, const std::vector<unsigned>& pus,
                                              const std::filesystem::path& root = "/");
  FrequencySetting(FrequencySetting&&) noexcept = default;
  FrequencySetting& operator=(FrequencySetting&&) = delete;
  ~FrequencySetting();

 private:
  struct Written {
    std::filesystem::path file;
    std::string before;
  };
  FrequencySetting() = default;
  base::Result<void> write(const std::filesystem::path& file, const std::string& text);
  base::Result<void> set_range(const std::filesystem::path& least, const std::filesystem::path& most, double mhz);
  std::vector<Written> written_;
};

}  // namespace tandem::tools::contention
