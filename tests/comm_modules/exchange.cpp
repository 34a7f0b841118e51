// tests/comm_modules/exchange.cpp: a ring of messages, then a broadcast.
#include "exchange.hpp"

#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <random>
#include <vector>

namespace tandem::comm {
namespace {

using Bytes = std::vector<std::byte>;

constexpr std::array<std::size_t, 6> kSizes{0, 1, 1'000, 30'000, 439'296, 5'000'000};
constexpr Tag kBroadcast{1'000};

/// The same on every rank for equal arguments.
Bytes pattern(std::size_t bytes, std::uint32_t sender, std::size_t message) {
  std::minstd_rand random(static_cast<unsigned>(1 + sender * 100 + message));
  Bytes made(bytes);
  for (std::byte& one : made) one = static_cast<std::byte>(random() >> 7);
  return made;
}

std::string unequal(const Status& status, const Bytes& received, const Bytes& sent) {
  if (status.ending != Ending::done) return fmt::format("a receive ended as {}; ", name_of(status.ending));
  if (status.bytes == sent.size() && received == sent) return {};
  return fmt::format("a message of {} bytes came wrong, with {} bytes; ", sent.size(), status.bytes);
}

std::string ring(Endpoint& endpoint) {
  const std::uint32_t self = endpoint.rank().value(), size = endpoint.size();
  const Rank next{(self + 1) % size}, previous{(self + size - 1) % size};
  std::vector<Bytes> sent, received;
  std::vector<Request> sends, receives;
  for (std::size_t i = 0; i < kSizes.size(); ++i) {
    sent.push_back(pattern(kSizes[i], self, i));
    received.emplace_back(kSizes[i]);
  }
  for (std::size_t i = 0; i < kSizes.size(); ++i) {
    receives.push_back(endpoint.irecv(previous, Tag{i}, received[i]));
    sends.push_back(endpoint.isend(next, Tag{i}, sent[i]));
  }
  std::string wrong;
  for (std::size_t i = 0; i < kSizes.size(); ++i) {
    wrong += unequal(endpoint.wait(receives[i]), received[i], pattern(kSizes[i], previous.value(), i));
  }
  endpoint.wait_all(sends);
  return wrong;
}

std::string broadcast(Endpoint& endpoint) {
  const Bytes whole = pattern(1'000'003, 0, kSizes.size());
  if (endpoint.rank() == Rank{0}) {
    std::vector<Recipient> recipients;
    for (std::uint32_t rank = 1; rank < endpoint.size(); ++rank) recipients.push_back({.rank = Rank{rank}});
    const Status status = endpoint.wait(endpoint.mcast(recipients, kBroadcast, whole));
    return status.ending == Ending::done ? "" : fmt::format("the broadcast ended as {}; ", name_of(status.ending));
  }
  Bytes received(whole.size());
  const Status status = endpoint.wait(endpoint.irecv(Rank{0}, kBroadcast, received));
  return unequal(status, received, whole);
}

}  // namespace

std::string exchange(Endpoint& endpoint, std::string_view transport) {
  const Rank next{(endpoint.rank().value() + 1) % endpoint.size()};
  const std::string used(endpoint.transport_to(next));
  std::string wrong = used == transport ? "" : fmt::format("{} speaks with the next rank, not {}; ", used, transport);
  wrong += ring(endpoint);
  wrong += broadcast(endpoint);
  return wrong;
}

}  // namespace tandem::comm
