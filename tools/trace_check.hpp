// tools/trace_check.hpp: what must hold in a trace, whatever the program did.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tandem/trace/read/reader.hpp"

namespace tandem::tools {

/// All cases of one promise that is broken.
struct Violation {
  std::string promise;                ///< a sentence
  std::uint64_t count = 0;
  std::vector<std::string> examples;  ///< the first few: where, and what
};

/// What must come out even, over all ranks of which everything was recorded.
struct Account {
  struct Skipped {
    std::string why;
    std::vector<std::uint32_t> ranks;
  };
  std::string name;
  std::uint64_t ranks = 0;  ///< that were checked
  std::vector<std::pair<std::string, std::uint64_t>> counts;
  std::vector<Skipped> skipped;
};

struct TraceCheck {
  std::uint64_t events = 0;
  std::uint64_t tasks_started = 0;
  std::uint64_t tasks_ended = 0;
  std::uint64_t tasks_running_at_kill = 0;
  std::uint64_t messages_paired = 0;
  std::optional<std::int64_t> least_latency_ns;  ///< of messages between ranks whose clocks were compared, or one rank's own
  std::vector<Account> accounts;
  std::vector<Violation> violations;
  std::vector<std::string> notes;  ///< what could not be checked, and why
};

/// Reads everything twice. Not checked is what takes events that were lost, overwritten or not selected: accounts and notes say
/// so.
/// Of a program that was killed, nothing is demanded that would have come later. Memory: some 100 bytes per task.
TraceCheck check(trace::TraceReader& run);

}  // namespace tandem::tools
