// tests/comm_modules/exchange.hpp: what each rank of a test does with its endpoint, whatever carries the packets.
#pragma once

#include <string>
#include <string_view>

#include "tandem/comm/endpoint.hpp"

namespace tandem::comm {

/// Sends messages of many sizes around a ring, and one from rank 0 to all others; called by every rank at once. What
/// went wrong; empty when nothing did. `transport` is the one that has to speak with the others.
std::string exchange(Endpoint& endpoint, std::string_view transport);

}  // namespace tandem::comm
