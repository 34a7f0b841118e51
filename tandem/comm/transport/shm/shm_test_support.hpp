// tandem/comm/transport/shm/shm_test_support.hpp: ranks of the shared-memory transport, with sinks that note what is
// reported.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tandem/base/log.hpp"
#include "tandem/comm/transport/shm/shm.hpp"

namespace tandem::comm::shm_test {

inline std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

inline std::vector<std::byte> pattern(std::size_t bytes, std::uint32_t seed) {
  std::vector<std::byte> made(bytes);
  for (std::size_t i = 0; i < bytes; ++i) made[i] = static_cast<std::byte>((i * 131 + seed * 7 + i / 251) & 0xff);
  return made;
}

/// What arrived from one peer.
struct Arrival {
  std::vector<std::byte> control;
  std::vector<std::byte> payload;
  bool landed = false;
};

/// Notes what is reported to it; payloads land in pieces of `piece_bytes`.
class NotingSink final : public PacketSink {
 public:
  Landing arrived(Link& link, std::span<const std::byte> control, std::size_t payload_bytes) override {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(control.data()) % 8, 0U);
    links[link.peer().value()] = &link;
    std::deque<Arrival>& from = arrivals[link.peer().value()];
    EXPECT_TRUE(from.empty() || from.back().landed) << "a packet is reported before the previous one has landed";
    if (malformed != nullptr) return {.malformed = malformed};
    from.push_back({.control = {control.begin(), control.end()}, .payload = {}, .landed = payload_bytes == 0});
    if (payload_bytes == 0 || drop_payloads) return {};
    from.back().payload.resize(payload_bytes);
    pieces.clear();
    const std::size_t keep = std::min(payload_bytes, room_bytes);
    for (std::size_t at = 0; at < keep; at += piece_bytes)
      pieces.push_back({from.back().payload.data() + at, std::min(piece_bytes, keep - at)});
    return {.pieces = pieces, .token = ++token};
  }
  void landed(Link& link, std::uint64_t given) override {
    EXPECT_EQ(given, drop_payloads ? 0 : token);
    arrivals[link.peer().value()].back().landed = true;
  }
  void sent(Link&, std::uint64_t cookie) override { cookies.push_back(cookie); }
  void writable(Link& link) override { writables.push_back(link.peer().value()); }
  void peer_failed(Rank peer, std::string_view reason) override { failures.emplace_back(peer.value(), reason); }

  std::size_t landed_from(std::uint32_t peer) const {
    const auto found = arrivals.find(peer);
    if (found == arrivals.end()) return 0;
    std::size_t count = 0;
    for (const Arrival& arrival : found->second) count += arrival.landed;
    return count;
  }

  std::map<std::uint32_t, std::deque<Arrival>> arrivals;
  std::map<std::uint32_t, Link*> links;
  std::vector<std::uint64_t> cookies;
  std::vector<std::uint32_t> writables;
  std::vector<std::pair<std::uint32_t, std::string>> failures;
  std::vector<iovec> pieces;
  std::size_t piece_bytes = 100'000;
  std::size_t room_bytes = SIZE_MAX;
  bool drop_payloads = false;
  const char* malformed = nullptr;
  std::uint64_t token = 0;
};

/// One rank: transport, sink, and its log's lines.
struct ShmRank {
  explicit ShmRank(std::uint32_t rank, std::uint32_t size, ShmOptions options = {})
      : log(base::LogLevel::debug, [this](base::LogLevel, std::string_view line) { lines.emplace_back(line); }) {
    options.rank = Rank(rank);
    options.job_size = size;
    options.log = &log;
    auto made = make_shm_transport(options, sink);
    EXPECT_TRUE(made.ok()) << (made.ok() ? "" : made.error().message);
    transport = std::move(made).value();
  }
  unsigned poll() { return transport->poll(now_ns()); }
  Link& connect(ShmRank& to, std::uint32_t rank) { return transport->connect(Rank(rank), to.transport->card(), 0); }

  std::vector<std::string> lines;
  base::Log log;
  NotingSink sink;
  std::unique_ptr<Transport> transport;
};

/// Steps all ranks until `done`, for `seconds` at most.
template <class Ranks>
bool step_until(Ranks&& ranks, const std::function<bool()>& done, int seconds = 20) {
  const std::int64_t end = now_ns() + std::int64_t{seconds} * 1'000'000'000;
  for (unsigned round = 0; now_ns() < end; ++round) {
    unsigned events = 0;
    for (ShmRank* rank : ranks) events += rank->poll();
    if (done()) return true;
    if (events == 0 && round % 64 == 63) std::this_thread::yield();
  }
  return done();
}

inline std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }
inline std::string text_of(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace tandem::comm::shm_test
