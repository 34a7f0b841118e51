// tools/trace_check.hpp: what must hold in a trace, whatever the program did.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tandem/trace/read/reader.hpp"

namespace tandem::tools {

/// All cases of one promise that is broken.
struct Violation {
  std::string promise;                ///< a sentence
  std::uint64_t count = 0;
  std::vector<std::string> examples;  ///< the first few: where, and what
};

struct TraceCheck {
  std::uint64_t events = 0;
  std::uint64_t tasks_started = 0;
  std::uint64_t tasks_ended = 0;
  std::uint64_t tasks_running_at_kill = 0;
  std::uint64_t messages_paired = 0;
  std::optional<std::int64_t> least_latency_ns;  ///< of messages between ranks whose clocks were compared, or one rank's own
  std::vector<Violation> violations;
  std::vector<std::string> notes;  ///< what could not be checked, and why
};

/// Reads everything twice. Not checked is what depends on events that the trace itself says were lost.
TraceCheck check(trace::TraceReader& run);

}  // namespace tandem::tools
