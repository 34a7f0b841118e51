// tests/comm_traffic/plan.hpp: random traffic between ranks, drawn from a seed: what is sent and received, in which
// order. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tandem/comm/mcast/tree.hpp"

namespace tandem::comm_traffic {

/// What traffic looks like. `draw_shape` varies all of it.
struct Shape {
  std::uint32_t ranks = 4;
  std::uint32_t channels = 2;
  std::uint64_t tags = 4;
  unsigned messages = 30;
  unsigned broadcast_percent = 20;
  unsigned wildcard_percent = 50;   ///< of the groups of receives
  unsigned early_percent = 50;      ///< how far receives are posted before the rank's own sends
  std::size_t eager_bytes = 4096;   ///< sizes are drawn around this limit
  std::size_t largest_bytes = 100'000;
};

struct Delivery {
  std::uint32_t rank = 0;
  int priority = 0;
};

/// A send, or a broadcast. Its number is its identity, and the numbers of one source ascend in the order of posting.
struct PlannedMessage {
  std::uint32_t source = 0;
  std::vector<Delivery> to;  ///< one for a send; different ranks, without the source, for a broadcast
  std::uint32_t channel = 0;
  std::uint64_t tag = 0;
  std::size_t bytes = 0;
  std::size_t header_bytes = 0;  ///< at least 8: the message's number
  bool broadcast = false;
  comm::TreeKind tree = comm::TreeKind::automatic;
};

/// A receive. The numbers of one rank ascend in the order of posting.
struct PlannedReceive {
  std::uint32_t rank = 0;
  std::uint32_t channel = 0;
  std::uint32_t source = 0;
  std::uint64_t tag = 0;
  bool any_source = false;
  bool any_tag = false;
  bool owned = false;
  bool may_starve = false;  ///< another receive may take its message: at the end it may be left, and is cancelled
  bool sweep = false;       ///< posted after those were cancelled, for what they left
  std::size_t capacity_bytes = 0;

  bool matches(const PlannedMessage& message) const noexcept {
    return message.channel == channel && (any_source || message.source == source) && (any_tag || message.tag == tag);
  }
};

struct Step {
  bool is_message = false;
  std::size_t index = 0;  ///< of the message or the receive
};

struct Plan {
  Shape shape;
  std::vector<PlannedMessage> messages;
  std::vector<PlannedReceive> receives;
  std::vector<std::vector<Step>> steps;  ///< by rank, in the order of posting
};

/// All of a shape, from a seed.
Shape draw_shape(std::uint64_t seed);

/// Traffic of which every message is received: each group of deliveries to one (rank, channel) has as many receives as
/// messages, by exact patterns, by one kind of wildcard that cannot take another group's messages, or by a mixture that
/// may leave some messages and as many receives; those receives are marked.
Plan draw_plan(const Shape& shape, std::uint64_t seed);

}  // namespace tandem::comm_traffic
