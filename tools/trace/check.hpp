// tools/trace/check.hpp: checks properties that every trace must have, for any program.
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
  std::string promise;                ///< what should hold, as a sentence
  std::uint64_t count = 0;
  std::vector<std::string> examples;  ///< the first few cases, each with its place
};

/// Counts that must balance, over all ranks with a complete recording.
struct Account {
  struct Skipped {
    std::string why;
    std::vector<std::uint32_t> ranks;
  };
  std::string name;
  std::uint64_t ranks = 0;  ///< ranks that were checked
  std::vector<std::pair<std::string, std::uint64_t>> counts;
  std::vector<Skipped> skipped;
};

struct TraceCheck {
  std::uint64_t events = 0;
  std::uint64_t tasks_started = 0;
  std::uint64_t tasks_ended = 0;
  std::uint64_t tasks_running_at_kill = 0;
  std::uint64_t messages_paired = 0;
  std::optional<std::int64_t> least_latency_ns;  ///< of messages within a rank or between compared clocks
  std::vector<Account> accounts;
  std::vector<Violation> violations;
  std::vector<std::string> notes;  ///< checks that were not possible, and why
};

/// Reads everything twice. Checks that need lost, overwritten or unselected events are left out, and named in accounts
/// and notes. For a killed program, events that would have come later are not required. Memory: some 100 bytes per
/// task.
TraceCheck check(trace::TraceReader& run);

}  // namespace tandem::tools
