// tandem/comm/endpoint_test_support.hpp: what tests of endpoints share: ranks of one process on one event loop.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tandem/base/event_loop.hpp"
#include "tandem/base/log.hpp"
#include "tandem/base/sanitizers.hpp"
#include "tandem/comm/endpoint.hpp"
#include "tandem/comm/transport/loop/loop.hpp"

namespace tandem::comm::endpoint_test {

using Bytes = std::vector<std::uint8_t>;

inline Bytes pattern(std::size_t bytes, unsigned seed) {
  Bytes made(bytes);
  for (std::size_t i = 0; i < bytes; ++i) made[i] = static_cast<std::uint8_t>(i * 7 + seed * 131 + (i >> 8));
  return made;
}

/// Ranks of one process on one event loop.
struct World {
  explicit World(std::uint32_t ranks, LoopOptions network_options = {}, EndpointOptions options = {},
                 std::uint64_t seed = 1, bool instant = false)
      : loop(seed) {
    network_options.ranks = ranks;
    if (network_options.latency_max_ns == 0 && !instant) network_options.latency_max_ns = 5'000;
    network = std::make_unique<LoopNetwork>(network_options, &loop);
    for (std::uint32_t rank = 0; rank < ranks; ++rank)
      at.push_back(Endpoint::open_loop(*network, Rank{rank}, options, log, &loop));
  }
  /// Closes in an order that lets each goodbye be answered.
  ~World() {
    for (auto& endpoint : at) endpoint.reset();
  }
  std::string describe() const {
    std::string text;
    for (const auto& endpoint : at) text += endpoint->describe();
    return text;
  }
  void settle() {
    loop.run_until([](void*) { return false; }, nullptr, loop.now_ns() + 100'000'000);
  }

  base::EventLoop loop;
  base::Log log{base::LogLevel::error};
  std::unique_ptr<LoopNetwork> network;
  std::vector<std::unique_ptr<Endpoint>> at;
};

/// Fewer seeds under sanitizers, which make copies of megabytes a hundred times slower.
constexpr std::uint64_t seeds(std::uint64_t many) { return base::under_sanitizer ? many / 10 : many; }

}  // namespace tandem::comm::endpoint_test
