// tandem/sim_rank/turn_wire.hpp: what a rank that is a process tells its simulation, and hears from it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/base/result.hpp"
#include "tandem/runtime/device/emulation.hpp"
#include "tandem/sim_rank/kernel_times.hpp"
#include "tandem/sim_rank/platform.hpp"

namespace tandem::sim {

/// Frames (comm/bootstrap/bytes.hpp) on a local socket. A rank connects and says `hello`; the answer is `welcome`. It
/// runs until it says `park`, and then again from `go` or `stuck`. While it runs it may `ask` how long a task takes,
/// and is `told`. A rank whose program ends says `bye`.
enum class TurnKind : std::uint8_t { hello = 1, park, ask, bye, welcome, go, stuck, told };

inline constexpr std::uint32_t turn_version = 5;  ///< of this protocol
/// Of a frame: the messages that a rank sends in one turn.
inline constexpr std::size_t most_turn_bytes = std::size_t{1} << 30;

/// Of `hello`.
struct Greeting {
  std::uint32_t version = turn_version;
  std::uint32_t rank = 0;
};

/// Of `welcome`: what a rank needs to know of its simulation.
struct RankPlace {
  Platform platform = {};
  std::uint32_t rank = 0;
  std::uint64_t seed = 1;
  Execution execution = Execution::none;
  double host_speed = 0;  ///< of the program's own code, relative to here; 0: it takes no time
};

/// A message between two ranks.
struct Parcel {
  std::uint32_t rank = 0;    ///< where it goes, or where it is from
  std::int64_t when_ns = 0;  ///< at which it arrives
  std::string message = {};  ///< as the LoopWire has it
};

/// Of `park`, `go` and `bye`.
struct Turn {
  /// `park`: when the rank goes on by itself, kNever if it waits for messages alone. `go`: nothing further arrives
  /// before. `bye`: the end of the program.
  std::int64_t date_ns = 0;
  std::vector<Parcel> parcels = {};
};

/// A task as a question: an EmulatedTask that owns its parts.
struct AskedTask {
  std::string codelet;
  std::vector<runtime::Shape> data;
  DeviceKind device = DeviceKind::cpu;
  unsigned implementation = 0;
};

std::string encode(const Greeting& greeting);
std::string encode(const RankPlace& place);
std::string encode(const Turn& turn);
std::string encode(const runtime::EmulatedTask& task);
/// Of `told`. Nothing: the duration is not known.
std::string encode(const std::optional<KernelTime>& time);

// Errors: malformed.
base::Result<Greeting> decode_greeting(std::string_view body);
base::Result<RankPlace> decode_place(std::string_view body);
base::Result<Turn> decode_turn(std::string_view body);
base::Result<AskedTask> decode_task(std::string_view body);
base::Result<std::optional<KernelTime>> decode_time(std::string_view body);

}  // namespace tandem::sim
