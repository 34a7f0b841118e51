// tandem/base/hardware_counters.cpp: one group of perf events of the calling thread.
#include "tandem/base/hardware_counters.hpp"

#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <string>
#include <utility>

#include "tandem/base/file_descriptor.hpp"

namespace tandem::base {
namespace {

constexpr std::array<std::uint64_t, 4> kEvents{PERF_COUNT_HW_CPU_CYCLES, PERF_COUNT_HW_INSTRUCTIONS,
                                               PERF_COUNT_HW_STALLED_CYCLES_BACKEND, PERF_COUNT_HW_CACHE_MISSES};
constexpr std::size_t kNeeded = 2;  ///< cycles and instructions

FileDescriptor open_event(std::uint64_t event, int group) {
  perf_event_attr attributes{};
  attributes.size = sizeof(attributes);
  attributes.type = PERF_TYPE_HARDWARE;
  attributes.config = event;
  attributes.read_format = PERF_FORMAT_GROUP;
  attributes.exclude_kernel = 1;  // an unprivileged process may count this much
  attributes.exclude_hv = 1;
  if (group < 0)
    attributes.pinned = 1;  // all the time, or not at all: counts of parts of the time would have to be scaled
  return FileDescriptor(
      static_cast<int>(::syscall(SYS_perf_event_open, &attributes, 0, -1, group, PERF_FLAG_FD_CLOEXEC)));
}

std::string why_refused(int error) {
  const std::string system = std::string("perf_event_open: ") + std::strerror(error);
  switch (error) {
    case ENOENT:
    case EOPNOTSUPP: return system + ": this machine, perhaps a virtual one, shows no such counters";
    case ENOSYS: return system + ": this kernel has no perf events";
    case EACCES:
    case EPERM: {
      int level = -1;
      std::ifstream("/proc/sys/kernel/perf_event_paranoid") >> level;
      return system + (level > 2
                           ? ": kernel.perf_event_paranoid is " + std::to_string(level) + ", and 2 or less is needed"
                           : ": this container or its security profile denies it");
    }
    default: return system;
  }
}

class PerfCounters final : public HardwareCounters {
 public:
  static Result<std::unique_ptr<HardwareCounters>> open() {
    auto counters = std::make_unique<PerfCounters>();
    for (std::size_t i = 0; i < kEvents.size(); ++i) {
      FileDescriptor event = open_event(kEvents[i], i == 0 ? -1 : counters->events_[0].get());
      if (!event && i < kNeeded) return Error{ErrorCode::unsupported, why_refused(errno)};
      if (!event) continue;  // not each processor counts it
      counters->places_[i] = counters->count_++;
      counters->events_[i] = std::move(event);
    }
    // A pinned group without a place in the processor counts nothing.
    if (counters->read().cycles == HardwareCounts::kNotCounted)
      return Error{ErrorCode::unsupported, "the processor's counters are in use by others"};
    return std::unique_ptr<HardwareCounters>(std::move(counters));
  }

  HardwareCounts read() noexcept override {
    std::array<std::uint64_t, 1 + kEvents.size()> values{};  // their number comes first
    const ssize_t bytes = (1 + count_) * static_cast<ssize_t>(sizeof(std::uint64_t));
    if (::read(events_[0].get(), values.data(), sizeof(values)) < bytes) return {};
    const auto value = [&](std::size_t i) {
      return places_[i] < 0 ? HardwareCounts::kNotCounted : values[static_cast<std::size_t>(1 + places_[i])];
    };
    return {.cycles = value(0), .instructions = value(1), .stalled = value(2), .misses = value(3)};
  }

 private:
  std::array<FileDescriptor, kEvents.size()> events_;
  std::array<int, kEvents.size()> places_{-1, -1, -1,
                                          -1};  ///< of each event among those of the group; -1: it is not there
  int count_ = 0;
};

}  // namespace

HardwareCounts HardwareCounts::since(const HardwareCounts& before) const noexcept {
  const auto difference = [](std::uint64_t now, std::uint64_t then) {
    return now == kNotCounted || then == kNotCounted ? kNotCounted : now - then;
  };
  return {.cycles = difference(cycles, before.cycles), .instructions = difference(instructions, before.instructions),
          .stalled = difference(stalled, before.stalled), .misses = difference(misses, before.misses)};
}

Result<std::unique_ptr<HardwareCounters>> open_hardware_counters() { return PerfCounters::open(); }

}  // namespace tandem::base
