// benchmarks/pingpong/peer_pingpong_bare.cpp: what no library can beat here, without any library.
//
// --transport shm: a flag between two cores (4 bytes), and one core's memcpy of the other sizes (`half_N`). --transport tcp: a
// socket that both sides poll. --sleep: a socket that they block on.
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "benchmarks/pingpong/harness.hpp"
#include "benchmarks/pingpong/pair.hpp"

namespace benchmarks::pingpong {
namespace {

/// A TCP connection over the loopback, polled or blocked on.
class SocketAdapter {
 public:
  static constexpr const char* name = "bare";

  SocketAdapter(Pair& pair, bool blocks) : rank_(pair.rank()) {
    sockaddr_in address{};
    socklen_t length = sizeof address;
    if (rank_ == 0) {
      const int listener = socket(AF_INET, SOCK_STREAM, 0);
      address.sin_family = AF_INET;
      address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      require(bind(listener, reinterpret_cast<sockaddr*>(&address), length) == 0 && listen(listener, 1) == 0, "listen");
      require(getsockname(listener, reinterpret_cast<sockaddr*>(&address), &length) == 0, "getsockname");
      pair.tell({reinterpret_cast<const char*>(&address), sizeof address});
      socket_ = accept(listener, nullptr, nullptr);
      close(listener);
    } else {
      const std::string told = pair.hear();
      std::memcpy(&address, told.data(), sizeof address);
      socket_ = socket(AF_INET, SOCK_STREAM, 0);
      require(connect(socket_, reinterpret_cast<sockaddr*>(&address), length) == 0, "connect");
    }
    require(socket_ >= 0, "accept");
    const int on = 1;
    require(setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) == 0, "TCP_NODELAY");
    if (!blocks) require(fcntl(socket_, F_SETFL, O_NONBLOCK) == 0, "O_NONBLOCK");
  }

  std::string version() const { return "sockets"; }
  unsigned rank() const { return rank_; }
  void send(const void* data, std::size_t bytes) {
    move(bytes, [&](std::size_t at) { return ::send(socket_, static_cast<const char*>(data) + at, bytes - at, 0); });
  }
  void receive(void* data, std::size_t bytes) {
    move(bytes, [&](std::size_t at) { return ::recv(socket_, static_cast<char*>(data) + at, bytes - at, 0); });
  }
  void send_many(const void* data, std::size_t bytes, unsigned count) {
    for (unsigned i = 0; i < count; ++i) send(data, bytes);
  }
  void receive_many(void* data, std::size_t bytes, unsigned count) {
    for (unsigned i = 0; i < count; ++i) receive(data, bytes);
  }

 private:
  template <class Call>
  static void move(std::size_t bytes, Call call) {
    for (std::size_t at = 0; at < bytes;) {
      const ssize_t moved = call(at);
      if (moved > 0)
        at += static_cast<std::size_t>(moved);
      else
        require(moved < 0 && (errno == EAGAIN || errno == EINTR), "socket");
    }
  }

  unsigned rank_;
  int socket_ = -1;
};

/// Two flags, each on a cache line of its own and written by one side: the value is the number of the trip. Release by the
/// writer pairs with acquire by the reader, as for a message behind the flag.
struct Flags {
  alignas(128) std::atomic<unsigned> ping{0};
  alignas(128) std::atomic<unsigned> pong{0};
};

/// One sample at either rank; trips are numbered on from `first`.
double flag_us(Flags& flags, unsigned rank, unsigned first, unsigned trips) {
  const auto begin = Clock::now();
  for (unsigned trip = first + 1; trip <= first + trips; ++trip) {
    if (rank == 0) {
      flags.ping.store(trip, std::memory_order_release);
      while (flags.pong.load(std::memory_order_acquire) != trip) {
      }
    } else {
      while (flags.ping.load(std::memory_order_acquire) != trip) {
      }
      flags.pong.store(trip, std::memory_order_release);
    }
  }
  return internal::us_since(begin) / (2.0 * trips);
}

/// One sample of the time of a copy, on one core.
double memcpy_us(const std::vector<char>& from, std::vector<char>& to, unsigned times) {
  const auto begin = Clock::now();
  for (unsigned i = 0; i < times; ++i) {
    std::memcpy(to.data(), from.data(), from.size());
    asm volatile("" : : "r"(to.data()) : "memory");  // the copy is wanted, though nobody reads it
  }
  return internal::us_since(begin) / times;
}

/// The flags between both ranks, then the copies at rank 0 while rank 1 sleeps.
void measure_memory(Flags& flags, Pair& pair, const Plan& plan) {
  constexpr unsigned flag_trips = 20'000;
  Report report{"bare", "flag and memcpy", 2, {{"half_4", "us", {}}}};
  flag_us(flags, pair.rank(), 0, flag_trips);
  for (unsigned i = 1; i <= plan.repetitions; ++i) {
    report.results[0].samples.push_back(flag_us(flags, pair.rank(), i * flag_trips, flag_trips));
  }
  if (pair.rank() == 1) return;
  for (const Size& size : sizes) {
    if (size.bytes == 4) continue;
    const std::vector<char> from(size.bytes, 'f');
    std::vector<char> to(size.bytes, 't');
    Measurement measurement{"half_" + std::to_string(size.bytes), "us", {}};
    memcpy_us(from, to, size.trips);
    for (unsigned i = 0; i < plan.repetitions; ++i) measurement.samples.push_back(memcpy_us(from, to, size.trips));
    report.results.push_back(std::move(measurement));
  }
  report.print();
}

}  // namespace
}  // namespace benchmarks::pingpong

int main(int argc, char** argv) {
  using namespace benchmarks::pingpong;
  const Plan plan(argc, argv);
  void* const shared = mmap(nullptr, sizeof(Flags), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  require(shared != MAP_FAILED, "mmap");
  auto& flags = *new (shared) Flags;
  Pair pair;
  if (plan.bound) bind_to_core(pair.rank());
  if (plan.transport == "shm" && !plan.sleep) {
    measure_memory(flags, pair, plan);
  } else {
    SocketAdapter adapter(pair, plan.sleep);
    measure(adapter, plan);
  }
  return pair.end();
}
