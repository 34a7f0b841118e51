// benchmarks/pingpong/harness.hpp: two processes that throw messages at each other.
//
// An adapter presents one of the two ranks of one library:
//
//   static constexpr const char* name;                                           // "openmpi"
//   std::string version() const;
//   unsigned rank() const;                                                       // 0 or 1
//   void send(const void* data, std::size_t bytes);                              // until the data may be changed
//   void receive(void* data, std::size_t bytes);                                 // until the data is there
//   void send_many(const void* data, std::size_t bytes, unsigned count);         // that many messages at once
//   void receive_many(void* data, std::size_t bytes, unsigned count);
//   // Not every adapter has these. At most `window` messages are under way.
//   void send_stream(const void* data, std::size_t bytes, unsigned count, unsigned window);
//   void receive_stream(void* data, std::size_t bytes, unsigned count, unsigned window);
//
// Results: `half_N`, half of a round trip with messages of N bytes, in us; `message_4`, us per message of 4 bytes that
// go one way, 64 at a time, each 64 answered before the next; `stream_4`, the same with up to 64 under way and one
// answer in the end, as ucx_perftest's tag_bw does it. With --sleep only `sleeping_8`: a message of 8 bytes, one way,
// to a side that sleeps.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "benchmarks/common/cores.hpp"
#include "benchmarks/common/options.hpp"
#include "benchmarks/common/report.hpp"

namespace benchmarks::pingpong {

using Clock = std::chrono::steady_clock;

/// A size, and how many round trips one sample takes.
struct Size {
  std::size_t bytes;
  unsigned trips;
};

constexpr Size sizes[] = {{4, 20'000},    {1024, 10'000}, {4096, 10'000}, {65'536, 1000},
                          {439'296, 200}, {8 << 20, 10},  {64 << 20, 2}};
constexpr unsigned window = 64;    // messages of `message_4` that are under way at once
constexpr unsigned windows = 200;  // per sample
constexpr unsigned sleeping_trips = 50;
constexpr auto sleep_before_message = std::chrono::milliseconds(2);

/// What the command line asks for: --transport NAME (shm), --repetitions N (5), --least BYTES and --most BYTES (all
/// sizes), --sleep, --unbound.
struct Plan {
  std::string transport;
  unsigned repetitions;
  std::size_t least, most;  ///< bytes of the smallest and the largest message
  bool sleep;
  bool bound;  ///< each rank to a core of its own

  Plan(int argc, char** argv)
      : Plan(Options(argc, argv, {"transport", "repetitions", "least", "most"}, {"sleep", "unbound"})) {}

 private:
  explicit Plan(const Options& options)
      : transport(options.text("transport", "shm")),
        repetitions(options.count("repetitions", 5)),
        least(options.count("least", 1)),
        most(options.count("most", UINT32_MAX)),
        sleep(options.has("sleep")),
        bound(!options.has("unbound")) {}
};

/// Ends the program when something that cannot fail has.
inline void require(bool good, const char* what) {
  if (good) return;
  std::perror(what);
  std::_Exit(1);
}

/// Each rank to a core of its own, unless the plan says otherwise.
inline void bind_as_planned(const Plan& plan, unsigned rank) {
  if (plan.bound) require(bind_to_core(rank), "binding to a core");
}

/// Posts operations, of which so many are under way at most: the oldest ends before the next one is posted.
template <class Request, class Post, class Finish>
void slide(std::vector<Request>& requests, unsigned count, unsigned most, Post post, Finish finish) {
  requests.resize(std::min(count, most));
  for (unsigned i = 0; i < count; ++i) {
    if (i >= most) finish(requests[i % most]);
    requests[i % most] = post();
  }
  for (unsigned i = count - static_cast<unsigned>(requests.size()); i < count; ++i) finish(requests[i % most]);
  requests.clear();
}

namespace internal {

inline double us_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
}

/// One sample of half a round trip, or nothing at rank 1. Both buffers have been written before.
template <class Adapter>
double half_round_trip_us(Adapter& adapter, std::vector<char>& out, std::vector<char>& in, unsigned trips) {
  const auto begin = Clock::now();
  for (unsigned i = 0; i < trips; ++i) {
    if (adapter.rank() == 0) {
      adapter.send(out.data(), out.size());
      adapter.receive(in.data(), in.size());
    } else {
      adapter.receive(in.data(), in.size());
      adapter.send(out.data(), out.size());
    }
  }
  return us_since(begin) / (2.0 * trips);
}

/// One sample of the time per message one way. `give` at rank 0 and `take` at rank 1 move so many of `windows * window`
/// messages at a time, and an answer ends each such part.
template <class Adapter, class Give, class Take>
double one_way_us(Adapter& adapter, unsigned parts, Give give, Take take) {
  std::vector<char> message(4, 'm'), answer(4, 'a');
  const auto begin = Clock::now();
  for (unsigned i = 0; i < parts; ++i) {
    if (adapter.rank() == 0) {
      give(message);
      adapter.receive(answer.data(), answer.size());
    } else {
      take(message);
      adapter.send(answer.data(), answer.size());
    }
  }
  return us_since(begin) / (windows * window);
}

/// An answer ends each window, as a receiver of finite memory needs it.
template <class Adapter>
double message_us(Adapter& adapter) {
  return one_way_us(
      adapter, windows, [&](const std::vector<char>& bytes) { adapter.send_many(bytes.data(), bytes.size(), window); },
      [&](std::vector<char>& bytes) { adapter.receive_many(bytes.data(), bytes.size(), window); });
}

/// A stream, which is answered once, when all is there.
template <class Adapter>
double stream_us(Adapter& adapter) {
  constexpr unsigned count = windows * window;
  return one_way_us(
      adapter, 1,
      [&](const std::vector<char>& bytes) { adapter.send_stream(bytes.data(), bytes.size(), count, window); },
      [&](std::vector<char>& bytes) { adapter.receive_stream(bytes.data(), bytes.size(), count, window); });
}

/// The mean time of a message, one way, to a side that has waited for 2 ms: from before the send to after the receive.
/// The ranks take turns, and each takes the mean of what it received.
template <class Adapter>
double sleeping_us(Adapter& adapter) {
  static_assert(sizeof(Clock::time_point) == 8);
  std::vector<char> message(sizeof(Clock::time_point), 'm');
  double total_us = 0;
  for (unsigned i = 0; i < sleeping_trips; ++i) {
    for (unsigned sender = 0; sender < 2; ++sender) {
      if (adapter.rank() == sender) {
        std::this_thread::sleep_for(sleep_before_message);
        const auto now = Clock::now();  // one clock for all processes of a host
        std::copy_n(reinterpret_cast<const char*>(&now), sizeof now, message.data());
        adapter.send(message.data(), message.size());
      } else {
        adapter.receive(message.data(), message.size());
        Clock::time_point then;
        std::copy_n(message.data(), sizeof then, reinterpret_cast<char*>(&then));
        total_us += us_since(then);
      }
    }
  }
  return total_us / sleeping_trips;
}

}  // namespace internal

/// Both ranks call this; rank 0 prints the report. Every series is run once to warm up.
template <class Adapter>
void measure(Adapter& adapter, const Plan& plan) {
  Report report{Adapter::name, adapter.version(), 2, {}};
  const auto series = [&](const std::string& name, auto sample) {
    Measurement measurement{name, "us", {}};
    sample(true);
    for (unsigned i = 0; i < plan.repetitions; ++i) measurement.samples.push_back(sample(false));
    report.results.push_back(std::move(measurement));
  };
  if (plan.sleep) {
    series("sleeping_8", [&](bool) { return internal::sleeping_us(adapter); });
  } else {
    for (const Size& size : sizes) {
      if (size.bytes < plan.least || size.bytes > plan.most) continue;
      std::vector<char> out(size.bytes, 'o'), in(size.bytes, 'i');
      series("half_" + std::to_string(size.bytes), [&](bool warm_up) {
        return internal::half_round_trip_us(adapter, out, in, warm_up ? (size.trips + 9) / 10 : size.trips);
      });
    }
    if (plan.least <= 4) series("message_4", [&](bool) { return internal::message_us(adapter); });
    if constexpr (requires { adapter.send_stream(nullptr, 0, 0, 0); }) {
      if (plan.least <= 4) series("stream_4", [&](bool) { return internal::stream_us(adapter); });
    }
  }
  if (adapter.rank() == 0) report.print();
}

}  // namespace benchmarks::pingpong
