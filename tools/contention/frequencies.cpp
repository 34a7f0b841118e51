// tools/contention/frequencies.cpp: files of /sys and /proc.
#include "tools/contention/frequencies.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <fstream>
#include <map>
#include <mutex>
#include <ranges>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "tandem/base/thread.hpp"
#include "tools/contention/team.hpp"
#include "tools/json/json_report.hpp"
#include "tools/system_files.hpp"

namespace tandem::tools::contention {
namespace {

namespace fs = std::filesystem;
using base::Error;
using base::ErrorCode;
using base::Result;

constexpr const char* kCpus = "sys/devices/system/cpu";

fs::path cpufreq_of(const fs::path& root, unsigned pu) { return root / kCpus / fmt::format("cpu{}", pu) / "cpufreq"; }

/// The MHz in a file of kHz; 0: not known.
double mhz_in(const fs::path& file) {
  const auto khz = first_word(file);
  return khz ? std::strtod(khz->c_str(), nullptr) / 1e3 : 0;
}

/// The "cpu MHz" of each hardware thread.
std::map<unsigned, double> mhz_in_cpuinfo(const fs::path& root) {
  std::map<unsigned, double> mhz;
  std::ifstream stream(root / "proc/cpuinfo");
  unsigned pu = 0;
  for (std::string line; std::getline(stream, line);) {
    const auto colon = line.find(':');
    if (colon == std::string::npos) continue;
    const std::string_view name = std::string_view(line).substr(0, colon);
    const double value = std::strtod(line.c_str() + colon + 1, nullptr);
    if (name.starts_with("processor")) pu = static_cast<unsigned>(value);
    if (name.starts_with("cpu MHz")) mhz[pu] = value;
  }
  return mhz;
}

/// Folders of the uncore of each package and die, in order.
std::vector<fs::path> uncores_in(const fs::path& root) { return entries_of(root / kCpus / "intel_uncore_frequency"); }

std::optional<double> median_of_known(std::vector<double> values) {
  std::erase_if(values, [](double value) { return !(value > 0); });
  return values.empty() ? std::nullopt : std::optional(median(std::move(values)));
}

}  // namespace

// --- reading

FrequencyReader::FrequencyReader(std::vector<unsigned> pus, fs::path root)
    : pus_(std::move(pus)), root_(std::move(root)) {
  for (const unsigned pu : pus_) files_.push_back(cpufreq_of(root_, pu) / "scaling_cur_freq");
  if (std::ranges::all_of(files_, [](const fs::path& file) { return mhz_in(file) > 0; })) {
    source_ = "cpufreq";
  } else {
    files_.clear();
    if (!mhz_in_cpuinfo(root_).empty()) source_ = "/proc/cpuinfo";
  }
  const auto uncores = uncores_in(root_);
  if (!uncores.empty() && mhz_in(uncores.front() / "current_freq_khz") > 0)
    uncore_ = uncores.front() / "current_freq_khz";
}

FrequencyReader::Reading FrequencyReader::read() const {
  Reading reading{.at_ns = steady_now_ns(), .mhz = {}, .uncore_mhz = {}};
  if (!files_.empty()) {
    for (const fs::path& file : files_) reading.mhz.push_back(mhz_in(file));
  } else {
    const auto known = source_.empty() ? std::map<unsigned, double>() : mhz_in_cpuinfo(root_);
    for (const unsigned pu : pus_) reading.mhz.push_back(known.contains(pu) ? known.at(pu) : 0);
  }
  if (!uncore_.empty()) reading.uncore_mhz = mhz_in(uncore_);
  return reading;
}

std::string FrequencyReader::missing() const {
  if (source_.empty())
    return "frequencies are not known here: there is neither cpufreq nor a frequency in /proc/cpuinfo";
  std::string text;
  if (source_ != "cpufreq")
    text = "there is no cpufreq here: frequencies of cores are those of /proc/cpuinfo, which may be nominal";
  if (uncore_.empty())
    text += std::string(text.empty() ? "" : "; ") +
            "the frequency of the uncore is not known here (driver intel_uncore_frequency)";
  return text;
}

struct FrequencyLog::State {
  std::mutex mutex;
  std::condition_variable ends;
  bool is_over = false;
  std::vector<FrequencyReader::Reading> readings;
  base::Thread thread;
};

FrequencyLog::FrequencyLog(const FrequencyReader& reader, std::int64_t period_ns) : state_(std::make_unique<State>()) {
  state_->readings.push_back(reader.read());
  state_->thread = base::Thread({.name = "frequencies"}, [&state = *state_, &reader, period_ns] {
    std::unique_lock lock(state.mutex);
    while (!state.ends.wait_for(lock, std::chrono::nanoseconds(period_ns), [&] { return state.is_over; })) {
      lock.unlock();
      auto reading = reader.read();
      lock.lock();
      state.readings.push_back(std::move(reading));
    }
  });
}

FrequencyLog::~FrequencyLog() { finish(); }

std::vector<FrequencyReader::Reading> FrequencyLog::finish() {
  if (!state_->thread.joinable()) return {};
  {
    const std::lock_guard lock(state_->mutex);
    state_->is_over = true;
  }
  state_->ends.notify_one();
  state_->thread.join();
  return std::move(state_->readings);
}

std::optional<double> typical_mhz(const std::vector<FrequencyReader::Reading>& readings,
                                  const std::vector<std::size_t>& places) {
  std::vector<double> means;
  for (const FrequencyReader::Reading& reading : readings) {
    double sum = 0;
    std::size_t known = 0;
    for (const std::size_t place : places) {
      sum += reading.mhz[place];
      known += reading.mhz[place] > 0;
    }
    if (known > 0) means.push_back(sum / static_cast<double>(known));
  }
  return median_of_known(std::move(means));
}

std::optional<double> typical_uncore_mhz(const std::vector<FrequencyReader::Reading>& readings) {
  std::vector<double> values;
  for (const FrequencyReader::Reading& reading : readings) values.push_back(reading.uncore_mhz.value_or(0));
  return median_of_known(std::move(values));
}

// --- setting

Result<void> FrequencySetting::write(const fs::path& file, const std::string& text) {
  const auto before = first_word(file);
  if (!before)
    return Error{ErrorCode::unsupported,
                 fmt::format("{} is not there: frequencies cannot be set on this machine", file.string())};
  if (*before == text) return {};
  std::ofstream stream(file);
  stream << text << std::flush;
  if (!stream)
    return Error{ErrorCode::io, fmt::format("{} cannot be written: frequencies are set by root alone", file.string())};
  written_.push_back({file, *before});
  return {};
}

/// Sets both limits of a range to `mhz`, in the order in which the least is never above the greatest.
Result<void> FrequencySetting::set_range(const fs::path& least, const fs::path& most, double mhz) {
  const std::string khz = fmt::format("{:.0f}", mhz * 1e3);
  const bool rises = mhz > mhz_in(most);
  if (const auto first = write(rises ? most : least, khz); !first) return first;
  return write(rises ? least : most, khz);
}

Result<FrequencySetting> FrequencySetting::apply(const FrequencyWish& wish, const std::vector<unsigned>& pus,
                                                 const fs::path& root) {
  FrequencySetting setting;
  if (wish.turbo) {
    const fs::path no_turbo = root / kCpus / "intel_pstate/no_turbo", boost = root / kCpus / "cpufreq/boost";
    if (const auto done = fs::exists(no_turbo) ? setting.write(no_turbo, *wish.turbo ? "0" : "1")
                                               : setting.write(boost, *wish.turbo ? "1" : "0");
        !done)
      return done.error();
  }
  if (wish.core_mhz)
    for (const unsigned pu : pus) {
      const fs::path folder = cpufreq_of(root, pu);
      if (const auto done = setting.set_range(folder / "scaling_min_freq", folder / "scaling_max_freq", *wish.core_mhz);
          !done)
        return done.error();
    }
  if (wish.uncore_mhz) {
    const auto uncores = uncores_in(root);
    if (uncores.empty())
      return Error{ErrorCode::unsupported,
                   "the uncore's frequency cannot be set on this machine: it has no driver intel_uncore_frequency"};
    for (const fs::path& folder : uncores)
      if (const auto done = setting.set_range(folder / "min_freq_khz", folder / "max_freq_khz", *wish.uncore_mhz);
          !done)
        return done.error();
  }
  return setting;
}

FrequencySetting::~FrequencySetting() {
  for (const Written& one : written_ | std::views::reverse) std::ofstream(one.file) << one.before << std::flush;
}

}  // namespace tandem::tools::contention
