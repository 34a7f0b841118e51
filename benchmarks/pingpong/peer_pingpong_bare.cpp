// benchmarks/pingpong/peer_pingpong_bare.cpp: what no library can beat here, without any library.
//
// --transport shm: a flag between two cores (4 bytes); up to 4 KiB, and for `message_4`, a ring of cache lines: copied
// in, a flag, copied out; one core's memcpy of the larger sizes. --transport tcp: a socket that both sides poll.
// --sleep: a socket that they block on.
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
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
      pair.send({reinterpret_cast<const char*>(&address), sizeof address});
      socket_ = accept(listener, nullptr, nullptr);
      close(listener);
    } else {
      const std::string received = pair.receive();
      std::memcpy(&address, received.data(), sizeof address);
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

/// Two flags, each on a cache line of its own and written by one side: the value is the number of the trip. Release by
/// the writer pairs with acquire by the reader, as for a message behind the flag.
struct Flags {
  alignas(128) std::atomic<unsigned> ping{0};
  alignas(128) std::atomic<unsigned> pong{0};
};

/// Messages from one side to the other, in consecutive cache lines: the first one begins with the message's number,
/// stored last, and short messages lie in it. A writer would overtake a reader that is a whole ring behind; none of
/// what is measured is.
struct Ring {
  static constexpr std::size_t line = 64, lines = 4096;
  static constexpr std::size_t longest = 4096;  ///< message that is measured
  alignas(128) std::array<std::byte, line * lines> memory{};
};

struct Shared {
  Flags flags;
  std::array<Ring, 2> rings;  ///< by the rank that writes
};

/// Both ends of the rings at one rank: what copying a message from core to core costs when nobody looks at what it is.
class RingAdapter {
 public:
  RingAdapter(std::array<Ring, 2>& rings, unsigned rank) : rank_(rank), out_(rings[rank]), in_(rings[1 - rank]) {}

  unsigned rank() const { return rank_; }
  void send(const void* data, std::size_t bytes) {
    std::byte* const record = out_.take(bytes);
    std::memcpy(Position::payload(record, bytes), data, bytes);
    Position::flag(record).store(out_.count, std::memory_order_release);  // pairs with the acquire of `receive`
  }
  void receive(void* data, std::size_t bytes) {
    std::byte* const record = in_.take(bytes);
    while (Position::flag(record).load(std::memory_order_acquire) != in_.count) {
    }
    for (std::size_t at = Ring::line; at < bytes; at += Ring::line) __builtin_prefetch(record + at);
    std::memcpy(data, Position::payload(record, bytes), bytes);
  }
  void send_many(const void* data, std::size_t bytes, unsigned count) {
    for (unsigned i = 0; i < count; ++i) send(data, bytes);
  }
  void receive_many(void* data, std::size_t bytes, unsigned count) {
    for (unsigned i = 0; i < count; ++i) receive(data, bytes);
  }

 private:
  /// Where one side is in a ring. Both count alike, since both know what comes.
  struct Position {
    explicit Position(Ring& of) : ring(&of) {}
    /// The next message's lines.
    std::byte* take(std::size_t bytes) {
      const std::size_t wanted = short_enough(bytes) ? 1 : 1 + (bytes + Ring::line - 1) / Ring::line;
      if (at + wanted > Ring::lines) at = 0;
      ++count;
      return ring->memory.data() + Ring::line * std::exchange(at, at + wanted);
    }
    static std::atomic_ref<std::uint64_t> flag(std::byte* record) {
      return std::atomic_ref(*reinterpret_cast<std::uint64_t*>(record));
    }
    static std::byte* payload(std::byte* record, std::size_t bytes) {
      return record + (short_enough(bytes) ? sizeof(std::uint64_t) : Ring::line);
    }
    /// To lie in the first line, behind the number.
    static bool short_enough(std::size_t bytes) { return bytes <= Ring::line - sizeof(std::uint64_t); }

    Ring* ring;
    std::size_t at = 0;
    std::uint64_t count = 0;  ///< of messages
  };

  unsigned rank_;
  Position out_, in_;
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

/// The flags and the rings between both ranks, then the copies at rank 0 while rank 1 sleeps.
void measure_memory(Shared& shared, Pair& pair, const Plan& plan) {
  constexpr unsigned flag_trips = 20'000;
  Report report{"bare", "flag, ring and memcpy", 2, {}};
  unsigned flagged = 0;
  RingAdapter ring(shared.rings, pair.rank());
  const auto series = [&](const std::string& name, auto sample) {
    Measurement measurement{name, "us", {}};
    sample();
    for (unsigned i = 0; i < plan.repetitions; ++i) measurement.samples.push_back(sample());
    report.results.push_back(std::move(measurement));
  };
  const auto measured = [&](const Size& size) { return size.bytes >= plan.least && size.bytes <= plan.most; };
  const auto name_of = [](const Size& size) { return "half_" + std::to_string(size.bytes); };
  for (const Size& size : sizes) {
    if (!measured(size) || size.bytes > Ring::longest) continue;
    std::vector<char> out(size.bytes, 'o'), in(size.bytes, 'i');
    series(name_of(size), [&] {
      if (size.bytes > 4) return internal::half_round_trip_us(ring, out, in, size.trips);
      return flag_us(shared.flags, pair.rank(), flag_trips * flagged++, flag_trips);
    });
  }
  if (plan.least <= 4) series("message_4", [&] { return internal::message_us(ring); });
  if (pair.rank() == 1) return;
  for (const Size& size : sizes) {
    if (!measured(size) || size.bytes <= Ring::longest) continue;
    const std::vector<char> from(size.bytes, 'f');
    std::vector<char> to(size.bytes, 't');
    series(name_of(size), [&] { return memcpy_us(from, to, size.trips); });
  }
  report.print();
}

}  // namespace
}  // namespace benchmarks::pingpong

int main(int argc, char** argv) {
  using namespace benchmarks::pingpong;
  const Plan plan(argc, argv);
  void* const memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  require(memory != MAP_FAILED, "mmap");
  auto& shared = *new (memory) Shared;
  Pair pair;
  benchmarks::pingpong::bind_as_planned(plan, pair.rank());
  if (plan.transport == "shm" && !plan.sleep) {
    measure_memory(shared, pair, plan);
  } else {
    SocketAdapter adapter(pair, plan.sleep);
    measure(adapter, plan);
  }
  return pair.end();
}
