// tools/launcher/wire.hpp: the messages between a launcher and its agent on another host, through ssh.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tandem/base/result.hpp"
#include "tools/launcher/group.hpp"

namespace tandem::tools::wire {

// The agent is `tandem run --agent`. Its standard output begins with `greeting`, so that the launcher can drop what
// a login script prints before it; then both directions are frames (bytes.hpp). The end of its standard input kills the
// agent's ranks: that is how a launcher that was killed, or a network that broke, ends them.
//
//   launcher  start(plan) once, signal(number), input(bytes), input_end
//   agent     input_taken after each input, output(rank, stream, bytes), ended(rank, status), failed(exit code, reason)

enum class Kind : std::uint8_t { start = 1, signal, input, input_end, input_taken, output, ended, failed };

inline constexpr std::string_view greeting = "\x01tandem-agent\n";
inline constexpr std::uint32_t version = 2;  ///< of this protocol
inline constexpr std::size_t most_frame_bytes = 16u << 20;  ///< arguments and environment, at most

/// Encodes a plan. It begins with the versions, in a place that never changes.
std::string encode(const GroupPlan& plan);
/// Decodes a plan. Errors: malformed; unsupported, naming both versions when they differ.
base::Result<GroupPlan> decode_plan(std::string_view body);

}  // namespace tandem::tools::wire
