// tandem/sim_rank/virtual_clock.cpp: functions of the C library that read a clock or sleep, in virtual time.
//
// A module that stands before the C library in a simulated process (LD_PRELOAD). Until a runtime connects it, virtual
// time stands still, but for the sleeps of the main thread. Sleeps of other threads are real. Clocks of processor time
// are the system's; so are deadlines of condition variables and of poll.
#include "tandem/sim_rank/virtual_clock.hpp"

#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <ctime>

namespace {

using tandem::sim::VirtualClock;

constexpr std::int64_t ns_per_s = 1'000'000'000;
/// Of clocks that count from some event, as from the start of the system: virtual time 0.
constexpr std::int64_t monotonic_begin_ns = 1'000 * ns_per_s;

std::int64_t epoch_ns = 0;  ///< 0: not yet known, and clocks are real
VirtualClock port;
std::atomic<bool> is_connected{false};
std::atomic<std::int64_t> passed_ns{0};  ///< before it is connected, and after

__attribute__((constructor)) void begin() {
  const char* const text = std::getenv(tandem::sim::epoch_variable);
  if (text != nullptr) epoch_ns = std::strtoll(text, nullptr, 10);
}

bool is_virtual() { return epoch_ns > 0; }
bool is_main_thread() {
  static thread_local const bool is_main = ::syscall(SYS_gettid) == ::getpid();
  return is_main;
}

/// What a thread that reads a clock sees. To read it takes a little time, so that a loop that waits for a date ends.
std::int64_t now_ns() {
  if (is_connected.load(std::memory_order_acquire))
    return is_main_thread() ? port.read_ns(port.context) : port.now_ns(port.context);
  return is_main_thread() ? passed_ns += tandem::sim::clock_reading_ns : passed_ns.load();
}

/// The date of a clock at virtual time 0; -1: the clock is not virtual.
std::int64_t begin_of(clockid_t clock) {
  switch (clock) {
    case CLOCK_REALTIME:
    case CLOCK_REALTIME_COARSE:
    case CLOCK_TAI: return epoch_ns;
    case CLOCK_MONOTONIC:
    case CLOCK_MONOTONIC_RAW:
    case CLOCK_MONOTONIC_COARSE:
    case CLOCK_BOOTTIME: return monotonic_begin_ns;
    default: return -1;
  }
}

timespec timespec_of(std::int64_t ns) { return {ns / ns_per_s, ns % ns_per_s}; }
std::int64_t ns_of(const timespec& time) { return time.tv_sec * ns_per_s + time.tv_nsec; }
bool is_sound(const timespec& time) { return time.tv_sec >= 0 && time.tv_nsec >= 0 && time.tv_nsec < ns_per_s; }

void sleep_until(std::int64_t when_ns) {
  if (is_connected.load(std::memory_order_acquire)) return port.sleep_until(port.context, when_ns);
  if (when_ns > passed_ns) passed_ns = when_ns;
}

int real_sleep(clockid_t clock, int flags, const timespec* time, timespec* left) {
  return ::syscall(SYS_clock_nanosleep, clock, flags, time, left) == 0 ? 0 : errno;
}

}  // namespace

extern "C" {

std::int64_t tandem_connect_virtual_clock(const VirtualClock* clock) {
  if (clock != nullptr) port = *clock;
  else if (is_connected) passed_ns = port.now_ns(port.context);
  is_connected.store(clock != nullptr, std::memory_order_release);
  return passed_ns;
}

int clock_gettime(clockid_t clock, timespec* time) noexcept {
  const std::int64_t begin_ns = is_virtual() ? begin_of(clock) : -1;
  if (begin_ns < 0) return static_cast<int>(::syscall(SYS_clock_gettime, clock, time));
  *time = timespec_of(begin_ns + now_ns());
  return 0;
}

int gettimeofday(timeval* time, void*) noexcept {
  timespec now;
  ::clock_gettime(CLOCK_REALTIME, &now);
  *time = {now.tv_sec, now.tv_nsec / 1000};
  return 0;
}

time_t time(time_t* to) noexcept {
  timespec now;
  ::clock_gettime(CLOCK_REALTIME, &now);
  if (to != nullptr) *to = now.tv_sec;
  return now.tv_sec;
}

int timespec_get(timespec* time, int base) noexcept {
  if (base != TIME_UTC) return 0;
  return ::clock_gettime(CLOCK_REALTIME, time) == 0 ? base : 0;
}

int clock_nanosleep(clockid_t clock, int flags, const timespec* time, timespec* left) {
  const std::int64_t begin_ns = is_virtual() ? begin_of(clock) : -1;
  if (begin_ns < 0 || !is_main_thread()) return real_sleep(clock, flags, time, left);
  if (!is_sound(*time)) return EINVAL;
  sleep_until((flags & TIMER_ABSTIME) != 0 ? ns_of(*time) - begin_ns : now_ns() + ns_of(*time));
  return 0;
}

int nanosleep(const timespec* time, timespec* left) {
  const int error = ::clock_nanosleep(CLOCK_REALTIME, 0, time, left);
  if (error != 0) errno = error;
  return error == 0 ? 0 : -1;
}

unsigned sleep(unsigned seconds) {
  const timespec time{static_cast<time_t>(seconds), 0};
  timespec left{};
  return ::nanosleep(&time, &left) == 0 ? 0 : static_cast<unsigned>(left.tv_sec);
}

int usleep(useconds_t us) {
  const timespec time = timespec_of(std::int64_t{us} * 1000);
  return ::nanosleep(&time, nullptr);
}

}  // extern "C"
