// tandem/dist/trace_clocks.hpp: clock points in the traces of a flow's ranks.
#pragma once

#include <cstdint>
#include <memory>

#include "tandem/base/log.hpp"
#include "tandem/clock/clock.hpp"
#include "tandem/comm/endpoint.hpp"
#include "tandem/comm/sync/clock_sync.hpp"
#include "tandem/trace/session.hpp"

namespace tandem::dist {

/// Compares the clocks of traced ranks while it lives. All ranks leave a barrier at one instant when it is made, and
/// another one when it ends; the times of both are clock points of the trace (thesis 3.4.2: the line through both takes
/// a rank's time to rank 0's). Between them, the state of the clock synchronisation becomes a point of kind
/// `background` at a fixed interval.
///
/// All ranks make one, and all end it. A rank that cannot come to the last barrier, because of a failure, destroys it
/// instead, and the barriers of the others fail. Threads: the submitting thread; the session's flusher writes points
/// between the barriers.
class TraceClocks {
 public:
  /// `clock` is the clock of the events. `every_ns`: interval of points in the background; 0: none. Null when the ranks
  /// do not find each other's time, which is logged.
  static std::unique_ptr<TraceClocks> start(comm::Endpoint& endpoint, trace::Session& session,
                                            const clock::Clock& clock, std::int64_t every_ns, base::Log& log);
  ~TraceClocks();
  TraceClocks(const TraceClocks&) = delete;
  TraceClocks& operator=(const TraceClocks&) = delete;

  /// Makes the last comparison, by a barrier.
  void end();

 private:
  TraceClocks(std::unique_ptr<comm::ClockSync> sync, trace::Session& session, base::Log& log);
  void meet();
  void note_time();

  std::unique_ptr<comm::ClockSync> sync_;
  trace::Session& session_;
  base::Log& log_;
};

}  // namespace tandem::dist
