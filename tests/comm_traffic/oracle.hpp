// tests/comm_traffic/oracle.hpp: whether what was received is what the rules of matching allow. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plan.hpp"

namespace tandem::comm_traffic {

/// What became of one receive of a plan.
struct Outcome {
  std::optional<std::size_t> message;  ///< its number, as its header says; none: cancelled
  std::uint32_t source = 0;            ///< as the status says
  std::uint64_t tag = 0;
  std::size_t bytes = 0;
  bool truncated = false;
  bool content_right = true;  ///< the bytes in the buffer are the message's
};

/// The first rule that is broken, or "". The rules do not depend on timing:
///  1. a receive got a message that it matches, reports its source, tag and size, and has its bytes (the first ones if
///     its
///     buffer is short);
///  2. every message is received exactly once by each of its recipients;
///  3. messages of one (source, channel, tag) are matched by a rank's receives in the order in which both were posted;
///  4. a receive that was left matches no message that a receive posted after it has got (sweeping ones apart: they
///     came when it was cancelled), and only those that may be left are left.
std::string broken_rule(const Plan& plan, const std::vector<Outcome>& outcomes);

}  // namespace tandem::comm_traffic
